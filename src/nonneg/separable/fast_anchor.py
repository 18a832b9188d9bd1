"""FastAnchor: the farthest point from the affine span of the picks, then a round that checks each pick."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.greedy import GreedyRule
from nonneg.separable.cleanup_pass import SecondRound, farthest_in_turn
from nonneg.separable.greedy import GrowingBasis, pursue, relative_floor, settled
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL, squared_row_norms, squares_outside


def fast_anchor(
    data: DataMatrix, n_components: int, *, tie_tol: float = TIE_TOL, clean_up: bool = True
) -> SelectionResult:
    """Pick the points that are farthest from the affine span of those before."""
    # The first anchor is the point farthest from the origin and becomes the origin. One pass over the data an
    # anchor: the last one, a product with as many vectors as there are anchors, also finds the farthest point
    # from the span of the others for every anchor. Only where the second round replaces an anchor, and others
    # are still to be checked, another pass follows. The random projection of the paper is left to the caller
    # (`reduce=`), as is the normalisation.
    # Arora et al. (2013), ICML, Algorithm 4.
    second = SecondRound(tie_tol)
    rule = _affine_rule(tie_tol, second, n_components if clean_up and n_components > 1 else None)
    result = pursue(data, n_components, rule, method="fast-anchor", relative_floor=relative_floor(data))
    if not clean_up or len(result.anchors) < 2:
        return result
    anchors, n_passes = second.checked(data, result.anchors)
    return replace(
        result,
        anchors=anchors,
        n_passes=(result.n_passes or 0) + n_passes,
        facts={"changed_in_second_round": int((anchors != result.anchors).sum())},
    )


def _affine_rule(tie_tol: float, second: SecondRound, last: int | None) -> GreedyRule:
    basis = GrowingBasis()
    picked: list[Array] = []

    def facts(row: Array, n_picks: int) -> dict[str, Any]:
        xp = array_namespace(row)
        picked.append(xp.astype(row, xp.float64))
        origin = picked[0]
        direction = None if n_picks == 1 else basis.extended(xp, picked[-1] - origin)
        known = {"origin": origin, "direction": direction, "basis": basis.matrix, "tie_tol": tie_tol}
        return known | {"turn": second.prepared(picked) if n_picks == last else None}

    return GreedyRule(
        begin=_from_zero,
        advance=_from_span,
        facts=facts,
        n_kept=2,
        tie_break=(1, tie_tol),
        listen=second.listen,
    )


def _from_zero(block: LocalMatrix) -> tuple[tuple[Array, Array], Array, list[Any]]:
    squares = squared_row_norms(block)
    return (squares[:, None], squares[:, None]), squares, []


def _from_span(
    block: LocalMatrix,
    residual: Array,
    original: Array,
    *,
    origin: Array,
    direction: Array | None,
    basis: Array | None,
    tie_tol: float,
    turn: dict[str, Any] | None,
) -> tuple[tuple[Array, Array], Array, list[Any]]:
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
    # The last pass over the data serves the second round as well.
    reports = [] if turn is None else farthest_in_turn(block, **turn)
    return (left[:, None], original), left, reports
