"""The best of many restarts, and restarts of each method from the solutions of the other (Appendix G)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._random import Seed
from nonneg._typing import Array, FloatArray
from nonneg.transforms.certificate import certified
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.loop import BatchRun, LoopOptions
from nonneg.transforms.objective import divergence, full_objective, likelihood, variances
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.reduction import Frames, completed_transform, reduced_frames, reduced_state
from nonneg.transforms.result import RestartSummary, TransformResult
from nonneg.transforms.rotations.group import newton_schulz_step
from nonneg.transforms.state import FactorState, TransformState, concatenated, reorthogonalized
from nonneg.transforms.steps import nmf_step

# Iterations of factors that nobody watches, made by one call; in between Ctrl-C is heard.
UNWATCHED_ITERATIONS = 50


def best_tl(batches: list[BatchRun], data: Frames, options: TransformOptions) -> TransformResult:
    """Build the result of TL-NMF from the best of all restarts."""
    which = _best_batch(batches)
    batch = batches[which]
    state, best = batch.state, batch.best
    transform = completed_transform(state.transform[best, ...], data)
    factors = state.activations[best, ...], state.components[best, ...]
    return _result("tl", batches, which, transform, factors, data, options)


def best_jd(
    batches: list[BatchRun],
    factor_inits: TransformState | None,
    data: Frames,
    options: TransformOptions,
    loop: LoopOptions,
) -> TransformResult:
    """Build the result of JD+NMF, or of a joint diagonalization, from the best of all restarts."""
    which = _best_batch(batches)
    batch = batches[which]
    transform = completed_transform(batch.state.transform[batch.best, ...], data)
    if factor_inits is None:
        return _result("jd", batches, which, transform, (None, None), data, options)
    if batch.was_stopped:
        loop = replace(loop, max_iter=1, callback=None)
    transform = newton_schulz_step(transform)
    V = _covariances(data).variances(transform)[None, ...]
    state = FactorState(factor_inits.activations, factor_inits.components)
    fitted = loop.run("nmf", state, V, options, "factors")
    best = fitted.best
    factors = fitted.state.activations[best, ...], fitted.state.components[best, ...]
    result = _result("jd", batches, which, transform, factors, data, options)
    return replace(result, factorization_history=fitted.best_history)


@dataclass(frozen=True)
class CrossInitResult:
    """Both methods, each also initialized from the solutions of the other."""

    tl: TransformResult  # the solution with the least C
    jd: TransformResult  # the transform with the least L, with the factors of least I


def cross_init(
    data: FrameCovariances,
    n_components: int,
    *,
    n_init: int,
    tl_options: TransformOptions,
    jd_options: TransformOptions,
    loop: LoopOptions,
    init: Any = None,
    rng: Seed = None,
) -> CrossInitResult:
    """Run both methods from the same initializations, then each from the solutions of the other."""
    # Where the solution of JD+NMF is the better one, TL-NMF also continues from it, so that its own is never
    # worse.
    inits = initial_state(data, n_components, init=init, n_init=n_init, rng=rng)
    work = reduced_frames(data)
    inits = reduced_state(inits, work)
    tl = loop.run("tl", inits, work, tl_options, "tl, first restarts")
    stopped = tl.was_stopped
    short = replace(loop, max_iter=1, callback=None) if stopped else loop
    jd = short.run("jd", inits, work, jd_options, "jd, first restarts")
    tl_batches, jd_batches, factor_inits = [tl], [jd], inits
    if not stopped and not jd.was_stopped:
        # Each JD solution gets factors of its own, as a further initialization of TL-NMF.
        solved = _with_factors(jd.state, work, jd_options, loop)
        tl_batches.append(loop.run("tl", solved, work, tl_options, "tl, from jd"))
        other = replace(tl.state, n_done=0)
        jd_batches.append(loop.run("jd", other, work, jd_options, "jd, from tl"))
        factor_inits = concatenated([inits, other])
    result_tl = best_tl(tl_batches, work, tl_options)
    result_jd = best_jd(jd_batches, factor_inits, work, jd_options, short)
    if (
        result_jd.objective < result_tl.objective
        and not stopped
        and not any(batch.was_stopped for batch in jd_batches)
    ):
        # JD+NMF ends with more initializations of its factors than TL-NMF has seen: its solution is one too.
        init = (result_jd.transform, result_jd.H, result_jd.W)
        last = reduced_state(initial_state(data, n_components, init=init, n_init=1, rng=0), work)
        tl_batches.append(loop.run("tl", last, work, tl_options, "tl, from the best jd"))
        result_tl = best_tl(tl_batches, work, tl_options)
    return CrossInitResult(result_tl, result_jd)


def _with_factors(
    state: TransformState, data: Frames, options: TransformOptions, loop: LoopOptions
) -> TransformState:
    """Factor the variances of every transform of a batch, each from its own initialization."""
    state = reorthogonalized(state, data)
    V = variances(state.frames, data)
    factors = FactorState(state.activations, state.components)
    # Every restart has variances of its own. Nothing is measured on the way, so that many iterations are one.
    remaining = loop.max_iter
    while remaining > 0:
        n_iter = min(remaining, UNWATCHED_ITERATIONS)
        several = replace(options, n_nmf_updates=n_iter * options.n_nmf_updates)
        factors, _ = nmf_step(factors, V, several)
        remaining -= n_iter
    return replace(state, activations=factors.activations, components=factors.components, n_done=0)


def _best_batch(batches: list[BatchRun]) -> int:
    return int(np.argmin([batch.losses[batch.best] for batch in batches]))


def _summary(batches: list[BatchRun], which: int) -> RestartSummary | None:
    if sum(batch.n_restarts for batch in batches) == 1:
        return None

    def column(name: str) -> FloatArray:
        return np.concatenate([batch.last(name) for batch in batches])

    return RestartSummary(
        objective=column("C"),
        likelihood=column("L"),
        divergence=column("I"),
        n_iter=np.repeat([len(batch.run.history) for batch in batches], [b.n_restarts for b in batches]),
        best=sum(batch.n_restarts for batch in batches[:which]) + batches[which].best,
        n_init=batches[0].n_restarts,
    )


def _result(
    method: str,
    batches: list[BatchRun],
    which: int,
    transform: Array,
    factors: tuple[Any, Any],
    data: Frames,
    options: TransformOptions,
) -> TransformResult:
    transform = newton_schulz_step(transform)
    full = _covariances(data)
    V = full.variances(transform)
    L = float(likelihood(V[None, ...], options.eps0)[0])
    C, part = L, None
    activations, components = factors
    if activations is not None:
        inverse = 1.0 / ((activations @ components)[None, ...] + options.eps0)
        C = float(full_objective(V[None, ...], inverse, options.eps0)[0])
        part = float(divergence(V[None, ...], inverse, options.eps0)[0])
    history = batches[which].best_history
    return TransformResult(
        transform=transform,
        W=activations,
        H=components,
        variances=V,
        objective=C,
        likelihood=L,
        divergence=part,
        history=history,
        certificate=certified(
            full, transform, activations, components, options, method=method, history=history
        ),
        n_iter=len(history),
        stop_reason=batches[which].run.stop_reason,
        method=method,
        parameters=dict(vars(options)),
        restarts=_summary(batches, which),
    )


def _covariances(data: Frames) -> FrameCovariances:
    return data if isinstance(data, FrameCovariances) else data.full
