"""The error of a fit compared with the Eckart-Young lower bound on that of any factorization of its rank."""

from __future__ import annotations

import math
from typing import Any

from nonneg._arrays import is_float32
from nonneg._typing import Array, SampleArray
from nonneg.certificates.bounds import lower, upper
from nonneg.certificates.certificate import Statement, Verdict, verdict_of
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.data.spectral import eckart_young_bound, machine_epsilon
from nonneg.data.views import with_rank_one_weights
from nonneg.losses.beta import BetaLoss

# An error within 10% of the lower bound counts as close.
CLOSE = 1.1
NAME = "eckart-young-bound"


def eckart_young_statement(data: DataMatrix, W: SampleArray, Ht: Array) -> Statement:
    """Compare the relative error with the Eckart-Young lower bound."""
    # It costs as much as a few iterations of a fit. No factorization of rank k, nonnegative or not, has an
    # error below the bound; that the best nonnegative one reaches it is not claimed.
    k = int(Ht.shape[1])
    data, scale = with_rank_one_weights(data, 2.0)
    if scale is not None:
        Ht = Ht * scale[:, None]
    if data.has_missing:
        why = "The entries have weights" if data.is_weighted else "Entries are missing"
        sentence = f"{why}, and the Eckart-Young lower bound holds for complete data of equal weights only."
        return Statement(NAME, sentence, None, CLOSE, Verdict.NOT_VERIFIABLE, {"rank": k})
    error = relative_frobenius_error(data, W, Ht)
    bound = eckart_young_bound(data, k)
    quantities = {
        "relative_error": error,
        "lower_bound": bound.relative_error,
        "lower_bound_estimate": bound.estimate,
        "norm": bound.norm,
        "rank": k,
        "failure_probability": bound.failure_probability,
    }
    if bound.relative_error > error + rounding_error(data):
        # One of the two is wrong, so neither is stated.
        sentence = (
            f"The relative error is {error:.4g}, below the computed Eckart-Young lower bound of "
            f"{bound.relative_error:.4g}: the bound is wrong, and nothing is claimed."
        )
        return Statement(NAME, sentence, None, CLOSE, Verdict.NOT_VERIFIABLE, quantities)
    lowest = f"no factorization of rank {k} has a relative error below {lower(bound.relative_error)}"
    if bound.failure_probability:
        lowest += f" (except with probability {upper(bound.failure_probability, 1)} over random vectors)"
    lead = f"The relative error is {error:.4g}; {lowest}"
    if bound.relative_error == 0.0:
        exact = error <= rounding_error(data)
        sentence = f"{lead}, so the lower bound says nothing" + (
            ", but X is reproduced up to rounding." if exact else "."
        )
        number = 1.0 if exact else None
        return Statement(NAME, sentence, number, CLOSE, verdict_of(exact, Verdict.NOT_VERIFIABLE), quantities)
    ratio = error / bound.relative_error
    sentence = (
        f"{lead} (Eckart and Young). The error is {100 * max(ratio - 1, 0.0):.3g}% above that lower bound; "
        f"within {100 * (CLOSE - 1):.3g}% counts as close."
    )
    return Statement(NAME, sentence, ratio, CLOSE, verdict_of(ratio <= CLOSE), quantities)


def relative_frobenius_error(data: DataMatrix, W: SampleArray, Ht: Array) -> float:
    """Return ||X - W H|| / ||X||, with row weights, one block of rows at a time."""
    # The residual itself is squared and summed: ||X||^2 - 2 <X, W H> + ||W H||^2 would lose half of the
    # digits of a small error.
    square = squared_residual(data, W, Ht)
    scale = data.squared_norm()
    if scale == 0.0:
        return 0.0 if square == 0.0 else math.inf
    return math.sqrt(square / scale)


def squared_residual(data: DataMatrix, W: SampleArray, Ht: Array) -> float:
    """Return the weighted sum of the squared observed entries of X - W H, one block of rows at a time."""
    half = data.reduce_rows(_half_squares, W, Ht=Ht)
    return 2.0 * float(half)


def _half_squares(block: LocalMatrix, W: Array, *, Ht: Array) -> Any:
    return BetaLoss(2.0, 0.0).of_entries(block, W, Ht)


def relative_error_from_square(data: DataMatrix, W: SampleArray, Ht: Array, square: float) -> float:
    """Return ||X - W H|| / ||X||, given its square computed as a difference of sums, which may cancel."""
    # Below about sqrt(eps) half of the digits are lost to cancellation: sum the squared residuals instead.
    if square < (1e-2 if is_float32(data.dtype) else 1e-8):
        return relative_frobenius_error(data, W, Ht)
    return math.sqrt(square)


def rounding_error(data: DataMatrix) -> float:
    """Return the relative error that rounding alone may cause."""
    return math.sqrt(machine_epsilon(data))
