"""Exact least squares for all rows at once, nonnegative or of any sign."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg._arrays import on_gpu
from nonneg._typing import Array
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.grams import CHUNK_ENTRIES, DenseGrams, Gram, SharedGram
from nonneg.kernels.hals import hals_passes

# Rows with singular systems are left to coordinate descent, which needs no inverse.
FALLBACK_PASSES = 3000


def exact_rows(factor: Array, gram: Gram, cross: Array) -> tuple[Array, Any]:
    """Update rows to their minimizers; return them and the violation of the present ones."""
    # One pass of coordinate descent measures the violation, and its result is a good guess of the supports.
    guess, violation = hals_passes(factor, gram, cross, max_passes=1)
    return nonnegative_least_squares(gram, cross, start=guess, in_place=True), violation


def free_rows(factor: Array, gram: SharedGram, cross: Array) -> tuple[Array, Any]:
    """Do the same for rows of any sign."""
    xp = array_namespace(cross)
    # Components that vanished or repeat make it singular; then the shortest rows.
    return cross @ xp.linalg.pinv(gram.matrix), xp.sum(xp.abs(factor @ gram.matrix - cross))


def nonnegative_least_squares(
    gram: Gram, cross: Array, *, start: Array | None = None, in_place: bool = False
) -> Array:
    """Minimize 0.5 f G f' - c f' over f >= 0 for every row c of `cross`.

    `in_place` says whether the result may take the memory of `start`.
    """
    # Costs O(k^3) per row and exchange of supports; the data themselves are never needed. A singular system,
    # which has many minimizers, is solved by coordinate descent from the initial guess.
    # Kim & Park (2011), SIAM J. Sci. Comput. 33(6).
    xp, (n_rows, k) = array_namespace(cross), cross.shape
    if not isinstance(gram, SharedGram | DenseGrams) and n_rows * k * k > CHUNK_ENTRIES and not on_gpu(cross):
        # Matrices of rows exist for some rows at a time.
        size = max(1, CHUNK_ENTRIES // (k * k))
        ranges = [slice(at, min(at + size, n_rows)) for at in range(0, n_rows, size)]
        parts = [
            nonnegative_least_squares(
                DenseGrams(gram.dense_rows(rows.start, rows.stop)),
                cross[rows, :],
                start=None if start is None else start[rows, :],
            )
            for rows in ranges
        ]
        return xp.concat(parts, axis=0)
    guess = xp.clip(cross, min=0.0) if start is None else start
    solution, unsolved = block_pivoting(guess, gram, cross, in_place=in_place or start is None)
    tiny = float(xp.finfo(cross.dtype).eps)
    if on_gpu(cross):
        from nonneg.kernels.hals import triton

        if triton.is_supported(cross):
            # To ask whether there are such rows would wait for the GPU; the kernel passes over all others.
            return triton.hals_rows(
                solution, gram, cross, max_passes=FALLBACK_PASSES, shrink=tiny, todo=unsolved, in_place=True
            )[0]
    if bool(xp.any(unsolved)):
        rows = xp.nonzero(unsolved)[0]
        part = xp.take(solution, rows, axis=0)
        own = gram
        if not isinstance(gram, SharedGram):
            own = DenseGrams(xp.take(gram.dense().matrices, rows, axis=0))
        part, _ = hals_passes(
            part, own, xp.take(cross, rows, axis=0), max_passes=FALLBACK_PASSES, shrink=tiny
        )
        solution = with_rows(solution, unsolved, part)
    return solution


def with_rows(rows: Array, flagged: Array, part: Array) -> Array:
    """Return the rows with flagged ones replaced: each takes the next one of `part`."""
    xp = array_namespace(rows)
    position = xp.clip(xp.cumulative_sum(xp.astype(flagged, xp.int64)) - 1, min=0)
    return xp.where(flagged[:, None], xp.take(part, position, axis=0), rows)
