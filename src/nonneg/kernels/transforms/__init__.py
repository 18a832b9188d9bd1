"""Whole iterations of TL-NMF and JD+NMF for small problems: one restart at a time, on the pool's threads.

The twin is the array code of `nonneg.transforms`, which serves any size, type and device. Arrays have the
axes of its states. Those that come out are views of arrays with the frames last, which the next call takes
without a copy.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from nonneg._threads import parallel_for
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

# Room to work in, kept from one iteration to the next.
_buffers = threading.local()


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
    """Tell whether the compiled kernels take a problem.

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
        isinstance(array, np.ndarray)
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
    from nonneg.kernels.majorization_equalization import numba as updates
    from nonneg.kernels.transforms import numba as compiled

    batch, m, n = len(transform), columns.shape[1], columns.shape[2]
    transforms, w, h = (
        np.array(transform, order="C"),
        updates.transposed(components),
        updates.transposed(activations),
    )
    before = np.ascontiguousarray(frames.swapaxes(1, 2))
    after, inverse, facts = np.empty_like(before), np.empty((batch, m, n)), np.empty((6, batch))
    V, cross = _empty_moments(batch, m, n) if moments is None else moments
    new = _empty_moments(batch, m, n)

    def work(start: int, stop: int) -> None:
        part, workspace = (start, stop), _workspace(columns)
        if moments is None:
            compiled.moment_range(before, workspace[2][0], V, cross, *part)
        updates.equalize_range(V, eps0, w, h, n_nmf_updates, inverse, *part)
        compiled.rotate_range(
            columns,
            eps0,
            True,
            transforms,
            (before, after),
            (V, new[0], cross, new[1]),
            inverse,
            n_rotation_updates,
            max_trials,
            facts[3:],
            workspace,
            *part,
        )
        compiled.measure_range(new[0], eps0, inverse, facts, *part)

    cost = 12.0 * h[0].size * m * n_nmf_updates + 4.0 * columns.size * m
    parallel_for(work, batch, chunk_size=1, operations=cost * batch)
    return TLStep(
        transforms,
        after.swapaxes(1, 2),
        h.swapaxes(1, 2),
        w.swapaxes(1, 2),
        dict(zip(FIT_MEASURES + ROTATION_MEASURES, facts, strict=True)),
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
    from nonneg.kernels.transforms import numba as compiled

    batch, m, n = len(transform), columns.shape[1], columns.shape[2]
    transforms = np.array(transform, order="C")
    before = np.ascontiguousarray(frames.swapaxes(1, 2))
    after, inverse, facts = np.empty_like(before), np.empty((batch, m, n)), np.empty((4, batch))
    V, cross = _empty_moments(batch, m, n)

    def work(start: int, stop: int) -> None:
        part, workspace = (start, stop), _workspace(columns)
        compiled.moment_range(before, workspace[2][0], V, cross, *part)
        compiled.rotate_range(
            columns,
            eps0,
            False,
            transforms,
            (before, after),
            (V, V, cross, cross),
            inverse,
            n_rotation_updates,
            max_trials,
            facts[1:],
            workspace,
            *part,
        )
        compiled.likelihood_range(V, eps0, facts[0], *part)

    parallel_for(work, batch, chunk_size=1, operations=2.0 * columns.size * m * batch)
    measures: dict[str, FloatArray] = dict(zip(("L", *ROTATION_MEASURES), facts, strict=True))
    return JDStep(transforms, after.swapaxes(1, 2), measures)


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
    from nonneg.kernels.majorization_equalization import numba as updates
    from nonneg.kernels.transforms import numba as compiled

    w, h = updates.transposed(components), updates.transposed(activations)
    V = np.ascontiguousarray(variances.swapaxes(1, 2))
    inverse, facts = np.empty((len(h), *V.shape[1:])), np.empty((3, len(h)))

    def work(start: int, stop: int) -> None:
        updates.equalize_range(V, eps0, w, h, n_nmf_updates, inverse, start, stop)
        compiled.measure_range(V, eps0, inverse, facts, start, stop)

    cost = 12.0 * h[0].size * V.shape[1] * n_nmf_updates
    parallel_for(work, len(h), chunk_size=1, operations=cost * len(h))
    return NMFStep(h.swapaxes(1, 2), w.swapaxes(1, 2), dict(zip(FIT_MEASURES, facts, strict=True)))


def _empty_moments(batch: int, m: int, n: int) -> tuple[FloatArray, FloatArray]:
    return np.empty((batch, m, n)), np.empty((batch, m * (m - 1) // 2, n))


def _workspace(columns: FloatArray) -> tuple[FloatArray, ...]:
    """Return this thread's workspace for three points of a search and for small matrices."""
    if getattr(_buffers, "shape", None) != columns.shape:
        _, m, n = columns.shape
        _buffers.shape = columns.shape
        _buffers.workspace = (
            np.empty((3, m, m)),
            np.empty((10, m, m)),
            np.empty((3, *columns.shape)),
            np.empty((4, m, n)),
            np.empty((3, m * (m - 1) // 2, n)),
        )
    workspace: tuple[FloatArray, ...] = _buffers.workspace
    return workspace
