"""Whole iterations of TL-NMF and joint diagonalization for small problems, in the compiled core.

The twin is the array code of `nonneg.transforms`, which serves any size, type and device. Arrays have the
axes of its states. Those that come out are views of arrays with the frames last, which the next call takes
without a copy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import FloatArray
from nonneg.kernels.majorization_equalization import LEAST_EPS0

# Above this length products of BLAS are faster than loops over the rows of a small matrix.
LONGEST = 40
# The data and three points of a search stay in the cache of a core.
LARGEST = 1 << 17

ROTATION_MEASURES = ("gradient", "step", "search_succeeded")


class TransformStep(NamedTuple):
    """Result of an iteration."""

    transform: FloatArray  # rows are atoms
    frames: FloatArray  # virtual realizations, transformed
    # Activations, one row per frame, and components, rows of sum 1; None for joint diagonalization.
    factors: tuple[FloatArray, FloatArray] | None
    measures: dict[str, FloatArray]  # L, and C and I with factors; gradient, step and search_succeeded
    # Power of the frames, of shape (batch, m, n), and cross power of their samples, of shape (batch, m (m -
    # 1) / 2, n), where there are factors: what the next iteration begins with.
    moments: tuple[FloatArray, FloatArray] | None


def is_supported(array: Any, eps0: float | None = None) -> bool:
    """Tell whether the core takes virtual realizations (..., m), and an eps0 that keeps models above zero."""
    return (
        core() is not None
        and isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.shape[-1] <= LONGEST
        and array.size <= LARGEST
        and (eps0 is None or eps0 >= LEAST_EPS0)
    )


def transform_step(
    columns: FloatArray,
    eps0: float,
    transform: FloatArray,
    frames: FloatArray,
    factors: tuple[FloatArray, FloatArray] | None = None,
    *,
    n_nmf_updates: int = 0,
    n_rotation_updates: int = 1,
    max_trials: int = 20,
    moments: tuple[FloatArray, FloatArray] | None = None,
) -> TransformStep:
    """Make an iteration of TL-NMF, or of joint diagonalization where there are no factors.

    TL-NMF updates the factors by majorization-equalization, then the transform by quasi-Newton steps with
    strong Wolfe conditions. Joint diagonalization makes quasi-Newton steps, backtracking until L decreases.

    Parameters
    ----------
    columns : array of shape (rank, m, n)
        The data with the frames last, contiguous.
    eps0 : float
        Added to variances and model.
    transform : array of shape (batch, m, m)
        Rows are atoms.
    frames : array of shape (batch, rank * n, m)
        Virtual realizations, transformed.
    factors : tuple of array, optional
        Activations of shape (batch, n, k), and components of shape (batch, k, m) with rows of sum 1.
    n_nmf_updates, n_rotation_updates : int, default 0 and 1
        Updates of the factors and of the transform per iteration.
    max_trials : int, default 20
        Steps that a search may try.
    moments : tuple of array, optional
        Those that came with `frames`; None computes them.

    Returns
    -------
    TransformStep
        New arrays; those given are not changed.

    Notes
    -----
    A search ends where only rounding is left to gain, as in `strong_wolfe`.
    """
    batch, m, n = len(transform), columns.shape[1], columns.shape[2]
    before = np.ascontiguousarray(frames.swapaxes(1, 2))
    transforms, after = np.array(transform, order="C"), np.empty_like(before)
    cost = 2.0 * batch * columns.size * m
    names: tuple[str, ...] = ("L", *ROTATION_MEASURES)
    pair = new = None
    if factors is not None:
        h, w = (np.array(factor.swapaxes(1, 2), order="C") for factor in factors)
        pair, new = (w, h), (np.empty((batch, m, n)), np.empty((batch, m * (m - 1) // 2, n)))
        cost = 2.0 * cost + 12.0 * h.size * m * n_nmf_updates
        names = ("C", "L", "I", *ROTATION_MEASURES)
    measures = np.empty((len(names), batch))
    options = (n_nmf_updates, n_rotation_updates, max_trials, team_size(cost))
    core().transform_step(columns, eps0, transforms, before, after, pair, moments, new, measures, *options)
    return TransformStep(
        transforms,
        after.swapaxes(1, 2),
        None if pair is None else (pair[1].swapaxes(1, 2), pair[0].swapaxes(1, 2)),
        dict(zip(names, measures, strict=True)),
        new,
    )
