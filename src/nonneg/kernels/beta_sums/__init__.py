"""Sums for the updates under a beta-divergence on an NVIDIA GPU, in tiles that never store the model W H.

The rows of one factor, `left`, stay in a program; it walks along the rows of the other one, `right`, and
forms the model, an entrywise function of data and model, and its products with `right`, tile by tile. With W
as `left` this is the update of W; with H' as `left` and the transposed data it is the update of H. Where few
rows are on the left several programs share them; their sums are added in a second step, in a fixed order.
"""

from __future__ import annotations

from typing import Any

from nonneg._arrays import on_gpu
from nonneg._devices import warn_without_triton

# Beyond this rank tiles do not fit a multiprocessor.
MOST_K = 256


def is_supported(x: Any, k: int) -> bool:
    """Tell whether x is dense on an NVIDIA GPU, Triton is installed and the rank is not too large."""
    if k > MOST_K or not on_gpu(x):
        return False
    from nonneg.kernels.beta_sums import tiles

    if not tiles.AVAILABLE:
        warn_without_triton()
    return tiles.AVAILABLE


def _problem(x: Any, left: Any, right: Any, loss: Any, mask: Any) -> Any:
    # Not at the top: Triton is loaded by those who use it.
    from nonneg.kernels.beta_sums.problem import Problem

    return Problem(x, left, right, loss, mask)


def ratio_sums(
    x: Any,
    left: Any,
    right: Any,
    loss: Any,
    *,
    mask: Any = None,
    weights: Any = None,
    wanted: Any = None,
    want_loss: bool = False,
) -> tuple[Any, Any, Any]:
    """Return the sums of a multiplicative update of the rows on the left.

    Parameters
    ----------
    x : array of shape (n_left, n_right)
        The data, or their transpose; 0 where missing.
    left, right : array of shape (n_left, k) and (n_right, k)
        The factors; x is about left right'.
    loss : BetaLoss
        The numbers of the divergence.
    mask : array of shape (n_left, n_right), optional
        Zero where missing.
    weights : array of shape (n_right,), optional
        Weights of the rows on the right.
    wanted : array of bool of shape (n_left,), optional
        Rows that matter; what is returned for others may be anything.
    want_loss : bool, default False
        Whether to return losses.

    Returns
    -------
    ratio, power : array of shape (n_left, k)
        Products of x v^(beta - 2) and v^(beta - 1) with `right`; `power` is None where it is the same for all
        rows: the weighted sum of `right`, for beta = 1 without missing entries.
    losses : array of shape (n_left,) or None
        The weighted divergence of every row, in float64.
    """
    second = loss.beta != 1 or mask is not None
    problem = _problem(x, left, right, loss, mask)
    ratio, power, _, losses = problem.run(
        newton=False, weights=weights, rows=wanted, second=second, loss=want_loss
    )
    return ratio, power, losses


def newton_sums(
    x: Any,
    left: Any,
    right: Any,
    loss: Any,
    *,
    mask: Any = None,
    weights: Any = None,
    damping: Any = None,
    capped: bool = False,
    exact: Any = None,
    traced: bool = False,
    want_loss: bool = False,
) -> tuple[Any, Any, Any, Any]:
    """Return gradients and diagonals of Hessians for the rows on the left.

    The arguments are those of `ratio_sums`. `damping` has one number per component, which is added to the
    squares of `right`, and a last one: if `capped`, what is added is at most that part of the largest square
    of the row. `exact` names the rows with true second derivatives where the divergence is not convex.

    Returns
    -------
    gradient, diagonal : array of shape (n_left, k)
        Products of the first and second derivatives with `right` and with its squares.
    traces : array of shape (n_left,) or None
        Sums of the second derivatives, if `traced`.
    losses : array of shape (n_left,) or None
        The weighted divergence of every row, in float64, if `want_loss`.
    """
    gradient, diagonal, traces, losses = _problem(x, left, right, loss, mask).run(
        newton=True,
        weights=weights,
        damping=damping,
        capped=capped,
        exact=exact,
        second=True,
        traced=traced,
        loss=want_loss,
    )
    return gradient, diagonal, traces, losses


def losses(x: Any, left: Any, right: Any, loss: Any, *, mask: Any = None, weights: Any = None) -> Any:
    """Return the weighted divergence of every row on the left; the arguments are those of `ratio_sums`."""
    return _problem(x, left, right, loss, mask).run(newton=False, weights=weights, sums=False, loss=True)[3]


def step_lengths(
    x: Any,
    left: Any,
    direction: Any,
    right: Any,
    loss: Any,
    linear: Any,
    quadratic: Any,
    slopes: Any,
    mask: Any = None,
    losses: Any = None,
) -> Any:
    """Choose a step in (0, 1] along `direction` for every row; see `kernels.beta_products.line_search`.

    `losses` are those of the rows where they start, if they are known; see `newton_sums`.
    """
    return _problem(x, left, right, loss, mask).search(direction, linear, quadratic, slopes, losses)


def multiplicative_step(
    factor: Any, ratio: Any, power: Any, previous: Any, momentum: Any, **rule: Any
) -> Any:
    """Return an updated factor, and the same extrapolated by a power of its growth since `previous`."""
    from nonneg.kernels.beta_sums import update

    return update.multiplicative_step(factor, ratio, power, previous, momentum, **rule)
