"""Many starts at once, with the solutions of each method as further starts of the other (Appendix G)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._random import Seed
from nonneg._typing import BoolArray, FloatArray, IntArray
from nonneg.data.spectral import to_numpy
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration import History, Progress, Run, StopReason
from nonneg.orthogonal.group import polished
from nonneg.transforms.certify import certified
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.objective import divergence, full_objective, likelihood, variances
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.result import StartsSummary, TransformResult
from nonneg.transforms.runs import GradientsSmall, LossesSettled, lane_history, last_values, run_batch
from nonneg.transforms.state import TransformState, first_state, joined, renewed
from nonneg.transforms.two_stage import FactorState

STOPPED = (StopReason.INTERRUPTED, StopReason.CALLBACK)


@dataclass(frozen=True)
class LoopOptions:
    """What the loop of every part is told.

    Attributes
    ----------
    max_iter : int
        At most so many iterations.
    tol : float
        For losses: the least decrease an entry in ten iterations.
    gradient_tol : float
        For joint diagonalization: the norm of the skew gradient.
    drop : int or None
        Iterations between two looks for hopeless starts.
    callback : callable or None
        True stops.
    verbose : int
        1 shows a line.
    checkpoint : str or path or None
        A folder.
    """

    max_iter: int
    tol: float = 0.0
    gradient_tol: float = 0.0
    drop: int | None = None
    callback: Callable[[Progress], bool | None] | None = None
    verbose: int = 0
    checkpoint: str | Path | None = None

    def run(self, method: str, state: Any, data: Any, options: TransformOptions, name: str) -> Run[Any]:
        """Run one part.

        Parameters
        ----------
        method : str
            "tl", "jd" or "factors".
        state : TransformState or FactorState
            The starts.
        data : FrameCovariances or array
            What is fitted.
        options : TransformOptions
            How an iteration is made.
        name : str
            Of the part.

        Returns
        -------
        Run
            Its end.
        """
        if method == "jd":
            stop: Any = GradientsSmall(self.gradient_tol)
        else:
            entries = (
                data.shape[1] * data.shape[2] if method == "factors" else data.n_frames * data.frame_length
            )
            stop = LossesSettled(self.tol, entries)
        return run_batch(
            method,
            state,
            data,
            options,
            max_iter=self.max_iter,
            stop=stop,
            drop=None if method == "factors" else self.drop,
            callback=self.callback,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            name=name,
        )


@dataclass(frozen=True)
class Batch:
    """The end of a batch of starts.

    Attributes
    ----------
    run : Run
        Of the loop.
    n_lanes : int
        How many starts there were.
    losses : array of shape (n_lanes,)
        What was minimised, at the end of each start.
    """

    run: Run[Any]
    n_lanes: int
    losses: FloatArray

    @property
    def best(self) -> int:
        """The start with the least loss among those that were not given up."""
        kept = np.full(self.n_lanes, np.inf)
        lanes = self.run.state.lanes
        kept[lanes] = np.where(np.isnan(self.losses[lanes]), np.inf, self.losses[lanes])
        return int(lanes[0]) if not np.isfinite(kept).any() else int(np.argmin(kept))

    @property
    def dropped(self) -> BoolArray:
        """Which starts were given up."""
        found = np.ones(self.n_lanes, dtype=np.bool_)
        found[self.run.state.lanes] = False
        return found

    @property
    def place(self) -> int:
        """Where the best start is in the batch that is left."""
        return int(np.flatnonzero(self.run.state.lanes == self.best)[0])

    @property
    def n_iter(self) -> IntArray:
        """Iterations of each start."""
        return last_values(self.run.history, "loss", self.n_lanes)[1].astype(np.int64)


def ended(run: Run[Any], n_lanes: int) -> Batch:
    """Sum up a batch.

    Parameters
    ----------
    run : Run
        Of the loop.
    n_lanes : int
        Starts at its beginning.

    Returns
    -------
    Batch
        With the last losses.
    """
    return Batch(run, n_lanes, last_values(run.history, "loss", n_lanes)[0])


def batch_of_transforms(
    state: TransformState,
    data: FrameCovariances,
    options: TransformOptions,
    loop: LoopOptions,
    name: str = "tl",
) -> Batch:
    """Run TL-NMF from every start of a batch.

    Parameters
    ----------
    state : TransformState
        The starts.
    data : FrameCovariances
        The data.
    options : TransformOptions
        Of TL-NMF.
    loop : LoopOptions
        When to stop.
    name : str
        Of the part.

    Returns
    -------
    Batch
        The ends.
    """
    return ended(loop.run("tl", state, data, options, name), state.batch)


def fitted_factors(
    transform: Any,
    starts: TransformState,
    data: FrameCovariances,
    options: TransformOptions,
    loop: LoopOptions,
) -> Batch:
    """Factor the variances of one transform from every start.

    Parameters
    ----------
    transform : array of shape (m, m)
        The transform.
    starts : TransformState
        Their factors are the starts.
    data : FrameCovariances
        The data.
    options : TransformOptions
        Of the updates.
    loop : LoopOptions
        When to stop.

    Returns
    -------
    Batch
        The ends.
    """
    V = data.variances(transform)[None, ...]
    state = FactorState(starts.activations, starts.components, np.arange(starts.batch))
    return ended(loop.run("factors", state, V, options, "factors"), state.batch)


@dataclass(frozen=True)
class MultiStart:
    """Both methods from the same starts.

    Attributes
    ----------
    tl : TransformResult
        TL-NMF: the solution with the least C.
    jd : TransformResult
        JD+NMF: the transform with the least L, with the factors of least I.
    """

    tl: TransformResult
    jd: TransformResult


def multi_start(
    data: FrameCovariances,
    n_components: int,
    *,
    n_starts: int,
    tl_options: TransformOptions,
    jd_options: TransformOptions,
    loop: LoopOptions,
    init: Any = None,
    random_state: Seed = None,
) -> MultiStart:
    """Run both methods from P starts, then each from the solutions of the other, and keep the best.

    Parameters
    ----------
    data : FrameCovariances
        The data.
    n_components : int
        Of the factorization.
    n_starts : int
        P.
    tl_options, jd_options : TransformOptions
        Of the two methods.
    loop : LoopOptions
        When to stop; iterations are those of every part.
    init : optional
        As in `learn_transform`.
    random_state : Seed
        The source of random starts.

    Returns
    -------
    MultiStart
        Two results.
    """
    starts = first_state(data, n_components, init=init, n_starts=n_starts, random_state=random_state)
    tl = batch_of_transforms(starts, data, tl_options, loop, "tl, first starts")
    stopped = tl.run.stop_reason in STOPPED
    short = replace(loop, max_iter=1, callback=None) if stopped else loop
    jd = ended(short.run("jd", starts, data, jd_options, "jd, first starts"), starts.batch)
    tl_batches, jd_batches, factor_starts = [tl], [jd], starts
    if not stopped and jd.run.stop_reason not in STOPPED:
        # Each JD solution gets the factors of its own, as further starts of TL-NMF.
        solved = _with_factors(jd.run.state, data, jd_options, loop)
        tl_batches.append(batch_of_transforms(solved, data, tl_options, loop, "tl, from jd"))
        other = replace(tl.run.state, n_done=0, marks=None, lanes=np.arange(tl.run.state.batch))
        jd_batches.append(ended(loop.run("jd", other, data, jd_options, "jd, from tl"), other.batch))
        factor_starts = joined([replace(starts, n_done=0, marks=None), replace(other, lanes=other.lanes)])
    return MultiStart(
        best_transform(tl_batches, data, tl_options),
        best_two_stage(jd_batches, factor_starts, data, jd_options, short),
    )


def _with_factors(
    state: TransformState, data: FrameCovariances, options: TransformOptions, loop: LoopOptions
) -> TransformState:
    """Factor the variances of every transform of a batch, each from its own start."""
    from nonneg.transforms.factor_updates import update_factors

    state = renewed(state, data)
    V = variances(state.frames, data.n_frames)
    activations, components = state.activations, state.components
    for _ in range(loop.max_iter):
        activations, components = update_factors(
            V, activations, components, options.eps0, options.n_nmf_updates, l1=options.l1
        )
    return replace(
        state,
        activations=activations,
        components=components,
        n_done=0,
        marks=None,
        lanes=np.arange(state.batch),
    )


def best_transform(
    batches: list[Batch], data: FrameCovariances, options: TransformOptions
) -> TransformResult:
    """Build the result of TL-NMF from the best of all starts.

    Parameters
    ----------
    batches : list of Batch
        The first from random or given starts.
    data : FrameCovariances
        The data.
    options : TransformOptions
        Of TL-NMF.

    Returns
    -------
    TransformResult
        With its certificate.
    """
    which = _best_batch(batches)
    batch = batches[which]
    state, at = batch.run.state, batch.place
    history = lane_history(batch.run.history, batch.best, batch.n_lanes)
    return _result(
        data,
        state.transform[at],
        state.activations[at],
        state.components[at],
        options,
        method="tl",
        history=history,
        run=batch.run,
        starts=_summary(batches, which),
    )


def best_two_stage(
    batches: list[Batch],
    factor_starts: TransformState | None,
    data: FrameCovariances,
    options: TransformOptions,
    loop: LoopOptions,
) -> TransformResult:
    """Build the result of JD+NMF, or of a joint diagonalization, from the best of all starts.

    Parameters
    ----------
    batches : list of Batch
        Joint diagonalizations, the first from random or given starts.
    factor_starts : TransformState or None
        Starts of the second stage; None for none.
    data : FrameCovariances
        The data.
    options : TransformOptions
        Of both stages.
    loop : LoopOptions
        When the second stage stops.

    Returns
    -------
    TransformResult
        With its certificate.
    """
    which = _best_batch(batches)
    batch = batches[which]
    transform = batch.run.state.transform[batch.place]
    history = lane_history(batch.run.history, batch.best, batch.n_lanes)
    activations = components = second = None
    starts = _summary(batches, which)
    if factor_starts is not None:
        if batch.run.stop_reason in STOPPED:
            loop = replace(loop, max_iter=1, callback=None)
        transform = polished(transform)
        factors = fitted_factors(transform, factor_starts, data, options, loop)
        at = factors.place
        activations, components = factors.run.state.activations[at], factors.run.state.components[at]
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


def run_joint_diagonalization(
    data: FrameCovariances,
    options: TransformOptions,
    loop: LoopOptions,
    *,
    init: Any,
    n_starts: int,
    random_state: Seed,
) -> TransformResult:
    """Diagonalize from every start and keep the best.

    Parameters
    ----------
    data : FrameCovariances
        The data.
    options : TransformOptions
        Of the rotations.
    loop : LoopOptions
        When to stop.
    init : optional
        As in `joint_diagonalize`.
    n_starts : int
        How many starts.
    random_state : Seed
        The source of random starts.

    Returns
    -------
    TransformResult
        Without factors.
    """
    check_eps0(data, options.eps0)
    starts = first_state(data, None, init=init, n_starts=n_starts, random_state=random_state)
    batch = ended(loop.run("jd", starts, data, options, "joint diagonalization"), starts.batch)
    return best_two_stage([batch], None, data, options, loop)


def check_eps0(data: FrameCovariances, eps0: float) -> None:
    """Refuse an objective that is not bounded from below.

    Parameters
    ----------
    data : FrameCovariances
        The data.
    eps0 : float
        Added to the variances.
    """
    if eps0 > 0:
        return
    squares = to_numpy(array_namespace(data.virtual).sum(data.virtual * data.virtual, axis=2))
    ranks = (squares > 0).sum(axis=0)
    if ranks.min() < data.frame_length:
        worst = int(np.argmin(ranks))
        raise InvalidParameterError(
            f"eps0=0 needs covariances of full rank {data.frame_length}, that of frame {worst} has rank "
            f"{ranks[worst]}: an atom orthogonal to the frame makes L minus infinity. Pass eps0 above 0, "
            "a small "
            "share of the mean power."
        )


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
    data: FrameCovariances,
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
    V = data.variances(transform)
    L = float(likelihood(V[None, ...], options.eps0)[0])
    C, part = L, None
    if activations is not None:
        model = (activations @ components)[None, ...] + options.eps0
        C = float(full_objective(V[None, ...], model, options.eps0)[0])
        part = float(divergence(V[None, ...], model, options.eps0)[0])
    certificate = certified(data, transform, activations, components, options, method=method, history=history)
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
