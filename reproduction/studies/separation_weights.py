"""Where the weights of `nonneg.applications.audio.affinity` come from: a regression on the choosing mixtures.

Run by ``python -m reproduction.studies.separation_weights``; prints the weights, and how much of the energy
goes to the right source when the kind of mixture is left out of the regression.
"""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.applications.audio.affinity import WEIGHTS, pair_features
from nonneg.applications.audio.grouping import energy_shares, partition
from nonneg.applications.audio.methods import bin_frequencies
from reproduction.studies.mixtures import CHOOSING, energies_by_source, mixture

# All kinds used to choose but the notes, which need one component per source; durations and rates take turns.
KINDS = tuple(kind for kind in CHOOSING if kind != "notes" and "@" not in kind)
N_DRAWS = 13
SECONDS = (8.0, 8.0, 4.0, 6.0, 3.0)
RATES = (11025, 22050, 8000, 11025, 16000, 11025, 44100)

Example = dict[str, Any]


def example(job: tuple[str, int]) -> Example:
    """Factorize one mixture; return features and energies of its components, and the energy per source."""
    kind, draw = job
    true, rate = mixture(f"{kind}@{RATES[draw % len(RATES)]}", draw, SECONDS[draw % len(SECONDS)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SourceSeparation(2, n_components=16, random_state=0, n_jobs=1).fit(true.sum(axis=0), rate)
    W, H = model.activations_, model.model_.components_
    features = pair_features(W, H, bin_frequencies(model.framing_, model.model_, rate))
    return {
        "kind": kind,
        "features": {name: features[name] for name in WEIGHTS},
        "energies": energy_shares(W, H),
        "by_source": energies_by_source(model, true),
    }


def regression(examples: list[Example]) -> tuple[dict[str, float], float]:
    """Return the weights of the features, and the bias."""
    rows, same, mass = [], [], []
    for one in examples:
        pairs = np.triu_indices(len(one["energies"]), 1)
        rows.append(np.stack([values[pairs] for values in one["features"].values()], axis=1))
        share = one["by_source"][:, 0] / np.maximum(one["by_source"].sum(axis=1), 1e-300)
        first, second = share[pairs[0]], share[pairs[1]]
        same.append(first * second + (1 - first) * (1 - second))
        weight = np.sqrt(one["energies"][pairs[0]] * one["energies"][pairs[1]])
        mass.append(1000 * weight / weight.sum())
    X, y, w = np.concatenate(rows), np.concatenate(same), np.concatenate(mass)
    center, scale = X.mean(axis=0), X.std(axis=0)
    Z = (X - center) / scale
    model = LogisticRegression(max_iter=300).fit(
        np.concatenate([Z, Z]), np.repeat([1, 0], len(Z)), sample_weight=np.concatenate([y * w, (1 - y) * w])
    )
    weights = model.coef_[0] / scale
    return dict(zip(WEIGHTS, weights, strict=True)), float(model.intercept_[0] - weights @ center)


def right_share(one: Example, weights: dict[str, float], bias: float) -> float:
    """Return the share of the energy that is grouped with its source."""
    odds: FloatArray = bias + sum(weight * one["features"][name] for name, weight in weights.items())
    labels = partition((odds + odds.T) / 2 * np.outer(one["energies"], one["energies"]), 2)
    held = np.stack([one["by_source"][labels == at].sum(axis=0) for at in (0, 1)])
    return float(max(np.trace(held), np.trace(held[::-1])) / held.sum())


def main(n_draws: int = N_DRAWS, n_processes: int = 2) -> None:
    """Print the weights, and the scores of kinds that were left out."""
    jobs = [(kind, draw) for draw, kind in product(range(n_draws), KINDS)]
    with ProcessPoolExecutor(n_processes) as pool:
        examples = list(pool.map(example, jobs))
    lines = []
    for kind in KINDS:
        fitted = regression([one for one in examples if one["kind"] != kind])
        scores = [right_share(one, *fitted) for one in examples if one["kind"] == kind]
        lines.append(f"{kind:20} {np.mean(scores):.3f}")
    weights, bias = regression(examples)
    lines += [f'    "{name}": {weight:.2f},' for name, weight in weights.items()]
    sys.stdout.write("\n".join([*lines, f"BIAS = {bias:.2f}", ""]))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
