"""A product of two random nonnegative factors with the noise of a chosen loss."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData
from nonneg.exceptions import InvalidParameterError, UnknownNameError

NOISES = ("gaussian", "poisson", "gamma")


def low_rank_plus_noise(
    n_samples: int = 2000,
    n_features: int = 1000,
    n_components: int = 20,
    *,
    noise: str = "gaussian",
    level: float = 0.1,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
) -> PlantedData:
    """Return nonnegative data of low rank with noise.

    Parameters
    ----------
    n_samples : int, default 2000
        Rows of X.
    n_features : int, default 1000
        Columns of X.
    n_components : int, default 20
        Rank of the noiseless data.
    noise : {"gaussian", "poisson", "gamma"}, default "gaussian"
        The noise for which a loss is the negative log-likelihood: additive and clipped at zero (Frobenius),
        counts (Kullback-Leibler), or multiplicative (Itakura-Saito; all entries stay positive).
    level : float, default 0.1
        The noise's standard deviation relative to the data: to their root mean square ("gaussian"), to an
        entry of mean size ("poisson", so that the mean count is ``1 / level**2``), or to each entry
        ("gamma"). Zero for none.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    PlantedData
        `X`, and the factors with ``X = W H`` up to noise. Entries of the factors are absolute values of
        normal numbers, so that entries of X have mean ``2 n_components / pi`` (the count given by `level` for
        "poisson").
    """
    if noise not in NOISES:
        raise UnknownNameError.of("noise", noise, NOISES)
    if level < 0 or (noise == "poisson" and level == 0):
        raise InvalidParameterError(
            f"level must be at least 0, and above 0 for noise='poisson'. Got level={level} with "
            f"noise={noise!r}."
        )
    rng = generator(rng)
    W = np.abs(rng.standard_normal((n_samples, n_components)))
    H = np.abs(rng.standard_normal((n_components, n_features)))
    if noise == "poisson":
        H *= np.pi / (2 * n_components * level**2)
    X = _with_noise(W @ H, noise, level, rng)
    return PlantedData(X=X.astype(dtype, copy=False), W=W.astype(dtype), H=H.astype(dtype))


def _with_noise(clean: FloatArray, noise: str, level: float, rng: np.random.Generator) -> FloatArray:
    if noise == "poisson":
        return rng.poisson(clean).astype(np.float64)
    if level == 0:
        return clean
    if noise == "gamma":
        shape = level**-2
        return clean * (rng.standard_gamma(shape, size=clean.shape) / shape)
    deviation = level * np.sqrt(np.mean(np.square(clean)))
    return np.maximum(clean + deviation * rng.standard_normal(clean.shape), 0.0)
