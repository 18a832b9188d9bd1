"""Perturbed initializations, and a callback that records errors, for runs with known true features."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError
from nonneg.iteration import Progress
from nonneg.metrics.mixing import mixing

SIGNS = ("both", "positive", "negative")


class MixingRecorder:
    """A callback of `purify` that records the mixing with the true features after each iteration.

    Parameters
    ----------
    true : array-like of shape (n_components, n_features)
        The true features, in the order of `init`.
    beta : float, default 4.0
        Weight of the negative part in the potential; see `nonneg.metrics.Mixing.potential`.

    Attributes
    ----------
    history : dict of str to list of float
        After each iteration: `e_norm`, `n_norm`, `potential` and `normalized_error`; see
        `nonneg.metrics.mixing`.
    """

    def __init__(self, true: Any, *, beta: float = 4.0) -> None:
        self.true = np.asarray(true, dtype=np.float64)
        self.beta = beta
        self.history: dict[str, list[float]] = {
            name: [] for name in ("e_norm", "n_norm", "potential", "normalized_error")
        }

    def __call__(self, now: Progress) -> None:
        state = now.state
        found = mixing(self.true, state.H if state.balancing is None else state.H / state.balancing[:, None])
        for name, values in self.history.items():
            values.append(found.potential(self.beta) if name == "potential" else getattr(found, name))


def perturbed_features(
    true: Any,
    level: float = 0.1,
    *,
    signs: str = "both",
    diagonal: float = 0.0,
    outside: float = 0.0,
    rng: Seed = None,
) -> FloatArray:
    """Return A* (Sigma + E) + N with a mixing of given size: a warm start for studies, assumption (A3).

    Parameters
    ----------
    true : array-like of shape (n_components, n_features)
        The true features, one per row.
    level : float, default 0.1
        The size l = ||E||_s of the mixing.
    signs : {"both", "positive", "negative"}, default "both"
        Signs of the entries of E.
    diagonal : float, default 0.0
        Entries of Sigma are uniform in [1 - diagonal, 1 + diagonal].
    outside : float, default 0.0
        The l1 norm of each column of N, which lies outside the span of the true features.
    rng : None, int, Generator, RandomState or SeedSequence
        Draws Sigma, E and N.

    Returns
    -------
    array of shape (n_components, n_features)
        The perturbed features.
    """
    if signs not in SIGNS:
        raise UnknownNameError.of("signs", signs, SIGNS)
    if not 0 <= level < np.inf or not 0 <= diagonal < 1 or not 0 <= outside < np.inf:
        raise InvalidParameterError(
            f"Expected level >= 0, 0 <= diagonal < 1 and outside >= 0, got {level}, {diagonal} and {outside}."
        )
    rng = generator(rng)
    H = np.asarray(true, dtype=np.float64)
    if H.ndim != 2:
        raise ShapeError(f"Expected true features of shape (n, m), one per row, got {H.shape}.")
    n, m = H.shape
    if outside > 0 and n >= m:
        raise InvalidParameterError(
            f"{n} features of length {m} leave nothing outside their span. Use outside=0, or longer features."
        )
    E = rng.random((n, n))
    flips = rng.choice([-1.0, 1.0], size=(n, n))
    E = E * flips if signs == "both" else E if signs == "positive" else -E
    np.fill_diagonal(E, 0.0)
    size = max(np.abs(E).sum(axis=0).max(), np.abs(E).sum(axis=1).max())
    mixed = np.diag(rng.uniform(1.0 - diagonal, 1.0 + diagonal, n)) + (E * (level / size) if size > 0 else E)
    perturbed: FloatArray = mixed.T @ H
    if outside > 0:
        N = rng.normal(size=(n, m))
        basis = np.linalg.qr(H.T)[0]
        N -= (N @ basis) @ basis.T
        perturbed = perturbed + N * (outside / np.abs(N).sum(axis=1, keepdims=True))
    return perturbed
