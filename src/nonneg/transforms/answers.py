"""From batches that ended to the result of the best start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.iteration import History, Run
from nonneg.transforms.batches import STOPPED, Batch, LoopOptions, ended
from nonneg.transforms.certificate import certified
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.likelihoods import divergence, full_objective, likelihood
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.result import StartsSummary, TransformResult
from nonneg.transforms.rotations.group import polished
from nonneg.transforms.runs import lane_history, last_values
from nonneg.transforms.state import TransformState
from nonneg.transforms.two_stage import FactorState
from nonneg.transforms.working import Frames, whole_transform


def best_transform(batches: list[Batch], data: Frames, options: TransformOptions) -> TransformResult:
    """Build the result of TL-NMF from the best of all starts."""
    which = _best_batch(batches)
    batch = batches[which]
    state, at = batch.run.state, batch.place
    history = lane_history(batch.run.history, batch.best, batch.n_lanes)
    return _result(
        data,
        whole_transform(state.transform[at, ...], data),
        state.activations[at, ...],
        state.components[at, ...],
        options,
        method="tl",
        history=history,
        run=batch.run,
        starts=_summary(batches, which),
    )


def best_two_stage(
    batches: list[Batch],
    factor_starts: TransformState | None,
    data: Frames,
    options: TransformOptions,
    loop: LoopOptions,
) -> TransformResult:
    """Build the result of JD+NMF, or of a joint diagonalization, from the best of all starts."""
    which = _best_batch(batches)
    batch = batches[which]
    transform = whole_transform(batch.run.state.transform[batch.place, ...], data)
    history = lane_history(batch.run.history, batch.best, batch.n_lanes)
    activations = components = second = None
    starts = _summary(batches, which)
    if factor_starts is not None:
        if batch.run.stop_reason in STOPPED:
            loop = replace(loop, max_iter=1, callback=None)
        transform = polished(transform)
        factors = fitted_factors(transform, factor_starts, data, options, loop)
        at = factors.place
        activations, components = (
            factors.run.state.activations[at, ...],
            factors.run.state.components[at, ...],
        )
        second = lane_history(factors.run.history, factors.best, factors.n_lanes)
    return _result(
        data,
        transform,
        activations,
        components,
        options,
        method="jd",
        history=history,
        run=batch.run,
        starts=starts,
        second=second,
    )


def fitted_factors(
    transform: Any,
    starts: TransformState,
    data: Frames,
    options: TransformOptions,
    loop: LoopOptions,
) -> Batch:
    """Factor the variances of one transform from every start."""
    V = _covariances(data).variances(transform)[None, ...]
    state = FactorState(starts.activations, starts.components, np.arange(starts.batch))
    return ended(loop.run("factors", state, V, options, "factors"), state.batch)


def _best_batch(batches: list[Batch]) -> int:
    found = [batch.losses[batch.best] for batch in batches]
    return int(np.argmin([np.inf if np.isnan(loss) else loss for loss in found]))


def _summary(batches: list[Batch], which: int) -> StartsSummary | None:
    total = sum(batch.n_lanes for batch in batches)
    if total == 1:
        return None

    def column(name: str) -> FloatArray:
        return np.concatenate([last_values(batch.run.history, name, batch.n_lanes)[0] for batch in batches])

    best = sum(batch.n_lanes for batch in batches[:which]) + batches[which].best
    return StartsSummary(
        column("C"),
        column("L"),
        column("I"),
        np.concatenate([batch.n_iter for batch in batches]),
        np.concatenate([batch.dropped for batch in batches]),
        best,
        batches[0].n_lanes,
    )


def _result(
    data: Frames,
    transform: Any,
    activations: Any,
    components: Any,
    options: TransformOptions,
    *,
    method: str,
    history: History,
    run: Run[Any],
    starts: StartsSummary | None,
    second: History | None = None,
) -> TransformResult:
    transform = polished(transform)
    whole = _covariances(data)
    V = whole.variances(transform)
    L = float(likelihood(V[None, ...], options.eps0)[0])
    C, part = L, None
    if activations is not None:
        inverse = 1.0 / ((activations @ components)[None, ...] + options.eps0)
        C = float(full_objective(V[None, ...], inverse, options.eps0)[0])
        part = float(divergence(V[None, ...], inverse, options.eps0)[0])
    certificate = certified(
        whole, transform, activations, components, options, method=method, history=history
    )
    return TransformResult(
        transform,
        activations,
        components,
        V,
        C,
        L,
        part,
        history,
        certificate,
        len(history),
        run.stop_reason,
        method,
        options.as_dict(),
        starts,
        second,
    )


def _covariances(data: Frames) -> FrameCovariances:
    return data if isinstance(data, FrameCovariances) else data.whole
