"""The error of a factorization beside the smallest one that any factorization of that rank can have."""

from __future__ import annotations

import math
from typing import Any

from nonneg._random import Seed
from nonneg._typing import Array, SampleArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.data.spectral import svd_floor

DEFAULT_FACTOR = 1.1
NAME = "svd-floor"


def svd_floor_statement(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    k: int | None = None,
    *,
    factor: float = DEFAULT_FACTOR,
    rng: Seed = None,
) -> Statement:
    """Return how far the relative error lies above the floor of the truncated SVD."""
    # It costs like a few iterations of a fit. No factorization of rank k, nonnegative or not, has an error
    # below the floor (Eckart and Young); that the best nonnegative one reaches it is not claimed.
    k = int(Ht.shape[1]) if k is None else k
    if data.has_missing:
        sentence = "Entries are missing, and the truncated SVD bounds the error of complete data only."
        return Statement(NAME, sentence, None, factor, Verdict.NOT_VERIFIABLE, {"rank": k})
    error = relative_frobenius_error(data, W, Ht)
    floor = svd_floor(data, k, rng)
    quantities = {
        "relative_error": error,
        "floor": floor.relative_error,
        "floor_estimate": floor.estimate,
        "norm": floor.norm,
        "rank": k,
    }
    lowest = f"no factorization of rank {k} has one below {floor.relative_error:.4g}"
    said = f"The relative error is {error:.4g}; {lowest}"
    if floor.relative_error == 0.0:
        exact = error <= rounding_error(data)
        sentence = f"{said}, so that the floor says nothing" + (
            ", but the error is rounding: X is reproduced." if exact else "."
        )
        number = 1.0 if exact else None
        verdict = Verdict.HOLDS if exact else Verdict.NOT_VERIFIABLE
        return Statement(NAME, sentence, number, factor, verdict, quantities)
    ratio = error / floor.relative_error
    holds = ratio <= factor
    sentence = (
        f"{said} (truncated SVD): {100 * max(ratio - 1, 0.0):.3g} % above that floor, "
        f"{'within' if holds else 'outside'} the {100 * (factor - 1):.3g} % asked for."
    )
    return Statement(NAME, sentence, ratio, factor, Verdict.HOLDS if holds else Verdict.FAILS, quantities)


def relative_frobenius_error(data: DataMatrix, W: SampleArray, Ht: Array) -> float:
    """Return ||X - W H|| / ||X||, in the norm of the row weights, one block of rows at a time."""
    # The residual itself is squared and summed: ||X||^2 - 2 <X, W H> + ||W H||^2 would lose half of the
    # digits of a small error.
    square = squared_residual(data, W, Ht)
    scale = data.squared_norm()
    if scale == 0.0:
        return 0.0 if square == 0.0 else math.inf
    return math.sqrt(square / scale)


def squared_residual(data: DataMatrix, W: SampleArray, Ht: Array) -> float:
    """Return the weighted sum of the squared observed entries of X - W H, a block of rows at a time."""
    _, (square,) = data.map_reduce_rows(_squared_residual, W, n_out=0, right=Ht)
    return float(square)


def settled_error(data: DataMatrix, W: SampleArray, Ht: Array, square: float) -> float:
    """Return ||X - W H|| / ||X||, given its square as a difference of sums that nearly cancel."""
    if square < (1e-8 if "64" in str(data.dtype) else 1e-2):
        return relative_frobenius_error(data, W, Ht)
    return math.sqrt(square)


def _squared_residual(block: LocalMatrix, left: Array, *, right: Array) -> tuple[tuple[()], tuple[float]]:
    xp, total = block.xp, 0.0
    for start, stop in block.row_blocks(1 << 20):
        residual = block.dense_rows(start, stop) - left[start:stop, :] @ right.T
        if block.observed is not None:
            residual = residual * block.observed.dense_rows(start, stop)
        squares = xp.sum(xp.astype(residual, xp.float64) ** 2, axis=1)
        if block.weights is not None:
            squares = squares * xp.astype(block.weights[start:stop], xp.float64)
        total += float(xp.sum(squares))
    return (), (total,)


def rounding_error(data: DataMatrix) -> float:
    """Return the relative error that rounding alone may cause."""
    eps: Any = data.xp.finfo(data.dtype).eps
    return math.sqrt(float(eps))
