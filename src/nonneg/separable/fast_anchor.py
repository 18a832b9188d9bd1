"""FastAnchor: the sample farthest from the affine span of the anchors so far, then a clean-up pass.

The clean-up pass compares each anchor with the sample farthest from the span of the others. With Q an
orthonormal basis of the affine span of all K anchors, the squared distance of a sample from the span of all
but one of them is that from the whole span plus the square of one coordinate within it: along the unit
normal, in the span, of what the others span. One product with Q gives all K distances of all samples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.greedy import Candidate, GreedyRule, best_candidate, block_candidates
from nonneg.separable.greedy import GrowingBasis, accurate_squares, relative_floor, select_greedily
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL, squared_row_norms, squares_outside


def fast_anchor(
    data: DataMatrix, n_components: int, *, tie_tol: float = TIE_TOL, clean_up: bool = True
) -> SelectionResult:
    """Select the samples farthest from the affine span of the anchors so far."""
    # The first anchor is the sample farthest from the origin and becomes the origin. One pass over the data
    # per anchor: the last one, a product with as many vectors as there are anchors, also finds for every
    # anchor the sample farthest from the span of the others. Only where the clean-up replaces an anchor, and
    # others are still to be checked, another pass follows. The random projection of the paper is left to the
    # caller (`reduce=`), as is the normalization. Arora et al. (2013), ICML, Algorithm 4.
    clean = CleanUpPass(tie_tol)
    rule = _affine_rule(tie_tol, clean, n_components if clean_up and n_components > 1 else None)
    result = select_greedily(
        data, n_components, rule, method="fast-anchor", relative_floor=relative_floor(data)
    )
    if not clean_up or len(result.anchors) < 2:
        return result
    anchors, n_passes = clean.checked(data, result.anchors)
    return replace(
        result,
        anchors=anchors,
        n_passes=(result.n_passes or 0) + n_passes,
        facts={"changed_in_clean_up": int((anchors != result.anchors).sum())},
    )


def _affine_rule(tie_tol: float, clean: CleanUpPass, last: int | None) -> GreedyRule:
    basis = GrowingBasis()
    anchors_so_far: list[Array] = []

    def facts(row: Array, n_picks: int) -> dict[str, Any]:
        xp = array_namespace(row)
        anchors_so_far.append(xp.astype(row, xp.float64))
        origin = anchors_so_far[0]
        direction = None if n_picks == 1 else basis.extended(xp, anchors_so_far[-1] - origin)
        known = {"origin": origin, "direction": direction, "basis": basis.matrix, "tie_tol": tie_tol}
        return known | {"turn": clean.prepared(anchors_so_far) if n_picks == last else None}

    return GreedyRule(
        begin=_from_zero,
        advance=_from_span,
        facts=facts,
        n_kept=2,
        tie_break=(1, tie_tol),
        listen=clean.listen,
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
        # The first anchor becomes the origin: the squared distances are recomputed.
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

    left = accurate_squares(block, left, scale, tie_tol, squares_of)
    # The last pass over the data also serves the clean-up.
    reports = [] if turn is None else farthest_in_turn(block, **turn)
    return (left[:, None], original), left, reports


class CleanUpPass:
    """Checks the anchors, one after another."""

    def __init__(self, tie_tol: float) -> None:
        self.tie_tol = tie_tol
        self.rows: list[Array] = []
        self.reports: list[Any] = []

    def listen(self, reports: list[Any]) -> None:
        """Receive the reports of the last pass."""
        self.reports = reports

    def prepared(self, rows: list[Array], first: int = 0) -> dict[str, Any]:
        """Return the arguments of a pass."""
        self.rows = list(rows)
        xp = array_namespace(rows[0])
        anchors = xp.stack(rows, axis=0)
        shifted = anchors[1:, :] - anchors[0, :][None, :]
        basis, upper = xp.linalg.qr(shifted.T)
        normals, offsets = _normals(to_float64(upper).T)
        return {
            "first": first,
            "anchors": anchors,
            "basis": basis,
            "normals": xp.asarray(normals, device=anchors.device),
            "offsets": xp.asarray(offsets, device=anchors.device),
            "tie_tol": self.tie_tol,
        }

    def checked(self, data: DataMatrix, anchors: IntArray) -> tuple[IntArray, int]:
        """Replace each anchor in turn by the sample farthest from the span of the others."""
        anchors = np.array(anchors)
        n_passes = 0
        for turn in range(len(anchors)):
            if not self.reports:
                if len(self.rows) != len(anchors):
                    # The selection ended before the pass that would have served the clean-up.
                    taken = data.take_rows(anchors)
                    self.rows = [data.xp.astype(taken[i, :], data.xp.float64) for i in range(len(anchors))]
                facts = self.prepared(self.rows, turn)
                self.listen(data.map_reduce_rows(_pass, n_out=0, **facts)[1][0])
                n_passes += 1
            found: list[Candidate] = [entry for of_block in self.reports for entry in of_block[turn]]
            index = best_candidate(found, self.tie_tol)[0]
            if index != anchors[turn]:
                anchors[turn] = index
                self._replace(data, turn, index)
        return anchors, n_passes

    def _replace(self, data: DataMatrix, turn: int, index: int) -> None:
        row = data.take_rows([index])[0, :]
        xp = array_namespace(row)
        row = xp.astype(row, xp.float64)
        if not bool(xp.all(row == self.rows[turn])):
            # A duplicate of the anchor leaves all spans as they are.
            self.reports = []
        self.rows[turn] = row


def _normals(coordinates: Any) -> tuple[Any, Any]:
    # The rows are the anchors after the first, which is the origin. One normal per column, and its product
    # with a point of its span.
    n, d = len(coordinates) + 1, coordinates.shape[1]
    normals, offsets = np.zeros((d, n)), np.zeros(n)
    for place in range(n if n - 1 == d else 0):  # with more anchors, all but one span as much
        others = (
            coordinates[1:] - coordinates[:1] if place == 0 else np.delete(coordinates, place - 1, axis=0)
        )
        # One row less than dimensions: the last column of the complete basis is orthogonal to all.
        normals[:, place] = np.linalg.qr(others.T, mode="complete")[0][:, -1]
    offsets[0] = coordinates[0] @ normals[:, 0]
    return normals, offsets


def _pass(block: LocalMatrix, **facts: Any) -> tuple[tuple[()], tuple[list[Any]]]:
    return (), (farthest_in_turn(block, **facts),)


def farthest_in_turn(
    block: LocalMatrix,
    *,
    first: int,
    anchors: Array,
    basis: Array,
    normals: Array,
    offsets: Array,
    tie_tol: float,
) -> list[dict[int, list[Candidate]]]:
    """Return, for every anchor, the candidates of a block for the sample farthest from the others' span."""
    xp = block.xp
    origin = anchors[0, :]
    # The origins of the distances that break ties: the first of the other anchors.
    ends = anchors[: (2 if first == 0 else 1), :].T
    columns = xp.concat([basis, ends], axis=1)
    products = xp.astype(block.times(xp.astype(columns, block.dtype)), xp.float64)
    squares = squared_row_norms(block)
    k = basis.shape[1]
    inside = products[:, :k] - (origin @ basis)[None, :]
    scales = squares[:, None] + xp.sum(ends * ends, axis=0)[None, :]
    shifted = xp.clip(scales - 2.0 * products[:, k:], min=0.0)
    outside = xp.clip(shifted[:, 0] - xp.sum(inside * inside, axis=1), min=0.0)
    across = inside @ normals - offsets[None, :]
    found = {}
    for place in range(first, anchors.shape[0]):
        normal, offset = normals[:, place], offsets[place]

        def squares_of(rows: Array, places: Array, normal: Array = normal, offset: Array = offset) -> Array:
            rows = rows - origin
            within = rows @ basis
            rows = rows - within @ basis.T
            rows = rows - (rows @ basis) @ basis.T
            return xp.sum(rows * rows, axis=1) + (within @ normal - offset) ** 2

        end = 1 if place == 0 else 0
        left = outside + across[:, place] ** 2
        left = accurate_squares(block, left, scales[:, end], tie_tol, squares_of)
        found[place] = block_candidates(block, left, shifted[:, end], tie_tol, rows=False)
    return [found]
