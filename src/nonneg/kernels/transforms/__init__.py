"""Whole iterations of TL-NMF and JD+NMF for small problems: one restart at a time, in the compiled core.

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

# Above this length products of BLAS are faster than loops over the rows of a small matrix.
LONGEST = 40
MOST_COMPONENTS = 40
# The data and three points of a search stay in the cache of a core.
LARGEST = 1 << 17
# One division serves four entries of a model: their product must not underflow.
LEAST_EPS0 = 1e-75

FIT_MEASURES = ("C", "L", "I")
ROTATION_MEASURES = ("gradient", "step", "search_succeeded")


class TLStep(NamedTuple):
    """Where an iteration of TL-NMF led."""

    transform: FloatArray  # rows are atoms
    frames: FloatArray  # virtual realizations, transformed
    activations: FloatArray  # one row per frame
    components: FloatArray  # rows of sum 1
    measures: dict[str, FloatArray]  # C, L, I, gradient, step and search_succeeded
    # Power of the frames, of shape (batch, m, n), and cross power of their samples, of shape (batch, m (m -
    # 1) / 2, n): what the next iteration begins with.
    moments: tuple[FloatArray, FloatArray]


class JDStep(NamedTuple):
    """Where an iteration of joint diagonalization led."""

    transform: FloatArray  # rows are atoms
    frames: FloatArray  # virtual realizations, transformed
    measures: dict[str, FloatArray]  # L, gradient, step and search_succeeded


class NMFStep(NamedTuple):
    """Where updates of factors led."""

    activations: FloatArray  # one row per frame
    components: FloatArray  # rows of sum 1
    measures: dict[str, FloatArray]  # C, L and I


def is_supported(array: Any, eps0: float | None = None, n_components: int | None = None) -> bool:
    """Tell whether the compiled core was built and takes a problem.

    Parameters
    ----------
    array : array of shape (..., m)
        Virtual realizations or variances.
    eps0 : float, optional
        Added to the model; None where there is none.
    n_components : int, optional
        Of the factorization.

    Returns
    -------
    bool
        For float64 in NumPy, few and short frames, and an eps0 that keeps the model away from zero.
    """
    return (
        core() is not None
        and isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.shape[-1] <= LONGEST
        and array.size <= LARGEST
        and (n_components or 0) <= MOST_COMPONENTS
        and (eps0 is None or eps0 >= LEAST_EPS0)
    )


def by_column(virtual: FloatArray) -> FloatArray:
    """Return virtual realizations as the kernels read them.

    Parameters
    ----------
    virtual : array of shape (rank, n, m)
        One frame per row.

    Returns
    -------
    array of shape (rank, m, n)
        Contiguous.
    """
    return np.ascontiguousarray(virtual.swapaxes(1, 2))


def tl_step(
    columns: FloatArray,
    eps0: float,
    transform: FloatArray,
    frames: FloatArray,
    activations: FloatArray,
    components: FloatArray,
    *,
    n_nmf_updates: int = 10,
    n_rotation_updates: int = 1,
    max_trials: int = 20,
    moments: tuple[FloatArray, FloatArray] | None = None,
) -> TLStep:
    """Make an iteration of TL-NMF: majorization-equalization, then quasi-Newton with strong Wolfe conditions.

    Parameters
    ----------
    columns : array of shape (rank, m, n)
        The data, from `by_column`.
    eps0 : float
        Added to variances and model.
    transform : array of shape (batch, m, m)
        Rows are atoms.
    frames : array of shape (batch, rank * n, m)
        Virtual realizations, transformed.
    activations : array of shape (batch, n, k)
        One row per frame.
    components : array of shape (batch, k, m)
        Rows of sum 1.
    n_nmf_updates, n_rotation_updates : int, default 10 and 1
        Updates of the factors and of the transform per iteration.
    max_trials : int, default 20
        Steps that a search may try.
    moments : tuple of array, optional
        Those that came with `frames`; None computes them.

    Returns
    -------
    TLStep
        New arrays; those given are not changed.

    Notes
    -----
    A search ends where only rounding is left to gain, as in `strong_wolfe`.
    """
    batch, m, n = len(transform), columns.shape[1], columns.shape[2]
    transforms, w, h = np.array(transform, order="C"), _turned(components), _turned(activations)
    before = np.ascontiguousarray(frames.swapaxes(1, 2))
    after, measures = np.empty_like(before), np.empty((6, batch))
    new = np.empty((batch, m, n)), np.empty((batch, m * (m - 1) // 2, n))
    cost = 12.0 * h.size * m * n_nmf_updates + 4.0 * batch * columns.size * m
    options = (n_nmf_updates, n_rotation_updates, max_trials, team_size(cost))
    core().transform_step(columns, eps0, transforms, before, after, (w, h), moments, new, measures, *options)
    return TLStep(
        transforms,
        after.swapaxes(1, 2),
        h.swapaxes(1, 2),
        w.swapaxes(1, 2),
        dict(zip(FIT_MEASURES + ROTATION_MEASURES, measures, strict=True)),
        new,
    )


def jd_step(
    columns: FloatArray,
    eps0: float,
    transform: FloatArray,
    frames: FloatArray,
    *,
    n_rotation_updates: int = 1,
    max_trials: int = 30,
) -> JDStep:
    """Make an iteration of joint diagonalization: quasi-Newton, backtracking until L decreases.

    Parameters
    ----------
    columns : array of shape (rank, m, n_frames)
        The data, from `by_column`.
    eps0 : float
        Added to the variances.
    transform : array of shape (batch, m, m)
        Rows are atoms.
    frames : array of shape (batch, rank * n_frames, m)
        Virtual realizations, transformed.
    n_rotation_updates : int, default 1
        Rotations in an iteration.
    max_trials : int, default 30
        Steps that a search may try.

    Returns
    -------
    JDStep
        New arrays; those given are not changed.
    """
    batch, m = len(transform), columns.shape[1]
    transforms = np.array(transform, order="C")
    before = np.ascontiguousarray(frames.swapaxes(1, 2))
    after, measures = np.empty_like(before), np.empty((4, batch))
    options = (0, n_rotation_updates, max_trials, team_size(2.0 * columns.size * m * batch))
    core().transform_step(columns, eps0, transforms, before, after, None, None, None, measures, *options)
    named: dict[str, FloatArray] = dict(zip(("L", *ROTATION_MEASURES), measures, strict=True))
    return JDStep(transforms, after.swapaxes(1, 2), named)


def nmf_step(
    variances: FloatArray,
    eps0: float,
    activations: FloatArray,
    components: FloatArray,
    *,
    n_nmf_updates: int = 10,
) -> NMFStep:
    """Make updates of majorization-equalization for fixed variances.

    Parameters
    ----------
    variances : array of shape (batch, n, m) or (1, n, m)
        Those of each restart, or of all.
    eps0 : float
        Added to variances and model.
    activations : array of shape (batch, n, k)
        One row per frame.
    components : array of shape (batch, k, m)
        Rows of sum 1.
    n_nmf_updates : int, default 10
        Updates of both factors in an iteration.

    Returns
    -------
    NMFStep
        New arrays; those given are not changed.
    """
    w, h = _turned(components), _turned(activations)
    V = np.ascontiguousarray(variances.swapaxes(1, 2))
    inverse, measures = np.empty((len(h), *V.shape[1:])), np.empty((3, len(h)))
    threads = team_size(12.0 * h.size * V.shape[1] * n_nmf_updates)
    core().equalize(V, eps0, w, h, n_nmf_updates, inverse, measures, threads)
    return NMFStep(h.swapaxes(1, 2), w.swapaxes(1, 2), dict(zip(FIT_MEASURES, measures, strict=True)))


def _turned(array: FloatArray) -> FloatArray:
    """Return a contiguous copy with the last two axes exchanged."""
    return np.array(array.swapaxes(1, 2), order="C")
