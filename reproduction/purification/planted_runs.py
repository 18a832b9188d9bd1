"""Draws of the paper's model, runs from a perturbed truth, and how far they end from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import polar

from nonneg._typing import FloatArray
from nonneg.metrics.mixing import mixing
from nonneg.purification import purify
from nonneg.purification.certificate import weight_constants
from reproduction.data import PurificationModel, purification_model
from reproduction.experiment import Setting
from reproduction.purification.designs import all_patterns, orthogonal_array
from reproduction.purification.perturbation import MixingRecorder, perturbed_features

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
# A setting says alpha, eta and r as the paper does.
OPTIONS = {
    "update": "update",
    "decode": "decode",
    "alpha": "threshold",
    "eta": "step_size",
    "r": "scale",
    "pseudo_inverse": "pseudo_inverse",
    "balance": "balance",
    "batch_size": "batch_size",
}
MIXED = ("binary", "uniform", "heavy")
# Noise that is made here -> the noise of the model that it replaces.
DESIGNED = {"optimized": "adversarial", "dependent": "unbiased"}


class Planted(NamedTuple):
    """Samples with their truth."""

    X: FloatArray  # the samples
    W: FloatArray  # their true weights
    sample_weight: FloatArray | None  # how much each sample counts
    model: PurificationModel  # what they were drawn from


def settings(
    cases: Iterable[dict[str, Any]], n_draws: int, size: int = 5, common: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Combine cases with batches of draws."""
    listed = [COMMON | (common or {}) | case for case in cases]
    return [
        case | {"first_draw": first, "n_draws": min(size, n_draws - first)}
        for first in range(0, n_draws, size)
        for case in listed
    ]


def draw_samples(setting: Setting, draw: int) -> tuple[Planted, FloatArray]:
    """Draw samples and an initialization."""
    n, m, s = setting["n"], setting["m"], setting["s"]
    seeds = np.random.SeedSequence([n, m, draw]).spawn(3)
    weights = setting["weights"]
    model = purification_model(
        m,
        n,
        sparsity=s,
        weights="binary" if weights == "mixed" else weights,
        features=setting["features"],
        noise=DESIGNED.get(str(setting["noise"]), str(setting["noise"])),
        noise_level=setting["noise_level"],
        proportions=None if setting.get("uneven") != "frequency" else _proportions(n, setting["ratio"]),
        rng=np.random.default_rng(seeds[0]),
    )
    W, sample_weight, noise = _weights_and_noise(setting, model, np.random.default_rng(seeds[1]))
    init = perturbed_features(
        model.H,
        setting["level"],
        signs=setting["signs"],
        outside=setting["outside"],
        rng=np.random.default_rng(seeds[2]),
    )
    if "symmetry" in setting:
        init = _of_symmetry(init, model.H, setting["symmetry"])
    return Planted(W @ model.H + noise, W, sample_weight, model), init


def _weights_and_noise(
    setting: Setting, model: PurificationModel, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    samples, sample_weight = setting["samples"], None
    n, m = model.H.shape
    if samples == "population":
        W, sample_weight = all_patterns(model.probabilities)
    elif samples == "array":
        W = orthogonal_array(n, setting["s"], setting.get("blocks", 1), setting["weights"])
    data: Any = model.draw(samples if isinstance(samples, int) else len(W), rng)
    noise = data.X - data.W @ model.H
    if isinstance(samples, int):
        W = data.W
    if setting["weights"] == "mixed":
        for at, kind in enumerate(MIXED):
            full = purification_model(m, n, sparsity=n, weights=kind, features=model.H, rng=rng)
            drawn: Any = full.draw(len(W), rng).W
            W[:, at::3] *= drawn[:, at::3]
    if setting.get("uneven") == "size":
        W = W * np.sqrt(_proportions(n, setting["ratio"]))
    if setting["noise"] in DESIGNED:
        noise = setting["noise_level"] / m * _designed_signs(setting["noise"], W, m, rng)
    return W, sample_weight, noise


def _designed_signs(kind: str, W: FloatArray, m: int, rng: np.random.Generator) -> FloatArray:
    """Return the signs of noise whose entries are as large as allowed."""
    if kind == "optimized":
        # What moves the first feature the most, if it is found by least squares with the true weights.
        centered = W - W.mean(axis=0)
        influence = np.linalg.solve(centered.T @ centered, centered.T)[0]
        return np.where(influence < 0, -1.0, 1.0)[:, None] * rng.choice([-1.0, 1.0], m)
    # The pattern that belongs to the largest weight; its sign is random, so that it is unbiased for every x*.
    patterns = rng.choice([-1.0, 1.0], (W.shape[1], m))
    return rng.choice([-1.0, 1.0], (len(W), 1)) * patterns[np.argmax(W, axis=1)]


def _proportions(n: int, ratio: float) -> FloatArray:
    """Return factors that fall geometrically from 1 to 1 / ratio."""
    return np.geomspace(1.0, 1.0 / ratio, n)


def _of_symmetry(init: FloatArray, true: FloatArray, symmetry: str) -> FloatArray:
    """Return an init whose mixing E has another shape, and the same size ||E||_s."""
    found = mixing(true, init)
    E = found.off_diagonal
    if symmetry == "one other":
        # The next feature, with the sign that it had.
        other = np.roll(np.eye(len(E)), 1, axis=0) * np.where(E < 0, -1.0, 1.0)
    else:
        other = E + E.T if symmetry == "symmetric" else E - E.T
    size = np.abs(other).sum(axis=0).max()
    return (np.eye(len(E)) + other * (found.e_symmetric_norm / size)).T @ true


def run(setting: Setting) -> list[dict[str, Any]]:
    """Purify a part of the draws."""
    draws = range(setting["first_draw"], setting["first_draw"] + setting["n_draws"])
    return [{"draw": draw, **_run_one(setting, draw)} for draw in draws]


def _run_one(setting: Setting, draw: int) -> dict[str, Any]:
    planted, init = draw_samples(setting, draw)
    H = planted.model.H
    recorder = MixingRecorder(H)
    result = purify(
        planted.X,
        init,
        callback=recorder,
        sample_weight=planted.sample_weight,
        max_iter=setting["max_iter"],
        tol=setting.get("tol", 0.0),
        check_init="report",
        **{name: setting[key] for key, name in OPTIONS.items() if key in setting},
    )
    history, begun, ended = recorder.history, mixing(H, init), mixing(H, result.H)
    record: dict[str, Any] = {
        "begin": short(begun.e_norm),
        "estimate": short(result.init_quality.level),
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
    """Return the error of least squares with the true weights, a lower bound in practice."""
    centered = planted.W - planted.W.mean(axis=0)
    best = np.linalg.solve(centered.T @ centered, centered.T @ planted.X)
    return mixing(planted.model.H, best).normalized_error


def short(value: float) -> float | None:
    """Return a number with the digits that are kept in records."""
    return float(f"{value:.4g}") if np.isfinite(value) else None


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    samples = {"population": 2 ** setting["n"], "array": setting.get("blocks", 1) * (setting["n"] + 3) ** 2}
    n_rows = samples.get(setting["samples"], setting["samples"])
    each = 4e-10 * setting["n"] * setting["m"] * n_rows * setting["max_iter"] + 0.02
    return float(each * setting["n_draws"])


def medians(groups: dict[tuple[Any, ...], list[dict[str, Any]]], key: str) -> dict[tuple[Any, ...], float]:
    """Return the median over draws of one entry, group by group."""
    return {place: middle([record[key] for record in group]) for place, group in groups.items()}


def middle(values: Sequence[float | None]) -> float:
    """Return the median."""
    return float(np.median([np.inf if value is None else value for value in values]))


def worst(values: Sequence[float | None]) -> float:
    """Return the largest."""
    return max(np.inf if value is None else float(value) for value in values)
