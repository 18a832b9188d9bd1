"""MERIT: Frank-Wolfe on the self-dictionary problem with smoothed row sparsity, in linear memory."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_count, is_count, is_number
from nonneg._arrays import numpy_dtype, to_numpy
from nonneg._typing import IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedInputError
from nonneg.iteration import Checkpoint, FirstOf, Progress
from nonneg.iteration.progress import reporter
from nonneg.kernels.column_residuals import residuals_of
from nonneg.kernels.self_dictionary import fused_at
from nonneg.kernels.sparse_columns import scaled_columns
from nonneg.separable.merit.certificate import merit_statements
from nonneg.separable.merit.exact_steps import STEP_RULES, corrected
from nonneg.separable.merit.frank_wolfe import frank_wolfe
from nonneg.separable.merit.frank_wolfe_steps import Move, advance
from nonneg.separable.merit.initialization import (
    LONGEST_EXACT,
    WarmStart,
    first_iteration,
    given_init,
    start_columns,
)
from nonneg.separable.merit.penalty_weight import balanced_weight, guessed_number
from nonneg.separable.merit.self_dictionary import FrankWolfeIterate, SelfDictionary
from nonneg.separable.merit.stopping import AnchorsUnchanged, RelativeChange, ResidualBelow
from nonneg.separable.merit.tie_breaking import TIE_RULES, untied_rows
from nonneg.separable.number import leading_rows
from nonneg.separable.result import SelectionResult

# Bytes that a checkpoint may write a second: a large run is saved less often.
SAVED_PER_SECOND = 2e7
# Bytes of the residuals of sparse points, before and after a step.
RESIDUAL_LIMIT = float(16 << 30)


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
    r"""Write every point as a mixture of few points, and take the points that are used most.

    .. math::

        \min_C \tfrac12 \|X - XC\|_F^2 + \lambda \sum_n \mu \log \frac1N \sum_l e^{c_{nl}/\mu}
        \quad\text{subject to}\quad C \ge 0,\ 1^\top C = 1^\top

    with one point a column of X, as in the paper. The anchors are the rows of C with the largest entries.

    Parameters
    ----------
    data : DataMatrix
        The data, one point a row, in this process; signs are free.
    n_components : int or None
        How many anchors; None takes the largest drop of the sorted row maxima (`SelectionResult.curve`),
        among twice as many as `nonneg.separable.merit.penalty_weight.guessed_number` says.
    lam : float or "auto"
        Weight of the row sparsity as in the paper's (18), not below 0; 0 is the paper's MERIT(0). "auto" is
        ``||X - W H|| / (2 K)`` with the K anchors of successive projections as W and the best mixtures as H;
        see `nonneg.separable.merit.penalty_weight` for an unknown K.
    mu : float
        Smoothing of the row sparsity, above 0.
    max_iter : int
        At most so many iterations.
    tol : float
        Stop at an iterate whose duality gap is at most this; in the unit of the objective.
    init : None, str, array of int or matrix
        Where to start: from zero, from the anchors of a greedy method ("spa"), from given anchors, or from
        given coefficients.
    t_init : {"paper", "authors"} or int
        From which iteration a start that was given goes on; see
        `nonneg.separable.merit.initialization.first_iteration`.
    steps : {"open-loop", "line-search", "away", "pairwise"}
        "open-loop" is the published 2 / (t + 2). The others leave the published iterates: every column has a
        step of its own, and one exact search along the joint direction makes the objective fall; "away" may
        also move away from the worst point of a column, "pairwise" moves weight from the worst to the best.
    corrective_steps : int, optional
        How many steps among the points that a column already uses follow each scan, so that a small gap takes
        fewer scans; 10 with "pairwise", otherwise none. Not with "open-loop".
    skip_converged : bool
        Whether columns whose part of the gap is within their share of `tol` wait, until a scan of all columns
        says otherwise. It leaves the published iterates too, and needs `tol` above 0.
    residual_tol : float, optional
        Stop when no point is further than this from its mixture: eta + 2 delta in Theorem 2.
    change_tol : float, optional
        Stop when an iteration changed the objective by at most this share.
    anchor_window : int, optional
        Stop when the anchors were the same for so many iterations.
    ties : {"farthest", "first"}
        Which rows are anchors where more have the same maximum than are wanted: one after another the point
        farthest from the mixtures of the anchors so far, or the lowest index, as in the authors' programs.
    recovery : bool, optional
        Whether the certificate evaluates Lemma 1 and Theorems 2 to 4, which needs the mixtures of the found
        anchors; by default where points times anchors are at most a million.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    verbose : int
        1 shows a line with objective, rate and time left.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it is taken up again.

    Returns
    -------
    SelectionResult
        Gap and objective belong to the coefficients returned, as do those of the history to the iterate after
        each iteration.

    Notes
    -----
    An iteration costs 2 N^2 M operations in float32 (see `nonneg.kernels.self_dictionary`) and, beyond X,
    memory for the residuals and the entries of C, both linear in N. From a cold start with open-loop steps
    the weights are whole numbers. Sparse points become dense one block at a time; their residuals are dense,
    N x M: reduce the points first (`reduce=`) where M is large.

    References
    ----------
    .. [1] Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable nonnegative
       matrix factorization: a Frank-Wolfe approach", Algorithm 1.
    """
    _check(
        mu, max_iter, tol, steps, corrective_steps, skip_converged, residual_tol, change_tol, anchor_window
    )
    if ties not in TIE_RULES:
        raise UnknownNameError.of("ties", ties, TIE_RULES)
    if not isinstance(data, LocalMatrix):
        raise UnsupportedInputError(
            "MERIT needs the points in this process. `select_anchors` reduces and gathers chunked data."
        )
    n = data.shape[0]
    if data.container == "sparse" and 16.0 * math.prod(data.shape) > RESIDUAL_LIMIT:
        raise UnsupportedInputError(
            f"MERIT keeps the residuals of all points, {n} x {data.shape[1]} dense numbers: "
            f"{16e-9 * math.prod(data.shape):.1f} GB. Pass reduce=, the number of leading directions to keep "
            "(twice the number of anchors, say)."
        )
    most = n if n_components is not None else min(n, 2 * guessed_number(data))
    start = given_init(data, init, n_components)
    if start.coefficients is None and t_init != "paper":
        raise InvalidParameterError(
            f"t_init={t_init!r} says from which iteration a given start goes on, and there is none. Pass "
            "init= ('spa', anchors or coefficients), or leave t_init out."
        )
    weight, lam_facts = _weight(data, lam, n_components, start)
    problem = SelfDictionary.of(data, weight, float(mu), gap_tol=float(tol), skip=skip_converged)
    open_loop = steps == "open-loop" and not skip_converged
    columns = start_columns(start, n, exact=open_loop and max_iter <= LONGEST_EXACT)
    residual = residuals_of(problem.dictionary, columns)
    t = 0
    if start.coefficients is not None:
        t = first_iteration(t_init, residual, data.xp if data.container == "array" else np)
        columns = scaled_columns(columns, t * (t + 1) / 2) if open_loop else columns
    # On a GPU the lists of C stay there; the other rules look at them on the host.
    placed = open_loop and fused_at(residual)
    first = [problem.start(columns, t, residual, placed=placed)]
    del residual
    rule = STEP_RULES[steps]
    n_corrective = (10 if steps == "pairwise" else 0) if corrective_steps is None else corrective_steps
    saved = None
    if checkpoint is not None:
        key = [
            weight,
            mu,
            tol,
            t,
            steps,
            n_corrective,
            skip_converged,
            n_components,
            anchor_window,
            str(columns.weights.dtype),
        ]
        saved = _checkpoint(Path(checkpoint), data, first[0], key)

    def oracle(state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        new, measures = problem.answer(state)
        return _watched(new, measures, n_components, most) if anchor_window is not None else (new, measures)

    def moved(state: FrankWolfeIterate, move: Move) -> FrankWolfeIterate:
        return corrected(problem, advance(problem, state, move), rule, n_corrective)

    run = frank_wolfe(
        first.pop(),
        oracle=oracle,
        step_rule=lambda state: rule(problem, state),
        move=moved,
        answered=lambda state: state.answered,
        # At zero, which is no mixture, a large penalty makes the gap negative: it bounds nothing there.
        enough=(lambda state: state.gap <= tol and (state.t > 0 or state.gap >= 0)) if tol > 0 else None,
        enough_sentence="the duality gap is at most `tol`",
        max_iter=max_iter,
        stop=_rules(residual_tol, change_tol, anchor_window),
        callback=callback,
        progress=reporter("merit", verbose),
        checkpoint=saved,
    )
    state = problem.complete(run.state).home
    maxima = state.row_maxima
    candidates = _anchors(state, None if n_components is None else n, most)
    wanted = len(candidates) if n_components is None else n_components
    anchors, n_tied = untied_rows(data, candidates, maxima[candidates], wanted, ties)
    if not len(anchors):
        raise InvalidParameterError(
            f"tol={tol:g} is met before the first step, where no point is used yet: the duality gap is "
            f"{state.gap:.3g}. Lower tol, or multiply the points by a number."
        )
    facts = lam_facts | {
        "t_init": t,
        "steps": steps,
        "entries": state.columns.nnz,
        "largest_residual": state.largest_residual,
        "tied": n_tied,
    }
    statements = merit_statements(
        data, problem, state, anchors, start=(columns, t), n_iter=run.n_iter, recovery=recovery
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


def _weight(
    data: DataMatrix, lam: Any, n_components: int | None, start: WarmStart
) -> tuple[float, dict[str, Any]]:
    if lam == "auto":
        found = balanced_weight(data, n_components, anchors=start.anchors)
        return found.lam, {"lam_anchors": len(found.anchors), "lam_residual": found.residual_norm}
    if isinstance(lam, str) or not is_number(lam) or not 0 <= lam < math.inf:
        raise InvalidParameterError(f"lam must be 'auto' or a finite number not below 0, got {lam!r}.")
    return float(lam), {}


def _anchors(state: FrankWolfeIterate, n_components: int | None, most: int) -> IntArray:
    curve = leading_rows(state.row_maxima, len(state.row_max))[1]
    if n_components is None:
        # Far down the curve single rows drop out; the anchors are among the first.
        drops = curve[:most] - np.append(curve, 0.0)[1 : most + 1]
        n_components = int(np.argmax(drops)) + 1
    found = leading_rows(state.row_maxima, n_components)[0]
    # A row that no point uses is no anchor, however many were asked for.
    return found[curve[: len(found)] > 0]


def _watched(
    state: FrankWolfeIterate, measures: Mapping[str, Any], n_components: int | None, most: int
) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
    anchors = np.sort(_anchors(state, n_components, most))
    before = state.anchors
    new = len(anchors) if before is None else len(np.setxor1d(anchors, before))
    return replace(state, anchors=anchors), {**measures, "new_anchors": new}


def _rules(residual_tol: float | None, change_tol: float | None, window: int | None) -> FirstOf | None:
    rules: list[Any] = []
    if residual_tol is not None:
        rules.append(ResidualBelow(residual_tol))
    if change_tol is not None:
        rules.append(RelativeChange(change_tol))
    if window is not None:
        rules.append(AnchorsUnchanged(window))
    return FirstOf(tuple(rules)) if rules else None


def _checkpoint(folder: Path, data: DataMatrix, first: FrankWolfeIterate, facts: list[Any]) -> Checkpoint:
    def home(name: str, array: Any) -> Any:
        return to_numpy(array)

    def there(name: str, array: Any) -> Any:
        away = name == "residual" or (first.placed and name != "anchors")
        return (
            data.xp.asarray(array, device=first.residual.device)
            if away and data.container == "array"
            else array
        )

    lists = (to_numpy(array) for array in (first.weights, first.counts))
    begun = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in lists)).hexdigest()
    described = json.dumps(["merit", facts, data.container, fingerprint(data), begun], default=str)
    # Residuals and lists, in bytes.
    size = 24.0 * math.prod(first.residual.shape)
    return Checkpoint(
        folder,
        hashlib.sha256(described.encode()).hexdigest(),
        interval=max(5.0, size / SAVED_PER_SECOND),
        to_numpy=home,
        from_numpy=there,
    )


def _check(
    mu: Any,
    max_iter: Any,
    tol: Any,
    steps: Any,
    corrective_steps: Any,
    skip_converged: bool,
    residual: Any,
    change: Any,
    window: Any,
) -> None:
    if not is_number(mu) or not 0 < mu < math.inf:
        raise InvalidParameterError(f"mu must be a finite number above 0, for example 1e-5. Got {mu!r}.")
    checked_count("max_iter", max_iter, 0)
    if not is_number(tol) or not tol >= 0:
        raise InvalidParameterError(f"tol must be a number not below 0, got {tol!r}.")
    if steps not in STEP_RULES:
        raise UnknownNameError.of("steps", steps, STEP_RULES)
    if corrective_steps is not None and not is_count(corrective_steps, 0):
        raise InvalidParameterError(
            f"corrective_steps must be None or an integer of at least 0, got {corrective_steps!r}."
        )
    if corrective_steps and steps == "open-loop":
        raise InvalidParameterError(
            "corrective_steps need a line search: choose steps='line-search', 'away' or 'pairwise'."
        )
    if skip_converged and not tol > 0:
        raise InvalidParameterError(
            "skip_converged=True leaves out columns within their share of tol: tol must be above 0."
        )
    for name, value in (("residual_tol", residual), ("change_tol", change)):
        if value is not None and (not is_number(value) or not value >= 0):
            raise InvalidParameterError(f"{name} must be None or a number not below 0, got {value!r}.")
    if window is not None and not is_count(window):
        raise InvalidParameterError(
            f"anchor_window must be None or an integer of at least 1, got {window!r}."
        )
