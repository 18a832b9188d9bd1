"""How a Frank-Wolfe iterate of the self-dictionary problem moves: the published step, and quicker ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import IntArray
from nonneg.kernels.column_residuals import advance_residuals, residuals_of
from nonneg.kernels.sparse_columns import move_columns, raised_row_facts, row_facts
from nonneg.kernels.sparse_columns import torch as tensor_columns
from nonneg.separable.merit.frank_wolfe import open_loop_step
from nonneg.separable.merit.self_dictionary import FrankWolfeIterate, SelfDictionary

# Residuals are computed anew from the coefficients after so many steps, so that rounding does not add up.
REFRESH = 1000


@dataclass(frozen=True)
class Move:
    """What every column keeps, gains and loses."""

    entering: IntArray  # the points gained
    keep: Any  # shares of the old column and of the point gained
    gain: Any
    leaving: IntArray | None = None  # the points of which a part is lost; -1 for none
    cut: Any = 0.0  # that part
    exact: bool = False  # whether it is an open-loop step of all columns, which keeps whole weights whole


def open_loop(problem: SelfDictionary, state: FrankWolfeIterate) -> Move:
    """Return the published move: 2 / (t + 2) towards the answer, in all columns that are not skipped."""
    assert state.chosen is not None
    size = open_loop_step(state.t)
    if state.active is None:
        return Move(state.chosen, 1.0 - size, size, exact=True)
    return Move(state.chosen, np.where(state.active, 1.0 - size, 1.0), np.where(state.active, size, 0.0))


def advance(problem: SelfDictionary, state: FrankWolfeIterate, move: Move) -> FrankWolfeIterate:
    """Return the next iterate, not answered yet."""
    # An open-loop step of all columns adds t + 1 to one weight a column and makes the total (t+1)(t+2)/2; the
    # weights are whole numbers from a cold start.
    t = state.t
    if move.exact:
        total = (t + 1) * (t + 2) / 2
        add, raised = (
            (tensor_columns.add_to_columns, tensor_columns.raised_row_facts)
            if state.placed
            else (move_columns, raised_row_facts)
        )
        columns, reached = add(state.columns, move.entering, t + 1, total=total)
        fresh = columns.counts > state.counts
        row_max, row_count = raised(state.row_max, state.row_count, move.entering, reached, fresh)
    else:
        columns, _ = move_columns(
            state.columns,
            move.entering,
            move.gain,
            total=1.0,
            keep=move.keep,
            leaving=move.leaving,
            cut=move.cut,
        )
        row_max, row_count = row_facts(columns)
    if (t + 1) % REFRESH == 0:
        lists = tensor_columns.columns_home(columns) if state.placed else columns
        residual = residuals_of(problem.dictionary, lists)
    else:
        residual = advance_residuals(
            problem.dictionary,
            state.residual,
            move.entering,
            keep=move.keep,
            gain=move.gain,
            leaving=move.leaving,
            cut=move.cut,
        )
    return state.changed(
        rows=columns.rows,
        weights=columns.weights,
        counts=columns.counts,
        total=columns.total,
        row_max=row_max,
        row_count=row_count,
        residual=residual,
        t=t + 1,
        # The old answer stays for columns that are skipped; it is not one to the new iterate.
        chosen=state.chosen if state.active is not None else None,
        gap=float("nan"),
    )
