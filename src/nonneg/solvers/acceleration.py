"""Cheaper iterations first: on compressed data, in float32, and at last on the data as they are.

A level is the same problem on data that cost less per iteration. A step does as many of its iterations as
cost about two exact ones, then one exact iteration, whose loss and violation are what history and stopping
rule see. A level is left when it no longer tells the truth: the exact loss did not fall, or the exact
violation is much larger than the level's own. What decides is counted or measured on the iterates, never in
seconds, so that a fit can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from nonneg._threads import BLAS
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse import SparseMatrix
from nonneg.data.spectral import compressed
from nonneg.iteration.loop import changed
from nonneg.kernels.rows import converted
from nonneg.solvers.alternating import SCHEDULE, AlternatingProblem, AlternatingState

InnerPasses = Callable[[DataMatrix, int, float | None], tuple[int, int]]

# On a GPU nothing of this has been measured.
CONTAINERS = frozenset({"dense", "sparse", "dask", "streamed"})
# Columns of the compressed data per component. Of 2, 3 and 4, 3 ends where a plain fit does on digits and
# CBCL faces, k = 3 to 10, from the default initialization; 2 ends up to 1% above on digits.
WIDTH = 3
# The iterations of a level between two exact ones cost this many exact ones: 1 and 4 take as long or longer
# to the loss of scikit-learn on Olivetti faces and low rank with noise. Later, this part of all iterations so
# far, so that a fit whose loss is low enough ends soon after; but not more than ten.
SHARE, LATER, MOST_SHARE = 2.0, 0.15, 10
# Rejected extrapolations in a row after which a level is left.
STALLED = 2
# What rounding in float32 may add to the loss, relative to the squared norm of X.
LOSS_ROUNDING = 1e-7
# A level is left when the exact violation is this many times its own. On digits and low rank with noise the
# ratio was between 0.3 and 2.4 while the exact loss fell steadily, and 4 to 10 once it no longer did.
UNFAITHFUL = 3.0
# Iterations after which the loss of 200 passes of scikit-learn is reached: a level must pay within them.
EXPECTED = 20
# Operations of an iteration below which calls, and kernels for another dtype, cost as much as it does: about
# two milliseconds.
SMALLEST = 1e7
# Mean squares of X between which fourth powers of the factors, which a loss is, are far from the limits of
# float32; beyond, all iterations are exact.
LOWEST, HIGHEST = 1e-12, 1e12
# A copy of X in float32 (of its nonzeros and of those of its transpose, where X is sparse) may take this many
# bytes, half of what a fit may need beyond X and the factors.
COPY_BYTES = 32 << 20
# Rows stop after about three passes.
ROW_PASSES = 3


@dataclass(frozen=True)
class Level:
    """The same problem on cheaper data."""

    problem: AlternatingProblem
    cost: float  # of an iteration, in those of an exact one
    comparable: bool  # whether its loss is the exact one but for rounding


def operations(shape: tuple[float, float], k: int, entries: float, passes: Sequence[int]) -> float:
    """Return what an iteration costs, in operations of the kernels."""
    rows = sum(
        side * (2 * BLAS + 2 * min(inner, ROW_PASSES)) for side, inner in zip(shape, passes, strict=True)
    )
    return 4 * BLAS * k * entries + rows * k * k


class AcceleratedProblem:
    """An alternating problem whose steps are mostly done on cheaper data."""

    def __init__(
        self, exact: AlternatingProblem, k: int, inner_passes: InnerPasses, *, max_iter: float, tol: float
    ) -> None:
        self.exact, self.data, self.k, self.inner_passes = exact, exact.data, k, inner_passes
        self.max_iter, self.tol = max_iter, tol
        self.shape = (self.data.counted_rows(), float(self.data.shape[1]))
        # A product reads the zeros of a dense array too.
        stored = not isinstance(self.data, DenseMatrix)
        self.entries = float(self.data.count_nonzero()) if stored else self.shape[0] * self.shape[1]
        self.updates = cast("tuple[Any, Any]", (exact.update_W, exact.update_H))
        passes = [update.max_passes for update in self.updates]
        self.cost = operations(self.shape, k, self.entries, passes)
        self._built: dict[int, Level | None] = {}
        self._kinds = self._choose()

    @property
    def pays(self) -> bool:
        """Whether there is any cheaper level to begin with."""
        return bool(self._kinds)

    def _choose(self) -> list[Callable[[], Level | None]]:
        """Return the levels that pay by the count of their operations, cheapest first."""
        data, (n_rows, n_columns) = self.data, self.data.shape
        kinds: list[Callable[[], Level | None]] = []
        mean_square = self.exact.squared_norm / (self.shape[0] * self.shape[1])
        if data.has_missing or self.cost < SMALLEST or not LOWEST < mean_square < HIGHEST:
            return kinds
        width = WIDTH * self.k
        cost = self._relative_cost(width * sum(self.shape), data.xp.float32)
        # The range finder: products with `width` columns, three times.
        setup = 6 * BLAS * width * self.entries / self.cost
        saved = min(self.max_iter, EXPECTED) * (1 - (1 + SHARE) * cost / (SHARE + cost))
        # Sparse products cost less than compressed ones.
        if data.container != "sparse" and width < min(n_rows, n_columns) and saved > setup:
            kinds.append(self._compressed)
        copied = math.inf
        if isinstance(data, SparseMatrix):
            copied = 8.0 * data.csr.nnz
        elif isinstance(data, DenseMatrix) and data.container == "dense":
            copied = 4.0 * n_rows * n_columns
        if data.dtype == np.float64 and copied <= COPY_BYTES:
            kinds.append(self._single)
        return kinds

    def _relative_cost(self, entries: float, dtype: Any) -> float:
        passes = self.inner_passes(self.data, self.k, entries)
        cost = operations(self.shape, self.k, entries, passes) / self.cost
        return min(1.0, cost if dtype == self.data.dtype else 0.5 * cost)

    def _level(self, data: DataMatrix, entries: float) -> Level:
        passes = self.inner_passes(data, self.k, entries)
        of_W, of_H = (replace(update, max_passes=n) for update, n in zip(self.updates, passes, strict=True))
        problem = replace(self.exact, data=data, update_W=of_W, update_H=of_H)
        return Level(problem, self._relative_cost(entries, data.dtype), entries == self.entries)

    def _compressed(self) -> Level | None:
        width = WIDTH * self.k
        data = compressed(self.data, width, dtype=self.data.xp.float32)
        return None if data is None else self._level(data, width * sum(self.shape))

    def _single(self) -> Level:
        assert isinstance(self.data, DenseMatrix | SparseMatrix)
        return self._level(self.data.scaled_copy(1.0, np.float32), self.entries)

    def _at(self, number: int) -> Level | None:
        if number not in self._built:
            self._built.clear()  # one at a time: each holds a form of X
            self._built[number] = self._kinds[number]()
        return self._built[number]

    def step(self, state: AlternatingState) -> tuple[AlternatingState, dict[str, float]]:
        """Do some cheap iterations and an exact one, or only that; the exact loss does not increase."""
        before = n_iter = state.n_iter
        # The first iteration is exact: the stopping rule compares with it.
        while state.first > 0 and state.level < len(self._kinds) and n_iter + 2 <= self.max_iter:
            level = self._at(state.level)
            if level is None:
                state = changed(state, level=state.level + 1)
                continue
            share = min(max(SHARE, n_iter * LATER), MOST_SHARE, self.max_iter - n_iter - 1)
            trial, own, cost = self._descend(level, state, share)
            if level.comparable:
                # Only rounding lies between the two problems: the exact iteration is one of the sequence.
                after, _ = self.exact.step(trial)
            else:
                changes = self.exact.advance(trial, 0.0)
                numbers = {name: float(changes[name]) for name in ("loss", "violation")}
                after = changed(trial, **changes | numbers)
            n_iter += cost + 1
            if after.loss < state.loss and after.W is not trial.W:
                faithful = after.violation <= UNFAITHFUL * own
                after = changed(after, level=state.level + (not faithful), n_iter=n_iter)
                return after, _measures(after, n_iter - before)
            state = changed(state, level=state.level + 1)
        after, _ = self.exact.step(state)
        after = changed(after, n_iter=n_iter + 1, first=state.first or after.violation)
        return after, _measures(after, n_iter + 1 - before)

    def _descend(
        self, level: Level, state: AlternatingState, share: float
    ) -> tuple[AlternatingState, float, int]:
        """Do iterations that cost `share` exact ones; return where they end, their violation and cost."""
        data = level.problem.data
        cheap = _converted(data, state, data.dtype)
        cheap = changed(cheap, loss=state.loss if level.comparable else math.inf)
        own, done = math.inf, 0
        while done * level.cost < share and own > self.tol * state.first:
            cheap, _ = level.problem.step(cheap)
            done += 1
            own = 0.0 if cheap.restarts >= STALLED else cheap.violation
        if cheap.restarts >= STALLED:
            # Two rejected extrapolations in a row: rounding hides what they gain.
            cheap = changed(cheap, momentum=SCHEDULE.initial, ceiling=1.0, restarts=0)
        trial = changed(cheap, loss=cheap.loss + LOSS_ROUNDING * self.exact.squared_norm)
        return _converted(data, trial, self.data.dtype), own, max(1, int(done * level.cost))


def _measures(state: AlternatingState, n_iter: int) -> dict[str, float]:
    return {"loss": float(state.loss), "violation": float(state.violation), "iterations": n_iter}


def _converted(data: DataMatrix, state: AlternatingState, dtype: Any) -> AlternatingState:
    """Return the factors in another dtype; a pass over `data`, not over X."""
    names = ("W",) if state.W_plain is None else ("W", "W_plain")
    factors = (getattr(state, name) for name in names)
    rows, _ = data.map_reduce_rows(_converted_rows, *factors, n_out=len(names), dtype=dtype)
    new: dict[str, Any] = dict(zip(names, rows, strict=True))
    for name in ("Ht", "Ht_plain", "Ht_next"):
        Ht = getattr(state, name)
        new[name] = None if Ht is None else _cast(data.xp, Ht, dtype)
    return changed(state, **new)


def _converted_rows(block: LocalMatrix, *rows: Array, dtype: Any) -> tuple[tuple[Array, ...], tuple[()]]:
    return tuple(_cast(block.xp, part, dtype) for part in rows), ()


def _cast(xp: Any, array: Array, dtype: Any) -> Array:
    return converted(array, 1.0, dtype) if isinstance(array, np.ndarray) else xp.astype(array, dtype)
