"""The second round of FastAnchor: each anchor in turn against the point farthest from the span of the others.

With Q an orthonormal basis of the affine span of all K anchors, the squared distance of a point from the span
of all but one of them is that from the whole span, plus the square of one coordinate within it: along the
unit normal, in the span, of what the others span. One product with Q serves all K distances of all points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.greedy import Candidate, best_candidate, block_candidates
from nonneg.separable.greedy import settled
from nonneg.separable.spa import squared_row_norms


class SecondRound:
    """Checks the anchors of a run, one after another."""

    def __init__(self, tie_tol: float) -> None:
        self.tie_tol = tie_tol
        self.rows: list[Array] = []
        self.reports: list[Any] = []

    def listen(self, reports: list[Any]) -> None:
        """Take what the blocks found in the last pass."""
        self.reports = reports

    def prepared(self, rows: list[Array], first: int = 0) -> dict[str, Any]:
        """Return what a pass needs to know."""
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
        """Replace each anchor in turn by the point farthest from the span of the others."""
        anchors = np.array(anchors)
        n_passes = 0
        for turn in range(len(anchors)):
            if not self.reports:
                if len(self.rows) != len(anchors):
                    # The first round ended before the pass that would have served this one.
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
            # A copy of the anchor would leave all spans as they are.
            self.reports = []
        self.rows[turn] = row


def _normals(coordinates: Any) -> tuple[Any, Any]:
    # The rows are the anchors after the first, which is the origin. A normal a column, and its product with
    # a point of the span it belongs to.
    n, d = len(coordinates) + 1, coordinates.shape[1]
    normals, offsets = np.zeros((d, n)), np.zeros(n)
    for place in range(n if n - 1 == d else 0):  # more anchors than that: without one they span as much
        others = (
            coordinates[1:] - coordinates[:1] if place == 0 else np.delete(coordinates, place - 1, axis=0)
        )
        # As many rows as dimensions less one: the last column of the complete basis is orthogonal to all.
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
    """Return, for every anchor, the rows of a block among which the farthest from the others' span is."""
    xp = block.xp
    origin = anchors[0, :]
    # The points from which ties are measured: the first of the others.
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
        left = settled(block, left, scales[:, end], tie_tol, squares_of)
        found[place] = block_candidates(block, left, shifted[:, end], tie_tol, rows=False)
    return [found]
