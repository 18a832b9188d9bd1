"""MERIT: Frank-Wolfe on the self-dictionary problem with smoothed row sparsity, in linear memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._arrays import numpy_dtype
from nonneg._typing import IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError
from nonneg.iteration import Checkpoint, FirstOf, Progress
from nonneg.iteration.progress import reporter
from nonneg.kernels.column_residuals import residuals_of
from nonneg.kernels.self_dictionary import runs_fused
from nonneg.kernels.sparse_columns import scaled_columns
from nonneg.separable.merit.certificate import merit_statements
from nonneg.separable.merit.frank_wolfe import Step, advance, frank_wolfe
from nonneg.separable.merit.initialization import (
    LONGEST_EXACT,
    WarmStart,
    first_iteration,
    initial_columns,
    warm_start,
)
from nonneg.separable.merit.line_search import STEP_RULES, take_corrective_steps
from nonneg.separable.merit.penalty_weight import balanced_weight, estimated_number
from nonneg.separable.merit.problem import FrankWolfeIterate, SelfDictionary
from nonneg.separable.merit.stopping import AnchorsUnchanged, RelativeChange, ResidualBelow
from nonneg.separable.merit.tie_breaking import break_ties
from nonneg.separable.result import SelectionResult
from nonneg.separable.row_maxima import leading_rows

# Bytes per second that checkpoints may write on average: a large run is saved less often, so that saving
# takes little of its time.
SAVED_PER_SECOND = 2e7
# Largest size in bytes of the dense residuals of sparse points, before and after a step (16 GiB).
RESIDUAL_LIMIT = float(16 << 30)
# Corrective steps after each call of the oracle, by step rule, unless the user says otherwise.
CORRECTIVE_STEPS = {"pairwise": 10}


def merit(
    data: DataMatrix,
    n_components: int | None = None,
    *,
    lam: float | str = "auto",
    mu: float = 1e-5,
    max_iter: int = 100,
    tol: float = 1e-5,
    init: Any = None,
    t_init: str | int = "paper",
    steps: str = "open-loop",
    corrective_steps: int | None = None,
    skip_converged: bool = False,
    residual_tol: float | None = None,
    change_tol: float | None = None,
    anchor_window: int | None = None,
    ties: str = "farthest",
    recovery: bool | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: Any = None,
) -> SelectionResult:
    r"""Write every point as a mixture of few points, and select the points with the largest weights.

    .. math::

        \min_C \tfrac12 \|X - XC\|_F^2 + \lambda \sum_n \mu \log \frac1N \sum_l e^{c_{nl}/\mu}
        \quad\text{subject to}\quad C \ge 0,\ 1^\top C = 1^\top

    with one point per column of X, as in the paper. The anchors are the rows of C with the largest entries.

    Parameters
    ----------
    data : DataMatrix
        The data, one point per row, in this process; entries may be negative.
    n_components : int or None
        The number of anchors; None takes the largest drop of the sorted row maxima (`SelectionResult.curve`),
        among twice as many as `nonneg.separable.merit.penalty_weight.estimated_number` says.
    lam : float or "auto"
        Weight of the row sparsity as in (18) of the paper, nonnegative; 0 is MERIT(0). "auto" is
        ``||X - W H|| / (2 K)`` with the K anchors of successive projections as W and the best mixtures as H;
        see `nonneg.separable.merit.penalty_weight` for an unknown K.
    mu : float
        Smoothing of the row sparsity, positive.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop at an iterate whose duality gap is at most this, in the unit of the objective.
    init : None, array of int or matrix
        A cold start from zero, or a warm start from anchors or coefficients.
    t_init : {"paper", "authors"} or int
        The iteration at which a warm start continues; see
        `nonneg.separable.merit.initialization.first_iteration`.
    steps : {"open-loop", "line-search", "away", "pairwise"}
        "open-loop" is the published 2 / (t + 2). The others depart from the published iterates: every column
        has a step size of its own, and one exact line search along the joint direction makes the objective
        decrease. "away" adds away steps, "pairwise" moves weight from the worst vertex to the best.
    corrective_steps : int, optional
        The number of steps over the vertices in use after each call of the oracle, so that a small duality
        gap takes fewer calls; 10 with "pairwise", otherwise none. Not with "open-loop".
    skip_converged : bool
        Whether columns whose part of the duality gap is within their share of `tol` are skipped, until a scan
        of all columns. This departs from the published iterates too, and needs a positive `tol`.
    residual_tol : float, optional
        Stop when no residual has a norm above this: eta + 2 delta in Theorem 2.
    change_tol : float, optional
        Stop when an iteration changed the objective by at most this fraction.
    anchor_window : int, optional
        Stop when the anchors were the same for this number of iterations.
    ties : {"farthest", "first"}
        Tie-breaking where more rows share a maximum than are needed: one after another the point farthest
        from the mixtures of the anchors so far, or the lowest index, as in the authors' code.
    recovery : bool, optional
        Whether the certificate evaluates Lemma 1 and Theorems 2 to 4, which needs the mixtures of the found
        anchors; by default where points times anchors are at most a million.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    verbose : int
        1 shows a line with objective, rate and time left.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it is resumed.

    Returns
    -------
    SelectionResult
        Duality gap and objective belong to the coefficients returned; those in the history belong to the
        iterate after each iteration.

    Notes
    -----
    An iteration costs 2 N^2 M operations in float32 (see `nonneg.kernels.self_dictionary`) and, beyond X,
    memory for the residuals and the nonzero coefficients, both linear in N. From a cold start with open-loop
    steps the weights are integers. Sparse points become dense one block at a time; their residuals are dense,
    N x M: reduce the points first (`reduce=`) where M is large.

    References
    ----------
    .. [1] Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable nonnegative
       matrix factorization: a Frank-Wolfe approach", Algorithm 1.
    """
    _check_together(steps, corrective_steps, skip_converged, tol)
    if not isinstance(data, LocalMatrix):
        raise UnsupportedInputError(
            "MERIT needs the points in this process. `select_anchors` reduces and gathers chunked data."
        )
    n = data.shape[0]
    if data.container == "sparse" and 16.0 * math.prod(data.shape) > RESIDUAL_LIMIT:
        raise UnsupportedInputError(
            f"MERIT keeps the residuals of all points, {n} x {data.shape[1]} dense numbers: "
            f"{16e-9 * math.prod(data.shape):.1f} GB. Pass reduce=, the number of leading directions to keep "
            "(for example twice the number of anchors)."
        )
    most = n if n_components is not None else min(n, 2 * estimated_number(data))
    warm = warm_start(data, init)
    if warm.coefficients is None and t_init != "paper":
        raise InvalidParameterError(
            f"t_init={t_init!r} is the iteration at which a warm start continues, and there is none. Pass "
            "init= ('spa', anchors or coefficients), or leave t_init out."
        )
    weight, lam_facts = _penalty_weight(data, lam, n_components, warm)
    problem = SelfDictionary.of(data, weight, float(mu), gap_tol=float(tol), skip=skip_converged)
    open_loop = steps == "open-loop" and not skip_converged
    columns = initial_columns(warm, n, exact=open_loop and max_iter <= LONGEST_EXACT)
    residual = residuals_of(problem.dictionary, columns)
    t = 0
    if warm.coefficients is not None:
        t = first_iteration(t_init, residual, data.xp if data.container == "array" else np)
        columns = scaled_columns(columns, t * (t + 1) / 2) if open_loop else columns
    # On a GPU the lists of C stay there; the other step rules read them on the host.
    on_device = open_loop and runs_fused(residual)
    initial = [problem.initial_iterate(columns, t, residual, on_device=on_device)]
    del residual
    rule = STEP_RULES[steps]
    n_corrective = CORRECTIVE_STEPS.get(steps, 0) if corrective_steps is None else corrective_steps
    saved = None
    if checkpoint is not None:
        params = [weight, mu, tol, t, steps, n_corrective, skip_converged, n_components, anchor_window]
        saved = _checkpoint(checkpoint, data, initial[0], params)

    def oracle(state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        new, measures = problem.call_oracle(state)
        return (
            _with_anchors(new, measures, n_components, most) if anchor_window is not None else (new, measures)
        )

    def take_step(state: FrankWolfeIterate, step: Step) -> FrankWolfeIterate:
        return take_corrective_steps(problem, advance(problem, state, step), rule, n_corrective)

    run = frank_wolfe(
        initial.pop(),
        oracle=oracle,
        step_rule=lambda state: rule(problem, state),
        take_step=take_step,
        has_vertices=lambda state: state.has_vertices,
        # At zero, which is infeasible, a large penalty makes the gap negative: it bounds nothing there.
        converged=(lambda state: state.gap <= tol and (state.t > 0 or state.gap >= 0)) if tol > 0 else None,
        converged_sentence="the duality gap is at most `tol`",
        max_iter=max_iter,
        stop=_stopping_rules(residual_tol, change_tol, anchor_window),
        callback=callback,
        progress=reporter("merit", verbose),
        checkpoint=saved,
    )
    state = problem.complete(run.state).as_numpy
    maxima = state.row_maxima
    candidates = _anchors(state, None if n_components is None else n, most)
    wanted = len(candidates) if n_components is None else n_components
    anchors, n_tied = break_ties(data, candidates, maxima[candidates], wanted, ties)
    if not len(anchors):
        raise InvalidParameterError(
            f"tol={tol:g} is met before the first step, where all coefficients are zero: the duality gap is "
            f"{state.gap:.3g}. Lower tol, or scale the samples up."
        )
    facts = lam_facts | {
        "t_init": t,
        "steps": steps,
        "entries": state.columns.nnz,
        "largest_residual": state.largest_residual,
        "tied": n_tied,
    }
    statements = merit_statements(
        data, problem, state, anchors, initial=(columns, t), n_iter=run.n_iter, recovery=recovery
    )
    return SelectionResult(
        anchors=anchors,
        method="merit",
        coefficients=state.columns.as_csc(numpy_dtype(data.dtype)),
        gap=state.gap,
        history=run.history,
        certificate=Certificate(tuple(statements)),
        scores=maxima[anchors],
        row_maxima=maxima,
        lam=weight,
        mu=float(mu),
        objective=state.loss,
        n_iter=run.n_iter,
        stop_reason=run.stop_reason,
        stop_sentence=run.sentence,
        facts=facts,
    )


def _penalty_weight(
    data: DataMatrix, lam: float | str, n_components: int | None, warm: WarmStart
) -> tuple[float, dict[str, Any]]:
    if not isinstance(lam, str):
        return float(lam), {}
    found = balanced_weight(data, n_components, anchors=warm.anchors)
    return found.lam, {"lam_anchors": len(found.anchors), "lam_residual": found.residual_norm}


def _anchors(state: FrankWolfeIterate, n_components: int | None, most: int) -> IntArray:
    curve = leading_rows(state.row_maxima, len(state.row_max))[1]
    if n_components is None:
        # Far down the curve single rows drop to zero; the anchors are among the first.
        drops = curve[:most] - np.append(curve, 0.0)[1 : most + 1]
        n_components = int(np.argmax(drops)) + 1
    found = leading_rows(state.row_maxima, n_components)[0]
    # A row of zeros is no anchor, even if more were requested.
    return found[curve[: len(found)] > 0]


def _with_anchors(
    state: FrankWolfeIterate, measures: Mapping[str, Any], n_components: int | None, most: int
) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
    anchors = np.sort(_anchors(state, n_components, most))
    before = state.anchors
    new = len(anchors) if before is None else len(np.setxor1d(anchors, before))
    return replace(state, anchors=anchors), {**measures, "new_anchors": new}


def _stopping_rules(
    residual_tol: float | None, change_tol: float | None, window: int | None
) -> FirstOf | None:
    rules: list[Any] = []
    if residual_tol is not None:
        rules.append(ResidualBelow(residual_tol))
    if change_tol is not None:
        rules.append(RelativeChange(change_tol))
    if window is not None:
        rules.append(AnchorsUnchanged(window))
    return FirstOf(tuple(rules)) if rules else None


def _checkpoint(
    folder: Any, data: DataMatrix, initial: FrankWolfeIterate, params: list[Any]
) -> Checkpoint | None:
    def from_numpy(name: str, array: Any) -> Any:
        moves = name == "residual" or (initial.on_device and name != "anchors")
        if not moves or data.container != "array":
            return array
        return data.xp.asarray(array, device=initial.residual.device)

    facts = ("merit", params, data.container, fingerprint(data), initial.weights, initial.counts)
    # Residuals and lists, in bytes.
    size = 24.0 * math.prod(initial.residual.shape)
    interval = max(5.0, size / SAVED_PER_SECOND)
    return Checkpoint.of(folder, *facts, interval=interval, from_numpy=from_numpy)


def _check_together(steps: str, corrective_steps: int | None, skip_converged: bool, tol: float) -> None:
    if corrective_steps and steps == "open-loop":
        raise InvalidParameterError(
            "corrective_steps need a line search: choose steps='line-search', 'away' or 'pairwise'."
        )
    if skip_converged and not tol > 0:
        raise InvalidParameterError(
            "skip_converged=True skips columns within their share of tol: tol must be above 0."
        )
