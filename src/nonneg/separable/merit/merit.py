"""MERIT: the self-dictionary problem with row sparsity, by working sets or Frank-Wolfe, in linear memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._arrays import numpy_dtype
from nonneg._typing import IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError
from nonneg.iteration import FirstOf, Progress
from nonneg.iteration.progress import reporter
from nonneg.separable.arguments import PUBLISHED_WEIGHTS
from nonneg.separable.merit.certificate import merit_statements
from nonneg.separable.merit.choice import choose_anchors
from nonneg.separable.merit.initialization import WarmStart, warm_start
from nonneg.separable.merit.penalty_weight import (
    NumberEstimate,
    estimated_number,
    greedy_anchors,
    penalty_weight,
)
from nonneg.separable.merit.problem import SelfDictionary
from nonneg.separable.merit.run import RunSettings, run_frank_wolfe, run_fully_corrective
from nonneg.separable.merit.stopping import AnchorsUnchanged, RelativeChange, ResidualBelow
from nonneg.separable.result import SelectionResult

# Largest size in bytes of the dense residuals of sparse points, before and after a step (16 GiB).
RESIDUAL_LIMIT = float(16 << 30)
# The tolerance by step rule, unless the user says otherwise: a fraction of the objective with fully
# corrective steps. With the others it is 1e-5, as in the authors' code, for samples with norms near one.
TOL = {"fully-corrective": 0.01}


def merit(
    data: DataMatrix,
    n_components: int | None = None,
    *,
    lam: float | str = "auto",
    mu: float = 1e-5,
    max_iter: int = 100,
    tol: float | None = None,
    init: Any = None,
    t_init: str | int = "auto",
    steps: str = "auto",
    corrective_steps: int | None = None,
    skip_converged: bool = False,
    residual_tol: float | None = None,
    change_tol: float | None = None,
    anchor_window: int | None = None,
    choice: str = "auto",
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
        The number of anchors; None selects those that lie farther from the hull of the previous ones than
        noise moves any sample (`nonneg.separable.merit.residuals.number_above_noise`). If the residuals do
        not show the noise level, it uses the largest ratio of two successive scores (row maximum times
        distance from the anchors so far). With ``choice="row-maxima"``, the largest drop of the sorted row
        maxima (`SelectionResult.curve`).
    lam : float, "auto", "paper" or "printed", default "auto"
        Weight of the row sparsity as in (18) of the paper, nonnegative; 0 is MERIT(0). "auto" is half the
        mean squared residual ``||X - W H||^2 / N`` of a sample, with the K anchors of successive projections
        as W and the best mixtures of them as H; with fully corrective steps, 0.3 to 1 times
        ``||X - W H||^2 / K``. Neither depends on the units of X; the reason is in
        `nonneg.separable.merit.penalty_weight`. "paper" is ``||X - W H|| / (2 K)`` as in the
        authors' code, half of what the paper prints: "printed" is ``||X - W H|| / Phi(H)``, where Phi is the
        smoothed sum of the row maxima, close to K.
    mu : float, default 1e-5
        Smoothing of the row sparsity, positive.
    max_iter : int, default 100
        Maximum number of iterations.
    tol : float, optional
        Stop at an iterate whose duality gap is at most this: a fraction of the objective with
        "fully-corrective" steps (0.01 by default), otherwise a number in the unit of the objective (1e-5
        times the mean squared norm of a sample by default).
    init : None, array of int or matrix
        A cold start from zero, or a warm start from anchors or coefficients.
    t_init : {"auto", "paper", "authors"} or int, default "auto"
        The iteration at which a warm start continues: "auto" is the root mean square norm of a sample over
        that of its residual, "paper" the inverse of the latter alone, which depends on the unit of X; see
        `nonneg.separable.merit.initialization.first_iteration`.
    steps : {"auto", "open-loop", "line-search", "away", "pairwise", "fully-corrective"}, default "auto"
        "auto" is "fully-corrective", but "open-loop" with parameters of the published run: `lam` of 0,
        "paper" or "printed", `t_init` or `skip_converged`. "open-loop" is the published 2 / (t + 2). The
        others depart from the published iterates. With "line-search", "away" and "pairwise" every column has
        its own step size, and one exact line search along the joint direction makes the objective decrease.
        "away" adds away steps, "pairwise" moves weight from the worst vertex to the best. "fully-corrective"
        solves the problem over a working set of rows and scans all points for those that have to enter it;
        this converges, to the problem without smoothing (the sum of the row maxima), and does not use `mu`.
    corrective_steps : int, optional
        The number of steps over the vertices in use after each call of the oracle, so that a small duality
        gap takes fewer calls; 10 with "pairwise", otherwise none. Not with "open-loop" and
        "fully-corrective".
    skip_converged : bool, default False
        Whether columns whose part of the duality gap is within their share of `tol` are skipped, until a scan
        of all columns. This also departs from the published iterates, and needs a positive `tol`.
    residual_tol : float, optional
        Stop when no residual has a norm above this: eta + 2 delta in Theorem 2.
    change_tol : float, optional
        Stop when an iteration changed the objective by at most this fraction.
    anchor_window : int, optional
        Stop when the anchors were the same for this number of iterations.
    choice : {"auto", "spread", "row-maxima"}, default "auto"
        How anchors are chosen given C. "spread" selects one after another the sample with the largest product
        of its row maximum and its distance from the hull of the anchors so far, so that near-duplicates of an
        anchor are not selected as well. "auto" compares these anchors with those of successive projections,
        and returns those that leave the smaller residuals. "row-maxima" selects the largest row maxima, as
        published.
    ties : {"farthest", "first"}, default "farthest"
        "row-maxima": tie-breaking where more rows share a maximum than are needed: one after another the
        point farthest from the mixtures of the anchors so far, or the lowest index, as in the authors' code.
    recovery : bool, optional
        Whether the certificate evaluates Lemma 1 and Theorems 2 to 4, which needs the mixtures of the found
        anchors; by default where points times anchors are at most a million.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    verbose : int, default 0
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

    With fully corrective steps, an iteration is one such scan and, for a working set of s rows, 2 s^2 N
    operations for each of the inner iterations (ADMM); the memory is that of six s x N matrices. The duality
    gap is that of the problem without smoothing: any residuals R and levels t with
    ``sum_l max(0, t_l - x_n'r_l) <= lam`` for all n bound its minimum from below by
    ``sum_l (t_l - r_l'x_l - 0.5 r_l'r_l)``. The smoothed objective is not above the other one, by less than
    ``lam mu log(N)`` for every nonzero row.

    References
    ----------
    .. [1] Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable nonnegative
       matrix factorization: a Frank-Wolfe approach", Algorithm 1.
    """
    if steps == "auto":
        published = lam in (0, *PUBLISHED_WEIGHTS) or skip_converged or t_init != "auto"
        steps = "open-loop" if published else "fully-corrective"
    _check_together(steps, corrective_steps, skip_converged, tol, lam)
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
    k = n_components
    estimate = estimated_number(data) if k is None else NumberEstimate(k, k)
    most = n if k is not None else min(n, 2 * estimate.number)
    warm = warm_start(data, init)
    if warm.coefficients is None and t_init != "auto":
        raise InvalidParameterError(
            f"t_init={t_init!r} is the iteration at which a warm start continues, but there is no warm "
            f"start. Pass "
            "init= ('spa', anchors or coefficients), or leave t_init out."
        )
    converges = steps == "fully-corrective"
    weight, lam_facts, first = _penalty_weight(data, lam, n_components, warm, converges, mu)
    if tol is None:
        tol = TOL.get(steps, 1e-5) * (1.0 if converges else data.squared_norm() / n)
    tol = float(tol)
    problem = SelfDictionary.of(data, weight, float(mu), gap_tol=tol, skip=skip_converged)
    settings = RunSettings(
        tol=tol,
        max_iter=max_iter,
        n_components=n_components,
        most=most,
        anchor_window=anchor_window,
        stop=_stopping_rules(residual_tol, change_tol, anchor_window),
        callback=callback,
        progress=reporter("merit", verbose),
        folder=checkpoint,
    )
    if converges:
        outcome = run_fully_corrective(data, problem, warm, first, settings)
    else:
        outcome = run_frank_wolfe(
            data, problem, warm, settings, steps=steps, t_init=t_init, corrective_steps=corrective_steps
        )
    run, state = outcome.run, outcome.state
    maxima = state.row_maxima
    selection = choose_anchors(
        data,
        maxima,
        n_components,
        estimate,
        choice=choice,
        ties=ties,
        greedy=first if init is None else None,
    )
    anchors = selection.anchors
    if not len(anchors):
        raise InvalidParameterError(
            f"tol={tol:g} is reached before the first step, where all coefficients are zero: the duality "
            f"gap is "
            f"{state.gap:.3g}. Lower tol, or scale the samples up."
        )
    facts = lam_facts | {
        "t_init": outcome.initial[1],
        "steps": steps,
        "entries": state.columns.nnz,
        "largest_residual": state.largest_residual,
        "tied": selection.n_tied,
        "choice": "spa" if selection.from_spa else choice,
    }
    if outcome.row_bounds is not None:
        # No solution has a row maximum above its bound.
        facts["possible_anchors"] = int(np.sum(outcome.row_bounds >= maxima[anchors].min()))
    statements = merit_statements(
        data, problem, state, selection, initial=outcome.initial, n_iter=run.n_iter, recovery=recovery
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
        mu=0.0 if converges else float(mu),
        objective=state.loss,
        n_iter=run.n_iter,
        stop_reason=run.stop_reason,
        stop_sentence=run.sentence,
        facts=facts,
    )


def _penalty_weight(
    data: DataMatrix,
    lam: float | str,
    n_components: int | None,
    warm: WarmStart,
    converges: bool,
    mu: float,
) -> tuple[float, dict[str, Any], IntArray]:
    # The weight, what it was computed from, and anchors for the first working set.
    if not isinstance(lam, str):
        anchors = warm.anchors
        if anchors is None:
            k = (n_components or estimated_number(data).number) if converges else 0
            anchors = greedy_anchors(data, k) if k else np.empty(0, dtype=np.intp)
        return float(lam), {}, anchors
    found = penalty_weight(data, n_components, lam, converges=converges, anchors=warm.anchors, mu=mu)
    return found.lam, {"lam_anchors": len(found.anchors), "lam_residual": found.residual_norm}, found.anchors


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


def _check_together(
    steps: str, corrective_steps: int | None, skip_converged: bool, tol: float | None, lam: float | str
) -> None:
    if corrective_steps and steps in ("open-loop", "fully-corrective"):
        raise InvalidParameterError(
            "corrective_steps need a line search: choose steps='line-search', 'away' or 'pairwise'."
        )
    if steps == "fully-corrective" and not isinstance(lam, str) and lam == 0:
        raise InvalidParameterError(
            "steps='fully-corrective' needs lam above 0: without the penalty every sample represents itself."
        )
    if skip_converged and not (tol is None or tol > 0):
        raise InvalidParameterError(
            "skip_converged=True skips columns within their share of tol: tol must be above 0."
        )
