"""FastAnchor: the farthest point from the affine span of the picks, then a round that checks each pick."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.descent.greedy import GreedyRule, greedy_selection
from nonneg.separable.greedy import GrowingBasis, pursue, relative_floor, settled
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL, squared_row_norms, squares_outside


def fast_anchor(
    data: DataMatrix, n_anchors: int, *, tie_tol: float = TIE_TOL, clean_up: bool = True
) -> SelectionResult:
    """Pick the points that are farthest from the affine span of those before.

    Parameters
    ----------
    data : DataMatrix
        The data, one point a row; signs are free. The paper's points are rows of word co-occurrences that
        sum to one.
    n_anchors : int
        How many to pick.
    tie_tol : float
        Points whose squared distance is within this share of the largest count as tied; the one farthest
        from the first anchor wins, of equal ones the lowest index.
    clean_up : bool
        Whether each pick is replaced, in a second round, by the point farthest from the span of the others:
        the second half of the paper's algorithm.

    Returns
    -------
    SelectionResult
        The scores are the distances in the first round.

    Notes
    -----
    The first anchor is the point farthest from the origin and becomes the origin. One pass over the data an
    anchor and round; a pass of the second round is a product with as many vectors as there are anchors.
    The random projection of the paper is left to the caller (`reduce=`), as is the normalisation.

    References
    ----------
    .. [1] Arora et al. (2013), ICML, Algorithm 4.
    """
    result = pursue(
        data, n_anchors, _affine_rule(tie_tol), method="fast-anchor", relative_floor=relative_floor(data)
    )
    if not clean_up or len(result.anchors) < 2:
        return result
    anchors = _cleaned(data, result.anchors, tie_tol)
    changed = int(np.sum(anchors != result.anchors))
    return SelectionResult(
        anchors=anchors,
        method=result.method,
        history=result.history,
        scores=result.scores,
        n_iter=result.n_iter,
        stop_reason=result.stop_reason,
        best_left=result.best_left,
        facts={"changed_in_second_round": changed},
    )


def _affine_rule(tie_tol: float) -> GreedyRule:
    basis = GrowingBasis()
    origin: list[Array] = []

    def facts(row: Array, n_picks: int) -> dict[str, Any]:
        xp = array_namespace(row)
        point = xp.astype(row, xp.float64)
        direction = None
        if n_picks == 1:
            origin.append(point)
        else:
            direction = basis.extended(xp, point - origin[0])
        return {"origin": origin[0], "direction": direction, "basis": basis.matrix, "tie_tol": tie_tol}

    return GreedyRule(begin=_from_zero, advance=_from_span, facts=facts, n_kept=2, tie_break=(1, tie_tol))


def _from_zero(block: LocalMatrix) -> tuple[tuple[Array, Array], Array]:
    squares = squared_row_norms(block)
    return (squares[:, None], squares[:, None]), squares


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
        # The first anchor becomes the origin: what is kept starts anew.
        along = xp.astype(block.times(xp.astype(origin, block.dtype)[:, None]), xp.float64)[:, 0]
        scale = residual[:, 0] + xp.sum(origin * origin)
        left = xp.clip(scale - 2.0 * along, min=0.0)
        original = scale[:, None]
    else:
        left, scale = residual[:, 0], original[:, 0]
        if direction is not None:
            along = xp.astype(block.times(xp.astype(direction, block.dtype)), xp.float64)[:, 0]
            along = along - xp.sum(origin * direction[:, 0])
            left = xp.clip(left - along * along, min=0.0)

    def squares_of(rows: Array, places: Array) -> Array:
        rows = rows - origin
        return xp.sum(rows * rows, axis=1) if basis is None else squares_outside(rows, basis)

    left = settled(block, left, scale, tie_tol, squares_of)
    return (left[:, None], original), left


def _cleaned(data: DataMatrix, anchors: Any, tie_tol: float) -> Any:
    anchors = np.array(anchors)
    for place in range(len(anchors)):
        others = data.take_rows(np.delete(anchors, place))
        xp = array_namespace(others)
        others = xp.astype(others, xp.float64)
        origin = others[0, :]
        basis = GrowingBasis()
        for i in range(1, others.shape[0]):
            basis.extended(xp, others[i, :] - origin)
        facts = {"origin": origin, "basis": basis.matrix, "tie_tol": tie_tol}
        rule = GreedyRule(
            begin=_distances, advance=_distances, facts=_nothing, n_kept=1, first_facts=facts,
            tie_break=(0, tie_tol),
        )  # fmt: skip
        anchors[place] = greedy_selection(data, 1, rule, finish=False).indices[0]
    return anchors


def _nothing(row: Array, n_picks: int) -> dict[str, Any]:
    return {}


def _distances(
    block: LocalMatrix, *, origin: Array, basis: Array | None, tie_tol: float
) -> tuple[tuple[Array], Array]:
    # Squared distances from an affine span, all at once: one product with its basis.
    xp = block.xp
    squares = squared_row_norms(block)
    along = xp.astype(block.times(xp.astype(origin, block.dtype)[:, None]), xp.float64)[:, 0]
    scale = squares + xp.sum(origin * origin)
    shifted = xp.clip(scale - 2.0 * along, min=0.0)
    left = shifted
    if basis is not None:
        inside = xp.astype(block.times(xp.astype(basis, block.dtype)), xp.float64) - origin @ basis
        left = xp.clip(shifted - xp.sum(inside * inside, axis=1), min=0.0)

    def squares_of(rows: Array, places: Array) -> Array:
        rows = rows - origin
        return xp.sum(rows * rows, axis=1) if basis is None else squares_outside(rows, basis)

    left = settled(block, left, scale, tie_tol, squares_of)
    return (shifted[:, None],), left
