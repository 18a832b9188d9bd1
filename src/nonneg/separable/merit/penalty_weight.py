"""The automatic weight of the row sparsity: fit and penalty balanced at the anchors of SPA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.matrix import float64_sum
from nonneg.separable.spa import spa
from nonneg.separable.weights import anchor_weights

# The number of anchors is estimated as that of the anchors of SPA with a residual above this fraction of the
# second one; the first is the distance from the origin, which says nothing about the spread. For 5 to 60
# anchors, at 9 to 40 dB, the estimate was between 60% and 100% of the number (more where noise hides the
# anchors from any method).
RESIDUAL_SHARE = 0.5
FIRST_ANCHORS = 16  # doubled until the residuals have fallen
# Beyond this number of points the residual is estimated from this many of them, evenly spaced: an error of
# one percent is small enough for a balance, and the mixtures of all points would cost as much as iterations.
MOST_POINTS = 100_000


@dataclass(frozen=True)
class PenaltyWeight:
    """A weight and the quantities it is computed from."""

    lam: float  # the weight in the objective (18) of the paper, with the 1/2
    anchors: IntArray  # of successive projections
    residual_norm: float  # Frobenius norm of the data minus their best mixtures of these anchors


def balanced_weight(
    data: DataMatrix, n_components: int | None, *, anchors: IntArray | None = None
) -> PenaltyWeight:
    """Return ||X - W H|| / (2 K), with the K anchors of SPA as W and the best weights as H."""
    # The authors' code sets twice this weight in an objective without the 1/2, which is the same problem. The
    # row sparsity of the mixtures is close to K, so that this is the paper's ``||X - X C0|| / Phi(C0)`` up to
    # the factor.
    k = estimated_number(data) if n_components is None else n_components
    if anchors is None:
        anchors = spa(data, min(2 * k, *data.shape) if n_components is None else k).anchors
    points = to_float64(data.take_rows(anchors))
    n = data.shape[0]
    share = 1.0
    if n > MOST_POINTS:
        data = as_data_matrix(data.take_rows(np.arange(0, n, -(-n // MOST_POINTS))))
        share = n / data.shape[0]
    mixtures = anchor_weights(data, points, sum_to_one=True)
    _, (square,) = data.map_reduce_rows(_squared_residual, mixtures, n_out=0, right=data.to_device(points))
    norm = float(np.sqrt(share * square))
    return PenaltyWeight(norm / (2.0 * k), anchors, norm)


def estimated_number(data: DataMatrix) -> int:
    """Estimate the number of anchors, accurately enough for a weight and for the range of the search."""
    most, n_anchors = min(data.shape), FIRST_ANCHORS
    while True:
        scores = np.asarray(spa(data, min(n_anchors, most)).scores)
        if len(scores) < 2:
            return 1
        long = scores > RESIDUAL_SHARE * scores[1]
        if n_anchors >= most or len(scores) < n_anchors or not long[-1]:
            return max(1, int(np.sum(long)))
        n_anchors *= 2


def _squared_residual(block: LocalMatrix, mixtures: Array, *, right: Array) -> tuple[tuple[()], tuple[float]]:
    xp, total = block.xp, 0.0
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        rows = rows - xp.astype(mixtures[start:stop, :], xp.float64) @ xp.astype(right, xp.float64)
        total += float64_sum(xp, rows * rows)
    return (), (total,)
