"""Cheaper iterations first: on compressed data, on the data in float32, and at last on the data as they are.

A step does as many iterations on cheaper data as cost about two exact ones, then one exact iteration, whose
loss and violation are what history and stopping rule see. Cheaper data are left when they no longer tell the
truth: the exact loss did not fall, or the exact violation is much larger than theirs. What decides is counted
or measured on the iterates, never in seconds, so that a fit can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from nonneg._threads import BLAS
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.spectral import compressed
from nonneg.iteration.loop import changed
from nonneg.solvers.alternating import AlternatingProblem, AlternatingState
from nonneg.solvers.extrapolation import INITIAL

InnerPasses = Callable[[DataMatrix, int, float | None], tuple[int, int]]

# Products with sparse data cost less than compressed ones, and on a GPU nothing of this has been measured.
CONTAINERS = frozenset({"dense", "dask", "streamed"})
# Columns of the compressed data per component. With three, a fit ends where it does on X itself; with two, up
# to 1% above.
WIDTH = 3
# The cheap iterations between two exact ones cost this many exact ones: one and four take as long or longer.
# Later, this part of all iterations so far, so that a fit whose loss is low enough ends soon after; but not
# more than ten.
SHARE, LATER, MOST_SHARE = 2.0, 0.15, 10
# Rejected extrapolations in a row after which an exact iteration follows.
STALLED = 2
# Cheaper data are left when the exact violation is this many times theirs. The ratio is 0.3 to 2.4 while the
# exact loss falls steadily, and 4 to 10 once it does not.
UNFAITHFUL = 3.0
# Iterations after which the loss of 200 passes of scikit-learn is reached: compression must pay within them.
EXPECTED = 20
# Operations of an iteration below which calls, and kernels for another dtype, cost as much as it does: about
# two milliseconds.
SMALLEST = 1e7
# Mean squares of X between which fourth powers of the factors, which a loss is, are far from the limits of
# float32; beyond, all iterations are exact.
LOWEST, HIGHEST = 1e-12, 1e12
# A copy of X in float32 may take this many bytes, half of what a fit may need beyond X and the factors.
COPY_BYTES = 32 << 20
# Rows stop after about three passes.
ROW_PASSES = 3


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
        self.exact, self.data, self.max_iter, self.tol = exact, exact.data, max_iter, tol
        self.width = WIDTH * k
        shape = self.data.counted_rows(), float(self.data.shape[1])
        # A product reads the zeros of a dense array too.
        stored = not isinstance(self.data, DenseMatrix)
        entries = float(self.data.count_nonzero()) if stored else shape[0] * shape[1]
        updates = cast("tuple[Any, Any]", (exact.update_W, exact.update_H))
        whole = operations(shape, k, entries, [update.max_passes for update in updates])
        passes = inner_passes(self.data, k, self.width * sum(shape))
        self._updates = [replace(update, max_passes=n) for update, n in zip(updates, passes, strict=True)]
        # Of a cheap iteration, in exact ones; an operation in float32 takes half as long.
        single = 0.5 if self.data.dtype == self.data.xp.float64 else 1.0
        cost = min(1.0, single * operations(shape, k, self.width * sum(shape), passes) / whole)
        # The range finder: products with `width` columns, three times.
        setup = 6 * BLAS * self.width * entries / whole
        saved = min(max_iter, EXPECTED) * (1 - (1 + SHARE) * cost / (SHARE + cost))
        mean_square = exact.squared_norm / (shape[0] * shape[1])
        # What makes the problem on cheaper data, the cost of its iterations, and whether it is the same one.
        self.levels: list[tuple[Callable[[], AlternatingProblem | None], float, bool]] = []
        self._made: dict[int, AlternatingProblem | None] = {}
        if self.data.has_missing or not LOWEST < mean_square < HIGHEST or whole < SMALLEST:
            return
        if self.width < min(self.data.shape) and saved > setup:
            self.levels.append((self._compressed, cost, False))
        if self.data.container == "dense" and single < 1 and 4 * entries <= COPY_BYTES:
            self.levels.append((self._single, single, True))

    def _compressed(self) -> AlternatingProblem | None:
        data = compressed(self.data, self.width, dtype=self.data.xp.float32)
        of_W, of_H = self._updates
        return None if data is None else replace(self.exact, data=data, update_W=of_W, update_H=of_H)

    def _single(self) -> AlternatingProblem:
        data = cast("DenseMatrix", self.data)
        return replace(self.exact, data=data.sample_matrix(data.xp.astype(data.array, data.xp.float32)))

    def step(self, state: AlternatingState) -> tuple[AlternatingState, dict[str, float]]:
        """Do some cheap iterations and an exact one, or only that; the exact loss does not increase."""
        before = n_iter = state.n_iter
        # The first iteration is exact: the stopping rule compares with it.
        while state.first > 0 and state.level < len(self.levels) and n_iter + 2 <= self.max_iter:
            make, unit, same = self.levels[state.level]
            if state.level not in self._made:
                self._made = {state.level: make()}  # one at a time: each holds a form of X
            share = min(max(SHARE, n_iter * LATER), MOST_SHARE, self.max_iter - n_iter - 1)
            if (problem := self._made[state.level]) is not None:
                trial, own, cost = self._descend(problem, unit, state, share)
                # If only rounding lies between the problems, the exact iteration is one of the sequence.
                after = changed(trial, **self.exact.advance(trial, trial.momentum if same else 0.0))
                n_iter += cost + 1
                if after.loss < state.loss:
                    level = state.level + (after.violation > UNFAITHFUL * own)
                    return changed(after, level=level, n_iter=n_iter), _measures(after, n_iter - before)
            state = changed(state, level=state.level + 1)
        after, _ = self.exact.step(state)
        after = changed(after, n_iter=n_iter + 1, first=state.first or after.violation)
        return after, _measures(after, n_iter + 1 - before)

    def _descend(
        self, problem: AlternatingProblem, unit: float, state: AlternatingState, share: float
    ) -> tuple[AlternatingState, float, int]:
        """Do iterations of cost `unit` up to `share`; return where they end, their violation and cost."""
        data = problem.data
        cheap = changed(_converted(data, state, data.dtype), loss=math.inf)
        own, done = math.inf, 0
        while done * unit < share and own > self.tol * state.first:
            cheap, _ = problem.step(cheap)
            done += 1
            own = 0.0 if cheap.restarts >= STALLED else cheap.violation
        if cheap.restarts >= STALLED:
            # Two rejected extrapolations in a row: rounding hides what they gain.
            cheap = changed(cheap, momentum=INITIAL, ceiling=1.0, restarts=0)
        return _converted(data, cheap, self.data.dtype), own, max(1, int(done * unit))


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
        new[name] = None if Ht is None else data.xp.astype(Ht, dtype)
    return changed(state, **new)


def _converted_rows(block: LocalMatrix, *rows: Array, dtype: Any) -> tuple[tuple[Array, ...], tuple[()]]:
    return tuple(block.xp.astype(part, dtype) for part in rows), ()
