"""Samples of the purification model y = A* x* + noise (Li, Liang & Risteski), with sparse weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arguments import checked_count
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData, check_numbers
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError, as_data_errors

WEIGHTS = ("binary", "uniform")
FEATURES = ("sparse", "uniform", "signed")
NOISES = ("none", "adversarial", "unbiased")
# Sign patterns of adversarial noise: few, so that they do not average out.
PATTERNS = 5


def purification_data(
    n_samples: int = 4000,
    n_features: int = 100,
    n_components: int = 20,
    *,
    sparsity: float = 3.0,
    weights: str = "binary",
    features: Any = "sparse",
    noise: str = "none",
    noise_level: float = 0.0,
    rng: Seed = None,
) -> PlantedData:
    """Return samples that satisfy assumptions (A1) and (A2), with noise (N1) or (N2).

    Parameters
    ----------
    n_samples : int, default 4000
        Number of samples.
    n_features : int, default 100
        Length m of a sample.
    n_components : int, default 20
        Number n of true features.
    sparsity : float, default 3
        Expected number s of nonzero weights, at most n: each is nonzero with probability s / n.
    weights : {"binary", "uniform"}, default "binary"
        Nonzero weights are 1, or uniform on [0, 1].
    features : {"sparse", "uniform", "signed"} or array of shape (n_components, n_features), default "sparse"
        "sparse": a tenth of the entries is uniform and one more is large; "uniform": all are uniform;
        "signed": all are normal. Rows are scaled to l1 norm one. Those of an array stay as they are, so that
        further samples of the same features can be drawn.
    noise : {"none", "adversarial", "unbiased"}, default "none"
        "adversarial": (N1) with one of five fixed sign patterns, drawn for each sample; "unbiased": (N2),
        independent and uniform.
    noise_level : float, default 0
        Bound of the l1 norm of a sample's noise: entries are at most ``noise_level / n_features``.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.

    Returns
    -------
    PlantedData
        The samples, the true features as `H` (the paper's A*, transposed) and the true weights as `W` (the
        paper's x*, one per row).
    """
    for name, value, known in (("weights", weights, WEIGHTS), ("noise", noise, NOISES)):
        UnknownNameError.check(name, value, known)
    check_numbers(purification_data, locals(), lowest=0)
    m, n = checked_count("n_features", n_features), checked_count("n_components", n_components)
    if noise == "none" and noise_level > 0:
        raise InvalidParameterError(
            f"noise_level={noise_level:g} contradicts noise='none'. Choose a noise model: "
            f"{', '.join(NOISES[1:])}."
        )
    if not 0 < sparsity <= n:
        raise InvalidParameterError(f"sparsity must be above 0 and at most n_components={n}, got {sparsity}.")
    rng = generator(rng)
    H = true_features(features, n, m, rng)
    patterns = rng.choice([-1.0, 1.0], size=(PATTERNS, m))
    W = (rng.random((n_samples, n)) < sparsity / n).astype(np.float64)
    if weights == "uniform":
        W *= rng.random((n_samples, n))
    X = W @ H
    if noise == "unbiased":
        X += noise_level / m * rng.uniform(-1.0, 1.0, X.shape)
    elif noise == "adversarial":
        X += noise_level / m * patterns[rng.integers(PATTERNS, size=n_samples)]
    return PlantedData(X, H, W)


def true_features(features: Any, n: int, m: int, rng: np.random.Generator) -> FloatArray:
    """Return n true features of length m: drawn by name, or the array."""
    if not isinstance(features, str):
        with as_data_errors("features"):
            H = np.array(features, dtype=np.float64)
        if H.shape != (n, m):
            raise ShapeError(f"Expected features of shape ({n}, {m}), got {H.shape}.")
        return H
    UnknownNameError.check("features", features, FEATURES)
    if features == "sparse":
        H = rng.random((n, m)) * (rng.random((n, m)) < 0.1)
        H[np.arange(n), rng.integers(m, size=n)] += 0.5
    elif features == "uniform":
        H = rng.random((n, m))
    else:
        H = rng.normal(size=(n, m))
    return H / np.abs(H).sum(axis=1, keepdims=True)
