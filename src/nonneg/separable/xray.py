"""XRAY: an extreme ray of the cone in the direction of the largest residual."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.greedy import GreedyRule, best_candidate
from nonneg.data.sparse import SparseMatrix
from nonneg.separable.greedy import relative_floor, select_greedily
from nonneg.separable.reduction import mean_row
from nonneg.separable.result import SelectionResult
from nonneg.separable.xray_prefetch import Report, Search, advance, begin, look, residuals

RANDOM_TRIES = 50
EXPLAINED = 1e-6
"""A sample whose residual is at most this fraction of the largest one is not drawn."""
POOL_SIZE = 16
"""Number of samples kept that may have the largest residual next; fewer where they have many features."""
POOL_ENTRIES = 1 << 23
"""Maximum number of entries of these samples (64 MB)."""
NEW_CANDIDATES = 8
"""Number of such samples that one pass returns, from all blocks together."""
TIE_TOL = 1e-9
"""Predictions whose squared residuals are this close may each come first: all are prefetched."""
MAX_DIRECTIONS = 4
"""Maximum number of directions that one pass prefetches."""
PREFETCH_FROM = 1 << 16
"""A pass over fewer entries, if they are in this process, costs less than the prediction that saves it."""


def xray(data: DataMatrix, n_components: int, *, variant: str = "max", rng: Seed = None) -> SelectionResult:
    """Select extreme rays of the cone of the data, one after another."""
    # With r the residual of one sample after its nonnegative fit to the anchors, the next anchor is the
    # sample x of largest ``(r'x) / (p'x)``, with p all ones (the mean of the samples where entries are
    # negative). The fits are exact, in Gram form. The third variant of the paper ("dist") compares all pairs
    # of samples and is left out for that reason. One pass over the data per anchor, and two to begin with,
    # thanks to speculative prefetch: the pass that updates the fits also scores the next ray, along the
    # residual of the sample that is predicted to have the largest residual next. Where the prediction is
    # wrong, or all draws of the variant fail, one more pass follows, so that predictions cost time but never
    # change an anchor. Small data in this process are not prefetched, since a second pass is faster there.
    # `n_passes` of the result counts all passes. Kumar, Sindhwani & Kambadur (2013), ICML, Algorithm 1 with
    # selection rules "max" and "rand".
    ray_search = _RaySearch(data, n_components, generator(rng) if variant == "rand" else None)
    rule = GreedyRule(
        begin=begin,
        advance=advance,
        facts=ray_search.facts,
        n_kept=4,
        refine=ray_search.refine,
        listen=ray_search.listen,
    )
    result = select_greedily(data, n_components, rule, method="xray", relative_floor=relative_floor(data))
    return replace(result, n_passes=(result.n_passes or 0) + ray_search.n_passes)


class _RaySearch:
    """The state of the search outside the passes: anchors, candidate samples, predictions and reports."""

    def __init__(self, data: DataMatrix, n_components: int, draws: np.random.Generator | None) -> None:
        self.data = data
        self.n_components = n_components
        self.draws = draws
        self.prefetches = draws is None and _prefetch_pays(data)
        self.drawn: deque[Array] = deque()  # drawn before they are needed
        self.anchors: list[Array] = []
        self.rays: Array = None  # the anchors as a matrix
        self.gram: Array = None
        self.pool: dict[int, Array] = {}
        self.predictions: list[tuple[Array, Array]] = []  # samples and their residuals
        self.reports: list[Report] = []
        self.heights: Any = None
        self.longest = 0.0
        self.n_blocks = 1
        self.n_passes = 0

    def listen(self, reports: list[Any]) -> None:
        """Receive the reports of the blocks."""
        if self.heights is None:
            # Rays are compared where they meet a plane: sum one for nonnegative samples, else (projected
            # samples) the plane through the mean and orthogonal to it.
            self.n_blocks = len(reports)
            signed = min(reports) < 0
            self.n_passes += signed
            self.heights = mean_row(self.data) if signed else np.ones(self.data.shape[1])
            return
        self.reports = reports
        start = 0
        for report in reports:
            for i, place in enumerate(report.places):
                self.pool[start + place] = _wide(report.rows[i, :])
            start += report.size

    def facts(self, row: Array, n_picks: int) -> dict[str, Any]:
        """Return the arguments of the pass after a selection."""
        self.anchors.append(_wide(row))
        self.rays = array_namespace(row).stack(self.anchors, axis=0)
        self.gram = self.rays @ self.rays.T
        self.predictions = []
        if n_picks < self.n_components:
            self.predictions = (
                self._predicted_draw() if self.draws is not None else self._predicted_from_pool()
            )
        return {"rays": self.rays, "search": self._search() if self.predictions else None}

    def refine(
        self, data: DataMatrix, kept: tuple[SampleArray, ...], index: int, row: Array
    ) -> tuple[int, Array]:
        """Return the extreme ray in the direction of the largest residual, or of a drawn one."""
        point = _wide(row) if self.draws is None else self._drawn_point(_wide(row))
        which = next((i for i, guess in enumerate(self.predictions) if _same(guess[0], point)), None)
        if which is None:
            which, self.predictions = 0, [(point, self._residual(point))]
            self.n_passes += 1
            self.listen(data.map_reduce_rows(look, *kept, n_out=0, search=self._search())[1][0])
        ray = best_candidate([entry for report in self.reports for entry in report.rays[which]])[0]
        if ray == index:
            return index, row
        known = self.pool.get(ray)
        return ray, data.take_rows([ray])[0, :] if known is None else known

    def _residual(self, row: Array) -> Array:
        return residuals(row[None, :], self.rays, self.gram)[0, :] if self.anchors else row

    def _search(self) -> Search:
        first = self.predictions[0][1]
        xp = array_namespace(first)
        directions = xp.stack([residual for _, residual in self.predictions], axis=1)
        slopes = self.rays @ first if self.anchors else first[:0]
        n_rows = max(1, min(NEW_CANDIDATES, self._room()) // self.n_blocks) if self.prefetches else 0
        return Search(directions, self.heights, slopes, n_rows)

    def _room(self) -> int:
        return int(min(POOL_SIZE, max(1, POOL_ENTRIES // self.data.shape[1])))

    def _predicted_from_pool(self) -> list[tuple[Array, Array]]:
        if not self.pool:
            return []
        indices = sorted(self.pool)
        xp = array_namespace(self.rays)
        left = residuals(xp.stack([self.pool[i] for i in indices], axis=0), self.rays, self.gram)
        squares = to_float64(xp.sum(left * left, axis=1))
        order = np.argsort(-squares, kind="stable")
        self.pool = {indices[i]: self.pool[indices[i]] for i in order[: self._room()]}
        tied = order[: int(np.sum(squares >= (1.0 - TIE_TOL) * squares[order[0]]))]
        return [(self.pool[indices[i]], left[int(i), :]) for i in tied[: min(MAX_DIRECTIONS, self._room())]]

    def _predicted_draw(self) -> list[tuple[Array, Array]]:
        # Residuals only decrease: a sample above the last threshold is drawn for certain.
        for turn in range(RANDOM_TRIES):
            if turn == len(self.drawn):
                self.drawn.append(self._draw())
            residual = self._residual(self.drawn[turn])
            if _length(residual) > EXPLAINED * self.longest:
                return [(self.drawn[turn], residual)]
        return []

    def _drawn_point(self, worst: Array) -> Array:
        self.longest = _length(self._residual(worst))
        for _ in range(RANDOM_TRIES):
            row = self.drawn.popleft() if self.drawn else self._draw()
            if _length(self._residual(row)) > EXPLAINED * self.longest:
                return row
        return worst

    def _draw(self) -> Array:
        assert self.draws is not None
        return _wide(self.data.take_rows([int(self.draws.integers(self.data.shape[0]))])[0, :])


def _prefetch_pays(data: DataMatrix) -> bool:
    whole = getattr(data, "base", data)  # of a view with scaled rows
    if not isinstance(whole, LocalMatrix):
        return True
    n_entries = whole.csr.nnz if isinstance(whole, SparseMatrix) else data.shape[0] * data.shape[1]
    return bool(n_entries >= PREFETCH_FROM)


def _wide(row: Array) -> Array:
    xp = array_namespace(row)
    return xp.astype(row, xp.float64)


def _same(one: Array, other: Array) -> bool:
    return bool(array_namespace(one).all(one == other))


def _length(vector: Array) -> float:
    return float(array_namespace(vector).linalg.vector_norm(vector))
