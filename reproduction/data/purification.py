"""The purification model with all designs of the experiments: weights, noise, uneven frequencies, streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nonneg._arguments import checked_count, checked_nonnegative
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData
from nonneg.datasets.purification import PATTERNS, true_features
from nonneg.exceptions import InvalidParameterError, UnknownNameError

WEIGHTS = ("binary", "uniform", "heavy")
NOISES = ("none", "adversarial", "correlated", "unbiased")
# Heavy-tailed weights follow a power law with this exponent on [SMALLEST, 1].
TAIL, SMALLEST = 1.5, 0.05


@dataclass(frozen=True)
class PurificationModel:
    """A distribution of samples from which any number can be drawn.

    Attributes
    ----------
    H : array of shape (n_components, n_features)
        The true features.
    probabilities : array of shape (n_components,)
        The probability that each weight is nonzero.
    weights : {"binary", "uniform", "heavy"}
        The distribution of the nonzero weights.
    noise : {"none", "adversarial", "correlated", "unbiased"}
        The noise model.
    level : float
        Bound of the l1 norm of a sample's noise.
    directions : array of shape (k, n_features)
        Sign patterns of the biased noise.
    """

    H: FloatArray
    probabilities: FloatArray
    weights: str
    noise: str
    level: float
    directions: FloatArray

    def draw(self, n_samples: int, rng: Seed = None, dtype: npt.DTypeLike = np.float64) -> PlantedData:
        """Draw independent samples."""
        n_samples = checked_count("n_samples", n_samples, 0)
        rng = generator(rng)
        n, m = self.H.shape
        W = (rng.random((n_samples, n)) < self.probabilities).astype(np.float64)
        if self.weights == "uniform":
            W *= rng.random((n_samples, n))
        elif self.weights == "heavy":
            lost = rng.random((n_samples, n)) * (1.0 - SMALLEST**TAIL)
            W *= SMALLEST * (1.0 - lost) ** (-1.0 / TAIL)
        X = W @ self.H
        if self.noise == "unbiased":
            X += self.level / m * rng.uniform(-1.0, 1.0, X.shape)
        elif self.noise == "adversarial":
            X += self.level / m * self.directions[rng.integers(len(self.directions), size=n_samples)]
        elif self.noise == "correlated":
            # The pattern follows from the weights: that of the largest one, which is what hurts most.
            X += self.level / m * self.directions[np.argmax(W, axis=1)] * (W.max(axis=1, keepdims=True) > 0)
        return PlantedData(X.astype(dtype), self.H.astype(dtype), W.astype(dtype))

    def batches(
        self, n_samples: int, batch_size: int, rng: Seed = None, dtype: npt.DTypeLike = np.float64
    ) -> Iterator[FloatArray]:
        """Draw a stream of samples in batches; the last one may be smaller."""
        n_samples, batch_size = (
            checked_count("n_samples", n_samples, 0),
            checked_count("batch_size", batch_size),
        )
        rng = generator(rng)
        for start in range(0, n_samples, batch_size):
            yield self.draw(min(batch_size, n_samples - start), rng, dtype).X


def purification_model(
    n_features: int = 100,
    n_components: int = 20,
    *,
    sparsity: float = 3.0,
    weights: str = "binary",
    features: Any = "sparse",
    noise: str = "none",
    noise_level: float = 0.0,
    proportions: Any = None,
    rng: Seed = None,
) -> PurificationModel:
    """Return a distribution of samples: the options of `nonneg.datasets.purification_data`, and more.

    "heavy" weights follow a power law of exponent 1.5 on [0.05, 1]; "correlated" noise is (N1) with a pattern
    that follows from the weights; `proportions` are factors of the probabilities of the weights, for uneven
    second moments.
    """
    if weights not in WEIGHTS:
        raise UnknownNameError.of("weights", weights, WEIGHTS)
    if noise not in NOISES:
        raise UnknownNameError.of("noise", noise, NOISES)
    n_features = checked_count("n_features", n_features)
    n_components = checked_count("n_components", n_components)
    noise_level = checked_nonnegative("noise_level", noise_level)
    if noise == "none" and noise_level > 0:
        raise InvalidParameterError(
            f"noise_level={noise_level:g} contradicts noise='none'. Choose a noise model: "
            f"{', '.join(NOISES[1:])}."
        )
    if not 0 < checked_nonnegative("sparsity", sparsity) <= n_components:
        raise InvalidParameterError(
            f"sparsity must be above 0 and at most n_components={n_components}, got {sparsity}."
        )
    rng = generator(rng)
    H = true_features(features, n_components, n_features, rng)
    probabilities = np.full(n_components, sparsity / n_components)
    if proportions is not None:
        given = np.asarray(proportions, dtype=np.float64)
        probabilities = probabilities * (given if given.shape == (n_components,) else np.nan)
        if not ((probabilities > 0) & (probabilities <= 1)).all():
            raise InvalidParameterError(
                f"proportions must be {n_components} positive numbers that keep s / n times each at most 1."
            )
    n_patterns = n_components if noise == "correlated" else PATTERNS
    directions = rng.choice([-1.0, 1.0], size=(n_patterns, n_features))
    return PurificationModel(H, probabilities, weights, noise, noise_level, directions)
