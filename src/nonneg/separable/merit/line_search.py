"""Steps with an exact line search: toward a vertex, away from one, or from one to another.

Every column has a direction and the step size that minimizes its own quadratic model. Because the row
sparsity couples the columns, one exact line search along the joint direction then scales all of them. The
objective never increases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.optimize import brentq

from nonneg._arrays import to_numpy
from nonneg._typing import FloatArray, IntArray
from nonneg.iteration.loop import Stalled
from nonneg.kernels.column_residuals import advance_residuals, entry_products
from nonneg.kernels.sparse_columns import UNDERFLOW
from nonneg.separable.merit.frank_wolfe import Step, advance, open_loop
from nonneg.separable.merit.problem import FrankWolfeIterate, SelfDictionary
from nonneg.separable.merit.row_sparsity import RowSparsity, SparsityOnLine


@dataclass(frozen=True)
class Entries:
    """The nonzero coefficients of all columns, laid out as in their lists."""

    used: Any  # whether a place of a list is in use
    values: FloatArray  # the coefficients; zero elsewhere
    shares: FloatArray  # the gradient of the row sparsity there; zero elsewhere

    @classmethod
    def of(cls, state: FrankWolfeIterate, sparsity: RowSparsity, mu: float) -> Entries:
        """Read an iterate."""
        used = np.arange(state.rows.shape[1]) < state.counts[:, None]
        values = np.where(used, state.weights, 0.0)
        near = used & (state.row_max[state.rows] - state.weights <= UNDERFLOW * mu)
        shares = np.where(used, sparsity.base[state.rows], 0.0)
        shares[near] = sparsity.shares
        return cls(used, values, shares)


def line_search(problem: SelfDictionary, state: FrankWolfeIterate) -> Step:
    """Return a step of all columns toward their vertices."""
    return _searched(problem, state, lambda entries: _toward(state))


def away(problem: SelfDictionary, state: FrankWolfeIterate) -> Step:
    """Return a step of every column toward its vertex or away from its worst one, whichever promises more."""

    def directions(entries: Entries) -> Step:
        worst, score, mean, weight = _worst(problem, state, entries)
        toward = _toward(state)
        assert state.column_gaps is not None
        turned = (score - mean > state.column_gaps) & (weight < 1.0)
        far = np.where(turned, weight / np.where(turned, 1.0 - weight, 1.0), 0.0)
        return Step(
            toward.entering,
            keep=np.where(turned, 1.0 + far, toward.keep),
            gain=np.where(turned, 0.0, toward.gain),
            leaving=np.where(turned, worst, -1),
            cut=far,
        )

    return _searched(problem, state, directions)


def pairwise(problem: SelfDictionary, state: FrankWolfeIterate) -> Step:
    """Return a pairwise step: in every column, weight moves from its worst vertex to the new one."""

    def directions(entries: Entries) -> Step:
        worst, _, _, weight = _worst(problem, state, entries)
        assert state.vertices is not None
        moving = (worst != state.vertices) & _moving(state)
        amount = np.where(moving, weight, 0.0)
        return Step(state.vertices, np.ones(len(worst)), amount, np.where(moving, worst, -1), amount)

    return _searched(problem, state, directions)


def take_corrective_steps(
    problem: SelfDictionary,
    state: FrankWolfeIterate,
    rule: Callable[[SelfDictionary, FrankWolfeIterate], Step],
    n_steps: int,
) -> FrankWolfeIterate:
    """Take steps over the vertices that each column already uses, without calls of the oracle."""
    t, vertices = state.t, state.vertices
    for _ in range(n_steps):
        entries = Entries.of(state, problem.sparsity(state), problem.mu)
        slopes = entry_products(problem.dictionary, state.residual, state.columns)
        slopes += problem.lam * entries.shares
        place = np.argmin(np.where(entries.used, slopes, np.inf), axis=1)[:, None]
        lowest = np.take_along_axis(slopes, place, 1)[:, 0]
        gaps = np.sum(slopes * entries.values, axis=1) - lowest
        best = np.take_along_axis(state.rows, place, 1)[:, 0].astype(np.int64)
        try:
            step = rule(problem, replace(state, vertices=best, column_gaps=gaps))
        except Stalled:
            break
        state = advance(problem, state, step)
    return replace(state, t=t, vertices=vertices)


def _moving(state: FrankWolfeIterate) -> Any:
    return np.ones(len(state.counts), dtype=bool) if state.active is None else state.active


def _toward(state: FrankWolfeIterate) -> Step:
    moving = _moving(state)
    assert state.vertices is not None
    none = np.zeros(len(moving))
    return Step(state.vertices, np.where(moving, none, 1.0), np.where(moving, 1.0, none), cut=none)


def _worst(
    problem: SelfDictionary, state: FrankWolfeIterate, entries: Entries
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    # For every column: the vertex in use with the largest gradient, that gradient, the mean, and the weight.
    slopes = entry_products(problem.dictionary, state.residual, state.columns)
    slopes += problem.lam * entries.shares
    mean = np.sum(slopes * entries.values, axis=1)
    place = np.argmax(np.where(entries.used, slopes, -np.inf), axis=1)[:, None]
    worst = np.take_along_axis(state.rows, place, 1)[:, 0].astype(np.int64)
    found = (np.take_along_axis(array, place, 1)[:, 0] for array in (slopes, entries.values))
    score, weight = found
    return worst, score, mean, weight


def _searched(
    problem: SelfDictionary, state: FrankWolfeIterate, directions: Callable[[Entries], Step]
) -> Step:
    if not state.counts.any():
        # All coefficients are zero: the first step goes to the vertices.
        return _toward(state)
    sparsity = problem.sparsity(state)
    entries = Entries.of(state, sparsity, problem.mu)
    full = directions(entries)
    residual = state.residual
    xp = array_namespace(residual)
    ends = advance_residuals(
        problem.dictionary,
        residual,
        full.entering,
        keep=full.keep,
        gain=full.gain,
        leaving=full.leaving,
        cut=full.cut,
    )
    change = ends - residual
    slopes = to_numpy(xp.sum(residual * change, axis=1))
    bends = to_numpy(xp.sum(change * change, axis=1))
    enter, leave, extra = _places(state, full, entries)
    moved = (full.keep - 1.0)[:, None] * entries.values
    moved += np.where(enter, full.gain[:, None], 0.0) - np.where(leave, full.cut[:, None], 0.0)
    outside = np.where(extra, full.gain * sparsity.base[full.entering], 0.0)
    promised = slopes + problem.lam * (np.sum(moved * entries.shares, axis=1) + outside)
    # A column whose own model does not decrease stays.
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.where(promised < 0, np.clip(-promised / bends, 0.0, 1.0), 0.0)
    sizes = np.where((promised < 0) & (bends == 0), 1.0, np.nan_to_num(sizes))
    if not sizes.any():
        raise Stalled
    size = _search(problem, state, full, entries, (slopes, bends, sizes), moved, extra)
    taken = size * sizes
    return Step(
        full.entering, 1.0 + taken * (full.keep - 1.0), taken * full.gain, full.leaving, taken * full.cut
    )


def _places(state: FrankWolfeIterate, full: Step, entries: Entries) -> tuple[Any, Any, Any]:
    enter = entries.used & (state.rows == full.entering[:, None])
    leaving = np.full(len(full.entering), -1) if full.leaving is None else full.leaving
    leave = entries.used & (state.rows == leaving[:, None])
    return enter, leave, (full.gain > 0) & ~enter.any(axis=1)


def _search(
    problem: SelfDictionary,
    state: FrankWolfeIterate,
    full: Step,
    entries: Entries,
    model: tuple[FloatArray, FloatArray, FloatArray],
    moved: FloatArray,
    extra: Any,
) -> float:
    slopes, bends, sizes = model
    first, second = float(np.sum(sizes * slopes)), float(np.sum(sizes * sizes * bends))
    most = float(1.0 / sizes.max())
    if problem.lam == 0:
        return min(most, -first / second) if second > 0 else most
    along = SparsityOnLine(
        np.concatenate([state.rows[entries.used], full.entering[extra].astype(np.int32)]),
        np.concatenate([entries.values[entries.used], np.zeros(int(extra.sum()))]),
        np.concatenate([(sizes[:, None] * moved)[entries.used], (sizes * full.gain)[extra]]),
        len(state.counts),
        problem.mu,
    )

    def slope(size: float) -> float:
        return first + size * second + problem.lam * along.at(size)[1]

    if slope(0.0) >= 0:
        raise Stalled
    if slope(most) <= 0:
        return most
    size = float(brentq(slope, 0.0, most, xtol=1e-15 * most, rtol=8.9e-16, maxiter=200))
    begin, end = along.at(0.0)[0], along.at(size)[0]
    if first * size + 0.5 * second * size * size + problem.lam * (end - begin) > 0:
        raise Stalled
    return size


STEP_RULES: dict[str, Callable[[SelfDictionary, FrankWolfeIterate], Step]] = {
    "open-loop": open_loop,
    "line-search": line_search,
    "away": away,
    "pairwise": pairwise,
}
"""The step rules, by name."""
