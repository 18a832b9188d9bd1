"""How much the row sparsity weighs: fit and penalty balanced at the anchors of successive projections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.matrix import float64_sum
from nonneg.separable.spa import spa
from nonneg.separable.weights import anchor_weights

# The number of anchors is guessed as that of the picks of successive projections with a residual above this
# share of the second one; the first is the distance from the origin, which says nothing of the spread.
# On mixtures of 5 to 60 points, at 9 to 40 dB, the guess was between six tenths of the number and all of it
# (more where noise hides the anchors from any method).
RESIDUAL_SHARE = 0.5
FIRST_PICKS = 16
# Beyond so many points the residual is that of so many of them, evenly spaced: one part in a hundred is
# enough for a balance, and the mixtures of all points would cost like iterations.
MOST_POINTS = 100_000


@dataclass(frozen=True)
class PenaltyWeight:
    """A weight and what it rests on."""

    lam: float  # the weight in the paper's objective (18), with the 1/2
    anchors: IntArray  # found by successive projections
    residual_norm: float  # frobenius norm of the data less their best mixtures of these anchors


def balanced_weight(
    data: DataMatrix, n_components: int | None, *, anchors: IntArray | None = None
) -> PenaltyWeight:
    """Return ||X - W H|| / (2 K), with W the K anchors of SPA and H the best weights."""
    # The authors' code sets twice this weight in an objective without the 1/2, which is the same problem. The
    # row sparsity of the mixtures is close to K, so that this is the paper's ``||X - X C0|| / Phi(C0)`` up to
    # the factor. Above 100 000 points the norm is estimated from so many of them.
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
    """Guess how many anchors there are, well enough for a weight and for where to look for them."""
    most, picks = min(data.shape), FIRST_PICKS
    while True:
        scores = np.asarray(spa(data, min(picks, most)).scores)
        if len(scores) < 2:
            return 1
        long = scores > RESIDUAL_SHARE * scores[1]
        if picks >= most or len(scores) < picks or not long[-1]:
            return max(1, int(np.sum(long)))
        picks *= 2


def _squared_residual(block: LocalMatrix, mixtures: Array, *, right: Array) -> tuple[tuple[()], tuple[float]]:
    xp, total = block.xp, 0.0
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        rows = rows - xp.astype(mixtures[start:stop, :], xp.float64) @ xp.astype(right, xp.float64)
        total += float64_sum(xp, rows * rows)
    return (), (total,)
