"""Superimposed images of digits in heavy noise, and noisy digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from nonneg._typing import FloatArray
from nonneg.solvers import factorize
from reproduction.artifacts import Artifact
from reproduction.experiment import Experiment, Record, Setting
from reproduction.purification.against_nmf import (
    comparison_table,
    found_parts,
    nearest_verdict,
    scores,
)
from reproduction.purification.planted_runs import short
from reproduction.registry import TITLES

NAME = "purification/digits"
N_DRAWS = 3
NOISES = (0.5, 1.0, 2.0, 4.0)
NUMBERS = (2000, 5000)
N_PARTS = 16


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per set of images, noise level and draw."""
    if quick:
        cases: list[dict[str, Any]] = [{"pictures": "overlaid", "number": 2000, "noise": 1.0}]
    else:
        cases = [
            {"pictures": "overlaid", "number": number, "noise": noise}
            for number in NUMBERS
            for noise in NOISES
        ]
        cases += [{"pictures": "as they are", "number": 1797, "noise": noise} for noise in NOISES]
    common = {"threads": 1, "quick": quick}
    return [common | case | {"draw": draw} for draw in range(1 if quick else N_DRAWS) for case in cases]


def overlaid_features(rng: np.random.Generator) -> FloatArray:
    """Return images of digits as features."""
    digits = load_digits()
    chosen = [rng.choice(np.flatnonzero(digits.target == kind), 2, replace=False) for kind in range(10)]
    pictures = digits.data[np.concatenate(chosen)]
    return pictures / pictures.sum(axis=1, keepdims=True)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Find features of one set of images by all methods."""
    rng = np.random.default_rng([1812, setting["draw"]])
    if setting["pictures"] == "overlaid":
        true = overlaid_features(rng)
        n = len(true)
        weights = (rng.random((setting["number"], n)) < 3 / n) * rng.random((setting["number"], n))
        clean = weights @ true
    else:
        digits = load_digits().data
        clean = digits * (1.5 / digits.sum(axis=1).mean())
        true = np.asarray(factorize(clean, N_PARTS, init="nndsvda", max_iter=500, tol=1e-6, rng=0).H)
        n = N_PARTS
    X = clean + rng.uniform(-1, 1, clean.shape) * (setting["noise"] / 64)
    found = found_parts(X, n, seed=setting["draw"], kl=not setting["quick"])
    records = []
    for name, (features, facts) in found.items():
        # How well the samples without noise lie in the span of what was found.
        basis = np.linalg.qr(features.T)[0]
        lost = np.linalg.norm(clean - (clean @ basis) @ basis.T) / np.linalg.norm(clean)
        records.append({"method": name, **scores(true, features), "lost": short(float(lost)), **facts})
    return records


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return a table and the claims."""
    measures = {"mean": "mean cosine", "smallest": "smallest cosine", "found": "share found"}
    measures |= {"lost": "of the noiseless samples lost", "n_iter": "iterations", "seconds": "seconds"}
    verdicts = [
        nearest_verdict(
            f"overlaid, {number} samples",
            records,
            [{"pictures": "overlaid", "number": number, "noise": noise} for noise in NOISES],
            N_DRAWS,
        )
        for number in NUMBERS
    ]
    verdicts.append(
        nearest_verdict(
            "digits as they are (weights that are rarely zero and depend on one another)",
            records,
            [{"pictures": "as they are", "noise": noise} for noise in NOISES],
            N_DRAWS,
        )
    )
    return [
        comparison_table(
            "A feature is found where its cosine is at least 0.9. Mean ± standard deviation over draws.",
            records,
            {"pictures": "pictures", "number": "samples", "noise": "noise c"},
            measures,
        ),
        *verdicts,
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, parallel=False)
