"""Restarts of HALS that advance together: one product with the data for the factors of several."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import History, RelativeMeasure, Run, StopReason, iterate
from nonneg.kernels import clock
from nonneg.solvers.alternating import SCHEDULE, AlternatingProblem, AlternatingState, update_W_block
from nonneg.solvers.hals import hals_problem, inner_passes


def advance_together(data: Any, options: dict[str, Any], group: Sequence[Any], until: int) -> None:
    """Continue restarts of HALS, which share their products with the data."""
    stop = RelativeMeasure("violation", options["tol"])
    k = group[0].Ht.shape[1]
    shared = {name: value for name, value in options.items() if name not in ("beta", "tol")}
    shared.setdefault("passes", inner_passes(data, k))
    one = hals_problem(data, k, **shared)
    problems = [
        hals_problem(data, k, **shared, **copy.deepcopy(each.options)) if each.options else one
        for each in group
    ]
    members = tuple(_Member.of(each) for each in group)
    run = iterate(
        lambda members: _step_together(data, problems, members, stop),
        members,
        max_iter=until - members[0].n_iter,
        stop=lambda history: history["live"][-1] == 0,
    )
    for each, member in zip(group, run.state, strict=True):
        reason = StopReason.CONVERGED if member.finished else run.stop_reason
        each.saved.save(member.state, member.n_iter, member.seconds, member.history)
        each.run = Run(member.state, member.n_iter, reason, member.history, reason.value)


@dataclass(frozen=True)
class _Member:
    """A restart among those that advance together."""

    state: AlternatingState
    n_iter: int
    seconds: float
    history: History
    finished: bool = False

    @classmethod
    def of(cls, each: Any) -> _Member:
        first = AlternatingState(each.W, each.Ht, momentum=SCHEDULE.initial)
        return cls(*(each.saved.load(first) or (first, 0, 0.0, History())))


def _step_together(
    data: DataMatrix,
    problems: Sequence[AlternatingProblem],
    members: tuple[_Member, ...],
    stop: RelativeMeasure,
) -> tuple[tuple[_Member, ...], dict[str, float]]:
    """Do one iteration of every restart that has not converged."""
    started = clock.seconds()
    turns = {i: problems[i].turns(each.state) for i, each in enumerate(members) if not each.finished}
    wanted = {i: next(turn) for i, turn in turns.items()}
    found: dict[int, tuple[AlternatingState, dict[str, float]]] = {}
    while wanted:
        advanced = _advance_together(data, problems, wanted)
        wanted = {}
        for i, result in advanced.items():
            try:
                wanted[i] = turns[i].send(result)
            except StopIteration as end:
                found[i] = end.value
    elapsed = (clock.seconds() - started) / max(len(turns), 1)
    after = list(members)
    for i, (state, measures) in found.items():
        n_iter, seconds = members[i].n_iter + 1, members[i].seconds + elapsed
        history = History(members[i].history.as_dict())  # the argument of a step stays as it is
        history.record(n_iter, seconds, measures)
        after[i] = _Member(state, n_iter, seconds, history, stop(history))
    live = sum(not each.finished for each in after)
    return tuple(after), {"loss": min(each.state.loss for each in after), "live": live}


class _Product:
    """The data, of which the product with H' is known, and that with W will be."""

    def __init__(self, data: LocalMatrix, product: Array) -> None:
        self.product = product
        self.weights, self.weighted = data.weights, data.weighted
        self.row_grams, self.column_grams = data.row_grams, data.column_grams

    def times(self, Ht: Array) -> Array:
        return self.product

    def transposed_times(self, W: Array) -> None:
        self.W = W


def _advance_together(
    data: Any, problems: Sequence[AlternatingProblem], wanted: dict[int, tuple[AlternatingState, float]]
) -> dict[int, tuple[AlternatingState, float]]:
    """Call `advance` of several restarts, with one product with the data for all of their factors."""
    halves = {i: problems[i].first_half(*each) for i, each in wanted.items()}
    products = np.split(data.times(_beside([half[1]["Ht"] for half in halves.values()])), len(halves), axis=1)
    blocks = [_Product(data, np.ascontiguousarray(product)) for product in products]
    updated = [
        update_W_block(block, *sample_arrays, **shared)  # type: ignore[arg-type]
        for block, (sample_arrays, shared) in zip(blocks, halves.values(), strict=True)
    ]
    crosses = np.split(data.transposed_times(_beside([block.W for block in blocks])), len(halves), axis=1)
    out = {}
    for i, (rows, (violation, gram, _, penalty)), cross in zip(halves, updated, crosses, strict=True):
        sums = violation, gram, np.ascontiguousarray(cross), penalty
        out[i] = problems[i].second_half(*wanted[i], rows, sums)
    return out


def _beside(factors: list[Array]) -> Array:
    return factors[0] if len(factors) == 1 else np.concatenate(factors, axis=1)
