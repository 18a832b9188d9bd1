"""The certificate of MERIT: duality gap, margins, and the conditions of the paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.sparse_columns import SparseColumns
from nonneg.separable.certificate import margin_statement
from nonneg.separable.merit.alternatives import alternatives_statement, uncertain_anchors_statement
from nonneg.separable.merit.choice import Selection
from nonneg.separable.merit.initialization import WarmStartCondition, warm_start_condition
from nonneg.separable.merit.problem import FrankWolfeIterate, SelfDictionary
from nonneg.separable.merit.recovery_conditions import (
    ModelFacts,
    conditioning_statement,
    hull_distance,
    lemma_1_statement,
    support_statement,
    theorem_2_statement,
    theorem_3_statement,
    theorem_4_statement,
    warm_start_statement,
)
from nonneg.separable.weights import anchor_weights

# Points times anchors up to which the theorems are evaluated by default: their mixtures take about a second.
RECOVERY_SIZE = 1_000_000
# A larger duality gap, relative to the objective, does not say where the minimum is.
INFORMATIVE_GAP = 0.1
# A number of anchors is clear where the scores fall by this factor after the last. On choosing draws of
# studies/merit-certificate (259 numbers) 73% of the wrong numbers were below it, and 10% of the right ones.
CLEAR_DROP = 1.2


def merit_statements(
    data: DataMatrix,
    problem: SelfDictionary,
    state: FrankWolfeIterate,
    selection: Selection,
    *,
    initial: tuple[SparseColumns, int],
    n_iter: int,
    recovery: bool | None = None,
) -> list[Statement]:
    """Return the statements about the final iterate and the anchors."""
    anchors = selection.anchors
    W = to_float64(data.take_rows(anchors)).astype(np.float64)
    kappa = hull_distance(W)
    longest = float(np.linalg.norm(W, axis=1).max())
    share, n_outside = _support(state, anchors)
    first, t = initial
    condition = (
        warm_start_condition(first, t, anchors)
        if t > 0
        else WarmStartCondition(holds=False, row=None, xi=None)
    )
    margin = margin_statement(state.row_maxima, anchors, apart=selection.apart)
    statements = [
        duality_gap_statement(state.loss, state.gap),
        margin,
        alternatives_statement(
            W,
            selection.fit,
            margin=margin.number or 0.0,
            n_samples=data.shape[0],
            eps=float(data.xp.finfo(data.dtype).eps),
        ),
        uncertain_anchors_statement(data, anchors, selection.candidates),
        *number_statements(selection),
        *selection_statements(selection),
        conditioning_statement(kappa, longest),
        support_statement(share, n_outside),
        warm_start_statement(t, condition.holds, condition.row, condition.xi, n_iter),
    ]
    wanted = data.shape[0] * len(anchors) <= RECOVERY_SIZE if recovery is None else recovery
    if not wanted:
        return statements
    facts = model_facts(data, problem, state, anchors, W, kappa, n_outside == 0)
    theorems = (lemma_1_statement, theorem_2_statement, theorem_3_statement, theorem_4_statement)
    return statements + [state_of(facts) for state_of in theorems]


def number_statements(selection: Selection) -> list[Statement]:
    """State how clear the number of anchors is, where it was not given."""
    if selection.drop is None:
        return []
    k, holds = len(selection.anchors), selection.drop >= CLEAR_DROP
    sentence = f"The last of {k} anchors has a score {selection.drop:.4g} times that of the next candidate: "
    sentence += "the number is clear." if holds else "nearby numbers fit as well."
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    return [Statement("number-of-anchors", sentence, selection.drop, CLEAR_DROP, verdict, {"k": k})]


def selection_statements(selection: Selection) -> list[Statement]:
    """State whether the anchors or those of SPA fit better, where both were compared."""
    fits = selection.merit_fit, selection.spa_fit
    if fits[0] is None or fits[1] is None:
        return []
    (mine, largest), (spa, spa_largest) = (
        (math.sqrt(fit.mean), math.sqrt(fit.largest)) for fit in fits if fit is not None
    )
    sentence = (
        f"The anchors of MERIT leave residuals of {mine:.4g} (root mean square) and at most {largest:.4g}, "
        f"those of SPA {spa:.4g} and {spa_largest:.4g}; those of "
        f"{'SPA' if selection.from_spa else 'MERIT'} are returned."
    )
    quantities = {
        "merit": mine, "merit_largest": largest, "spa": spa, "spa_largest": spa_largest,
        "returned": "spa" if selection.from_spa else "merit",
    }  # fmt: skip
    number = math.sqrt(selection.fit.mean)
    return [Statement("fit", sentence, number, None, Verdict.HOLDS, quantities)]


def model_facts(
    data: DataMatrix,
    problem: SelfDictionary,
    state: FrankWolfeIterate,
    anchors: IntArray,
    W: FloatArray,
    kappa: float | None,
    inside: bool,
) -> ModelFacts:
    """Measure the model X = W H + V that belongs to the anchors."""
    mixtures = anchor_weights(data, W, sum_to_one=True)
    _, (norms,) = data.map_reduce_rows(_noise, mixtures, n_out=0, right=data.to_device(W))
    squares = np.concatenate(norms)
    H = to_float64(mixtures).astype(np.float64)
    others = np.ones(len(H), dtype=bool)
    others[anchors] = False
    error = state.columns.as_csc().T.tocsr() @ H - H
    lengths = np.linalg.norm(error, axis=1)
    singular = np.linalg.svd(W, compute_uv=False)
    return ModelFacts(
        n_points=len(H),
        k=len(anchors),
        lam=problem.lam,
        mu=problem.mu,
        gamma=float(np.linalg.norm(W, axis=1).max()),
        sigma_max=float(singular[0]),
        sigma_min=float(singular[-1]) if len(singular) == len(anchors) else 0.0,
        kappa=kappa,
        delta=float(np.sqrt(squares.max())),
        noise=float(squares.sum()),
        closeness=min(1.0, float(H[others].max(initial=0.0))),
        omega=float(lengths.max()),
        nu=_second_gap(error, lengths, W),
        psi=_smallest_difference(state.columns, anchors),
        inside=inside,
        largest_residual=state.largest_residual,
    )


def _noise(block: LocalMatrix, mixtures: Array, *, right: Array) -> tuple[tuple[()], tuple[list[Any]]]:
    xp, parts = block.xp, []
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        rows = rows - xp.astype(mixtures[start:stop, :], xp.float64) @ xp.astype(right, xp.float64)
        parts.append(to_float64(xp.sum(rows * rows, axis=1)))
    return (), (parts,)


def _support(state: FrankWolfeIterate, anchors: IntArray) -> tuple[float, int]:
    columns, inside = state.columns, np.zeros(len(state.counts), dtype=bool)
    inside[anchors] = True
    used = np.arange(columns.rows.shape[1]) < columns.counts[:, None]
    kept = columns.weights[used & inside[columns.rows]].sum(dtype=np.float64)
    whole = columns.weights[used].sum(dtype=np.float64)
    return float(kept / whole) if whole else 0.0, int(np.sum((state.row_count > 0) & ~inside))


def _second_gap(error: FloatArray, lengths: FloatArray, W: FloatArray) -> float:
    moving = lengths > 0
    if len(W) < 2 or not moving.any():
        return 0.0
    slopes = (error[moving] / lengths[moving, None]) @ (W @ W.T)
    two = np.partition(slopes, 1, axis=1)
    return float((two[:, 1] - two[:, 0]).min())


def _smallest_difference(columns: SparseColumns, anchors: IntArray) -> float | None:
    rows, n = columns.as_csc().tocsr(), columns.n_columns
    smallest = None
    for anchor in anchors:
        values = rows.data[rows.indptr[anchor] : rows.indptr[anchor + 1]]
        values = np.unique(np.append(values, 0.0) if len(values) < n else values)
        if len(values) > 1:
            step = float(np.diff(values).min())
            smallest = step if smallest is None else min(smallest, step)
    return smallest


def duality_gap_statement(objective: float, gap: float, *, tol: float = 0.0) -> Statement:
    """State that the objective is within the duality gap of its minimum."""
    if math.isnan(gap):
        return Statement(
            "duality-gap", "The duality gap was not measured.", None, None, Verdict.NOT_VERIFIABLE
        )
    share = gap / objective if objective > 0 else float("nan")
    part = f" ({100 * share:.3g}% of it)" if math.isfinite(share) else ""
    sentence = f"The objective, {objective:.6g}, is at most {max(gap, 0.0):.4g}{part} above its minimum."
    if tol > 0:
        sentence += f" The tolerance is {tol:.3g}."
        verdict = Verdict.HOLDS if gap <= tol else Verdict.FAILS
    elif share > INFORMATIVE_GAP:
        sentence += f" A gap of more than {INFORMATIVE_GAP:.0%} does not tell whether the minimum is near."
        verdict = Verdict.NOT_VERIFIABLE
    else:
        verdict = Verdict.HOLDS
    quantities = {"objective": objective, "lower_bound": objective - gap, "relative_gap": share}
    return Statement("duality-gap", sentence, gap, tol if tol > 0 else None, verdict, quantities)
