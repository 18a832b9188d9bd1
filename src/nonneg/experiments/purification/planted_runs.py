"""Draws of the paper's model, runs from a perturbed truth, and how far they end from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import polar

from nonneg._typing import FloatArray
from nonneg.datasets import PurificationModel, purification_model
from nonneg.experiments.experiment import Setting
from nonneg.experiments.purification.designs import all_patterns, orthogonal_array
from nonneg.metrics.mixing import mixing
from nonneg.purification import perturbed_features, purify
from nonneg.purification.balance import weight_constants

COMMON = {
    "n": 20,
    "m": 100,
    "s": 3.0,
    "samples": 4000,
    "weights": "binary",
    "features": "sparse",
    "noise": "none",
    "noise_level": 0.0,
    "level": 0.1,
    "signs": "both",
    "outside": 0.0,
    "max_iter": 60,
    "threads": 1,
}
"""What a setting says unless it says something else."""
OPTIONS = ("update", "decode", "alpha", "eta", "r", "anneal", "pseudo_inverse", "balance")
MIXED = ("binary", "uniform", "heavy")


class Planted(NamedTuple):
    """Samples with their truth.

    Attributes
    ----------
    X : array of shape (n_samples, m)
        The samples.
    W : array of shape (n_samples, n)
        Their true weights.
    shares : array of shape (n_samples,) or None
        How much each sample counts.
    model : PurificationModel
        What they were drawn from.
    """

    X: FloatArray
    W: FloatArray
    shares: FloatArray | None
    model: PurificationModel


def settings(
    cases: Iterable[dict[str, Any]], n_draws: int, size: int = 5, common: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Combine cases with parts of the draws.

    Parameters
    ----------
    cases : iterable of dict
        What differs from setting to setting.
    n_draws, size : int
        How many draws, and how many of them make a trial.
    common : dict, optional
        What all of them say.

    Returns
    -------
    list of dict
        Part after part of the draws, so that the first ones are of use alone.
    """
    listed = [COMMON | (common or {}) | case for case in cases]
    return [
        case | {"first_draw": first, "n_draws": min(size, n_draws - first)}
        for first in range(0, n_draws, size)
        for case in listed
    ]


def draw_samples(setting: Setting, draw: int) -> tuple[Planted, FloatArray]:
    """Draw samples and a start.

    Parameters
    ----------
    setting : mapping
        With the entries of `COMMON`. ``samples`` is a number, "population" (every pattern with its
        probability) or "array" (any two weights exactly independent). With ``uneven`` "frequency" or "size"
        the second moments of the weights fall from feature to feature, by ``ratio`` in all. With ``symmetry``
        the mixing of the start is "symmetric" or "skew", or each feature holds "one other".
    draw : int
        Which draw; settings that agree in n and m have the same features.

    Returns
    -------
    planted : Planted
        Samples and truth.
    start : array of shape (n, m)
        The perturbed truth.
    """
    n, m, s = setting["n"], setting["m"], setting["s"]
    seeds = np.random.SeedSequence([n, m, draw]).spawn(3)
    weights = setting["weights"]
    model = purification_model(
        m,
        n,
        sparsity=s,
        weights="binary" if weights == "mixed" else weights,
        features=setting["features"],
        noise=setting["noise"],
        noise_level=setting["noise_level"],
        proportions=None if setting.get("uneven") != "frequency" else _proportions(n, setting["ratio"]),
        rng=np.random.default_rng(seeds[0]),
    )
    W, shares, noise = _weights_and_noise(setting, model, np.random.default_rng(seeds[1]))
    start = perturbed_features(
        model.H,
        setting["level"],
        signs=setting["signs"],
        outside=setting["outside"],
        rng=np.random.default_rng(seeds[2]),
    )
    if "symmetry" in setting:
        start = _of_symmetry(start, model.H, setting["symmetry"])
    return Planted(W @ model.H + noise, W, shares, model), start


def _weights_and_noise(
    setting: Setting, model: PurificationModel, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    samples, shares = setting["samples"], None
    n, m = model.H.shape
    if samples == "population":
        W, shares = all_patterns(model.probabilities)
    elif samples == "array":
        W = orthogonal_array(n, setting["s"], setting.get("blocks", 1), setting["weights"])
    data = model.draw(samples if isinstance(samples, int) else len(W), rng)
    noise = data.X - data.W @ model.H
    if isinstance(samples, int):
        W = data.W
    if setting["weights"] == "mixed":
        for at, kind in enumerate(MIXED):
            full = purification_model(m, n, sparsity=n, weights=kind, features=model.H, rng=rng)
            W[:, at::3] *= full.draw(len(W), rng).W[:, at::3]
    if setting.get("uneven") == "size":
        W = W * np.sqrt(_proportions(n, setting["ratio"]))
    return W, shares, noise


def _proportions(n: int, ratio: float) -> FloatArray:
    """Return factors that fall geometrically from 1 to 1 / ratio."""
    return np.geomspace(1.0, 1.0 / ratio, n)


def _of_symmetry(start: FloatArray, true: FloatArray, symmetry: str) -> FloatArray:
    """Return a start whose mixing E has another shape, and the same size ||E||_s."""
    found = mixing(true, start)
    E = found.off_diagonal
    if symmetry == "one other":
        # The next feature, with the sign that it had.
        other = np.roll(np.eye(len(E)), 1, axis=0) * np.where(E < 0, -1.0, 1.0)
    else:
        other = E + E.T if symmetry == "symmetric" else E - E.T
    size = np.abs(other).sum(axis=0).max()
    return (np.eye(len(E)) + other * (found.e_symmetric_norm / size)).T @ true


def run(setting: Setting) -> list[dict[str, Any]]:
    """Purify a part of the draws.

    Parameters
    ----------
    setting : mapping
        As `draw_samples` needs it, with ``first_draw``, ``n_draws``, possibly ``curve`` (keep what every
        iteration measured), and options of `nonneg.purify`.

    Returns
    -------
    list of dict
        One a draw.
    """
    draws = range(setting["first_draw"], setting["first_draw"] + setting["n_draws"])
    return [{"draw": draw, **_run_one(setting, draw)} for draw in draws]


def _run_one(setting: Setting, draw: int) -> dict[str, Any]:
    planted, start = draw_samples(setting, draw)
    H = planted.model.H
    result = purify(
        planted.X,
        start,
        truth=H,
        sample_weight=planted.shares,
        max_iter=setting["max_iter"],
        tol=setting.get("tol", 0.0),
        check_start="report",
        **{name: setting[name] for name in OPTIONS if name in setting},
    )
    history, begun, ended = result.history, mixing(H, start), mixing(H, result.features)
    record: dict[str, Any] = {
        "begin": short(begun.e_norm),
        "estimate": short(result.start.level),
        "e_norm": short(ended.e_norm),
        "relative_e_norm": short(ended.relative_e_norm),
        "n_norm": short(ended.n_norm),
        "error": short(ended.normalized_error),
        "smallest_own": short(float(ended.diagonal.min())),
        "n_iter": result.n_iter,
    }
    if setting.get("decode") == "linear":
        # Of E and Sigma together, in the paper's orientation.
        first, last = (np.diag(found.diagonal) + found.off_diagonal for found in (begun, ended))
        record["from_rotation"] = short(float(np.abs(last - polar(first)[0]).max()))
        record["rotation"] = short(float(np.abs(polar(first)[0] - np.eye(len(first))).sum(axis=0).max()))
    if setting.get("constants"):
        constants = weight_constants(planted.W)
        record |= {name: short(getattr(constants, name)) for name in ("C1", "c2", "C2")}
        record["density"] = short(constants.density(len(H)))
    if setting["noise"] != "none":
        record["known_weights"] = short(error_of_known_weights(planted))
    if setting.get("curve"):
        record["e_curve"] = [short(value) for value in (begun.e_norm, *history["e_norm"])]
        record["potentials"] = [short(value) for value in (begun.potential(4.0), *history["potential"])]
    return record


def error_of_known_weights(planted: Planted) -> float:
    """Return the error of least squares with the true weights: what no method can be asked to beat.

    Parameters
    ----------
    planted : Planted
        Samples and truth.

    Returns
    -------
    float
        Largest l1 distance of a feature, both scaled to l1 norm one.
    """
    centred = planted.W - planted.W.mean(axis=0)
    best = np.linalg.solve(centred.T @ centred, centred.T @ planted.X)
    return mixing(planted.model.H, best).normalized_error


def short(value: float) -> float | None:
    """Return a number with the digits that are kept in records.

    Parameters
    ----------
    value : float
        Any.

    Returns
    -------
    float or None
        Four significant digits; None for what is not finite, which JSON cannot hold.
    """
    return float(f"{value:.4g}") if np.isfinite(value) else None


def cost(setting: Setting) -> float:
    """Return how long a trial takes in proportion to others.

    Parameters
    ----------
    setting : mapping
        Of this file's `run`.

    Returns
    -------
    float
        About seconds on one thread.
    """
    samples = {"population": 2 ** setting["n"], "array": setting.get("blocks", 1) * (setting["n"] + 3) ** 2}
    n_rows = samples.get(setting["samples"], setting["samples"])
    each = 4e-10 * setting["n"] * setting["m"] * n_rows * setting["max_iter"] + 0.02
    return float(each * setting["n_draws"])


def medians(groups: dict[tuple[Any, ...], list[dict[str, Any]]], key: str) -> dict[tuple[Any, ...], float]:
    """Return the median over draws of one entry, group by group.

    Parameters
    ----------
    groups : dict
        Of `nonneg.experiments.grouping.grouped`.
    key : str
        The entry; None counts as infinite.

    Returns
    -------
    dict
        With the same keys.
    """
    return {place: middle([record[key] for record in group]) for place, group in groups.items()}


def middle(values: Sequence[float | None]) -> float:
    """Return the median.

    Parameters
    ----------
    values : sequence of float or None
        None counts as infinite.

    Returns
    -------
    float
        Of all.
    """
    return float(np.median([np.inf if value is None else value for value in values]))


def worst(values: Sequence[float | None]) -> float:
    """Return the largest.

    Parameters
    ----------
    values : sequence of float or None
        None counts as infinite.

    Returns
    -------
    float
        Of all.
    """
    return max(np.inf if value is None else float(value) for value in values)
