"""FastAnchor: the sample farthest from the affine span of the anchors so far, then a clean-up pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.candidates import Candidate, best_candidate, block_candidates
from nonneg.separable.greedy import GreedyRule, GrowingBasis, accurate_squares, select_greedily
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL, squared_norms, squares_outside


def fast_anchor(
    data: DataMatrix, n_components: int, *, tie_tol: float = TIE_TOL, clean_up: bool = True
) -> SelectionResult:
    """Select the samples farthest from the affine span of the anchors so far."""
    # The first anchor is the sample farthest from the origin and becomes the origin. One pass over the data
    # per anchor. The clean-up replaces each anchor in turn by the sample farthest from the span of the
    # others, if that is farther: another pass per anchor. The random projection of the paper is left to the
    # caller (`reduce=`), as is the normalization. Arora et al. (2013), ICML, Algorithm 4.
    basis = GrowingBasis()
    first: list[Array] = []

    def shared(row: Array, n_picks: int) -> dict[str, Any]:
        xp = array_namespace(row)
        row = xp.astype(row, xp.float64)
        if not first:
            first.append(row)
        direction = None if n_picks == 1 else basis.extended(xp, row - first[0])
        return {"origin": first[0], "direction": direction, "basis": basis.matrix, "tie_tol": tie_tol}

    rule = GreedyRule(begin=squared_norms, advance=_from_span, shared=shared, n_kept=2, tie_tol=tie_tol)
    result = select_greedily(data, n_components, rule, method="fast-anchor")
    if not clean_up or len(result.anchors) < 2:
        return result
    anchors = _cleaned_up(data, result.anchors, tie_tol)
    return replace(
        result,
        anchors=anchors,
        n_passes=(result.n_passes or 0) + len(anchors),
        details={"changed_in_clean_up": int((anchors != result.anchors).sum())},
    )


def _cleaned_up(data: DataMatrix, anchors: IntArray, tie_tol: float) -> IntArray:
    anchors, rows = anchors.copy(), to_float64(data.take_rows(anchors)).astype(np.float64)
    for turn in range(len(anchors)):
        others = np.delete(rows, turn, axis=0)
        origin = others[0]
        basis = np.linalg.qr((others[1:] - origin).T)[0]
        own = float(squares_outside((rows[turn] - origin)[None, :], basis)[0])
        shared = {"origin": data.to_device(origin), "basis": data.to_device(basis), "tie_tol": tie_tol}
        index, square, _ = best_candidate(data.reduce_rows(_farthest, **shared), tie_tol)
        # Ties keep the anchor, as they do where the others span as much.
        if square > (1.0 + tie_tol) * own and square > tie_tol**2 * float(np.sum((rows - origin) ** 2)):
            anchors[turn], rows[turn] = index, to_float64(data.take_rows([index]))[0]
    return anchors


def _farthest(block: LocalMatrix, *, origin: Array, basis: Array, tie_tol: float) -> list[Candidate]:
    # The candidates of a block for the sample farthest from an affine span.
    xp = block.xp
    columns = xp.concat([basis, origin[:, None]], axis=1)
    products = xp.astype(block.times(xp.astype(columns, block.dtype)), xp.float64)
    origin, basis = xp.astype(origin, xp.float64), xp.astype(basis, xp.float64)
    inside = products[:, :-1] - (origin @ basis)[None, :]
    scale = block.row_powers(2.0) + xp.sum(origin * origin)
    apart = xp.clip(scale - 2.0 * products[:, -1], min=0.0)
    squares = xp.clip(apart - xp.sum(inside * inside, axis=1), min=0.0)

    def squares_of(rows: Array) -> Array:
        return squares_outside(rows - origin, basis)

    squares = accurate_squares(block, squares, scale, tie_tol, squares_of)
    return block_candidates(block, squares, apart, tie_tol, rows=False)


def _from_span(
    block: LocalMatrix,
    residual: Array,
    original: Array,
    *,
    origin: Array,
    direction: Array | None,
    basis: Array | None,
    tie_tol: float,
) -> tuple[tuple[Array, Array], Array]:
    xp = block.xp
    if basis is None:
        # The first anchor becomes the origin: the squared distances are recomputed.
        along = xp.astype(block.times(xp.astype(origin, block.dtype)[:, None]), xp.float64)[:, 0]
        scale = residual[:, 0] + xp.sum(origin * origin)
        squares = xp.clip(scale - 2.0 * along, min=0.0)
        original = scale[:, None]
    else:
        squares, scale = residual[:, 0], original[:, 0]
        if direction is not None:
            along = xp.astype(block.times(xp.astype(direction, block.dtype)), xp.float64)[:, 0]
            along = along - xp.sum(origin * direction[:, 0])
            squares = xp.clip(squares - along * along, min=0.0)

    def squares_of(rows: Array) -> Array:
        rows = rows - origin
        return xp.sum(rows * rows, axis=1) if basis is None else squares_outside(rows, basis)

    squares = accurate_squares(block, squares, scale, tie_tol, squares_of)
    return (squares[:, None], original), squares
