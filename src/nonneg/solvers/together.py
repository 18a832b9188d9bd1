"""Restarts of HALS that advance together: one product with the data for the factors of several."""

from __future__ import annotations

import copy
import sys
import time
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nonneg._typing import Array
from nonneg.data import LocalMatrix
from nonneg.iteration import History, Run, StopReason, iterate, least_squares_rule
from nonneg.kernels.rows import gram_of
from nonneg.solvers.alternating import (
    SCHEDULE,
    AlternatingProblem,
    AlternatingState,
    update_W_block,
)
from nonneg.solvers.hals import hals_problem, inner_passes


def advance_together(data: Any, options: dict[str, Any], waiting: deque[Any], until: int, size: int) -> None:
    """Continue restarts of HALS, `size` at a time; when one has ended, the next that waits takes its place.

    Other threads may take restarts from `waiting` as well.
    """
    stop = least_squares_rule(options["tol"])
    shared = {name: value for name, value in options.items() if name not in ("beta", "tol")}
    one: list[AlternatingProblem] = []

    def problem_of(each: Any) -> AlternatingProblem:
        k = each.Ht.shape[1]
        shared.setdefault("passes", inner_passes(data, k))
        if each.options:
            return hals_problem(data, k, **shared, **copy.deepcopy(each.options))
        if not one:
            one.append(hals_problem(data, k, **shared))
        return one[0]

    def filled(members: tuple[_Member, ...]) -> tuple[_Member, ...]:
        found = list(members)
        while len(found) < size:
            try:
                each = waiting.popleft()
            except IndexError:
                break
            found.append(_Member(each, problem_of(each)))
            if found[-1].n_iter >= until:
                found.pop().end(StopReason.MAX_ITER)
        return tuple(found)

    def step(members: tuple[_Member, ...]) -> tuple[tuple[_Member, ...], dict[str, float]]:
        started = time.perf_counter()
        results = _advanced(data, members)
        elapsed = (time.perf_counter() - started) / len(members)
        for member, result in zip(members, results, strict=True):
            if member.take(result, elapsed):
                if stop(member.history):
                    member.end(StopReason.CONVERGED)
                elif member.n_iter >= until:
                    member.end(StopReason.MAX_ITER)
        members = filled(tuple(member for member in members if not member.ended))
        return members, {"live": len(members)}

    members = filled(())
    if members:
        run = iterate(step, members, max_iter=sys.maxsize, stop=lambda history: history["live"][-1] == 0)
        for member in run.state:  # interrupted
            waiting.clear()  # other threads finish what they have begun
            if not member.ended:
                member.end(run.stop_reason)


class _Member:
    """A restart among those that advance together.

    A rejected extrapolation takes it a second turn, while others begin their next iteration.
    """

    def __init__(self, each: Any, problem: AlternatingProblem) -> None:
        self.each, self.problem = each, problem
        first = AlternatingState(each.W, each.Ht, momentum=SCHEDULE.initial)
        found = each.saved.load(first) or (first, 0, 0.0, History())
        self.state: AlternatingState = found[0]
        self.n_iter: int = found[1]
        self.seconds: float = found[2]
        self.history: History = found[3]
        self.ended = False
        self._begin()

    def _begin(self) -> None:
        self.turns = self.problem.turns(self.state)
        self.wanted = next(self.turns)

    def take(self, result: tuple[AlternatingState, float], seconds: float) -> bool:
        """Continue with what `advance` returned; tell whether that ends an iteration."""
        self.seconds += seconds
        try:
            self.wanted = self.turns.send(result)
        except StopIteration as end:
            self.state, measures = end.value
            self.n_iter += 1
            self.history.record(self.n_iter, self.seconds, measures)
            self._begin()
            return True
        return False

    def end(self, reason: StopReason) -> None:
        """Give the run to the restart."""
        self.ended = True
        self.each.saved.save(self.state, self.n_iter, self.seconds, self.history)
        self.each.run = Run(self.state, self.n_iter, reason, self.history, reason.value)


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


def _advanced(data: Any, members: Sequence[_Member]) -> list[tuple[AlternatingState, float]]:
    """Call `advance` of several restarts, with one product with the data for all of their factors."""
    fused = [member.problem.of_products for member in members]
    if any(each is None for each in fused):
        return _advanced_by_calls(data, members)
    firsts = [state.initial_Ht(momentum) for state, momentum in (member.wanted for member in members)]
    edges = np.cumsum([0, *(Ht.shape[1] for Ht in firsts)]).tolist()
    places = [slice(*edge) for edge in pairwise(edges)]
    # Sparse products take the factors as they are.
    products = data.times(_beside(firsts))
    rows = [
        each.update_W(*member.wanted, gram_of(Ht), products[:, place])
        for each, member, Ht, place in zip(fused, members, firsts, places, strict=True)
    ]
    products = data.transposed_times(_beside([each.chosen for each in rows]))
    return [
        each.update_H(*member.wanted, updated, products[:, place])
        for each, member, updated, place in zip(fused, members, rows, places, strict=True)
    ]


def _advanced_by_calls(data: Any, members: Sequence[_Member]) -> list[tuple[AlternatingState, float]]:
    """Do the same where data have weights."""
    halves = [member.problem.first_half(*member.wanted) for member in members]
    products = np.split(data.times(_beside([shared["Ht"] for _, shared in halves])), len(halves), axis=1)
    blocks = [_Product(data, np.ascontiguousarray(product)) for product in products]
    updated = [
        update_W_block(block, *sample_arrays, **shared)  # type: ignore[arg-type]
        for block, (sample_arrays, shared) in zip(blocks, halves, strict=True)
    ]
    crosses = np.split(data.transposed_times(_beside([block.W for block in blocks])), len(halves), axis=1)
    out = []
    for member, (rows, (violation, gram, _, penalty)), cross in zip(members, updated, crosses, strict=True):
        sums = violation, gram, np.ascontiguousarray(cross), penalty
        out.append(member.problem.second_half(*member.wanted, rows, sums))
    return out


def _beside(factors: list[Array]) -> Array:
    return factors[0] if len(factors) == 1 else np.concatenate(factors, axis=1)
