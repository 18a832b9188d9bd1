"""Many starts at once, with the solutions of each method as further starts of the other (Appendix G)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._random import Seed
from nonneg.transforms.answers import best_transform, best_two_stage
from nonneg.transforms.batches import STOPPED, LoopOptions, ended
from nonneg.transforms.compiled_advance import compiled_advance
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.initialization import first_state
from nonneg.transforms.likelihoods import variances
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.result import TransformResult
from nonneg.transforms.state import TransformState, joined, renewed
from nonneg.transforms.two_stage import FactorState, advance_factors
from nonneg.transforms.working import Frames, working_frames, working_state

# Iterations of unwatched factors between which Ctrl-C is heard.
AT_ONCE = 50


@dataclass(frozen=True)
class MultiStart:
    """Both methods from the same starts.

    Attributes
    ----------
    tl : TransformResult
        TL-NMF: the solution with the least objective, which is C unless the caller chose I.
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

    Where the answer of JD+NMF is the better one by what TL-NMF minimises (C, or I with its penalty), TL-NMF
    also goes on from it, so that its own is never worse.

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
    work = working_frames(data)
    starts = working_state(starts, work)
    tl = ended(loop.run("tl", starts, work, tl_options, "tl, first starts"), starts.batch)
    stopped = tl.run.stop_reason in STOPPED
    short = replace(loop, max_iter=1, callback=None) if stopped else loop
    jd = ended(short.run("jd", starts, work, jd_options, "jd, first starts"), starts.batch)
    tl_batches, jd_batches, factor_starts = [tl], [jd], starts
    if not stopped and jd.run.stop_reason not in STOPPED:
        # Each JD solution gets the factors of its own, as further starts of TL-NMF.
        solved = _with_factors(jd.run.state, work, jd_options, loop)
        tl_batches.append(ended(loop.run("tl", solved, work, tl_options, "tl, from jd"), solved.batch))
        other = replace(tl.run.state, n_done=0, marks=None, lanes=np.arange(tl.run.state.batch))
        jd_batches.append(ended(loop.run("jd", other, work, jd_options, "jd, from tl"), other.batch))
        factor_starts = joined([replace(starts, n_done=0, marks=None), replace(other, lanes=other.lanes)])
    best_tl = best_transform(tl_batches, work, tl_options)
    best_jd = best_two_stage(jd_batches, factor_starts, work, jd_options, short)
    better = _minimised(best_jd, tl_options) < _minimised(best_tl, tl_options)
    if better and best_jd.stop_reason not in STOPPED and not stopped:
        # JD+NMF ends with more starts of its factors than TL-NMF has seen: its answer is a start too.
        init = (best_jd.transform, best_jd.H, best_jd.W)
        last = working_state(first_state(data, n_components, init=init, n_starts=1, random_state=0), work)
        tl_batches.append(ended(loop.run("tl", last, work, tl_options, "tl, from the best jd"), 1))
        best_tl = best_transform(tl_batches, work, tl_options)
    return MultiStart(best_tl, best_jd)


def _minimised(result: TransformResult, options: TransformOptions) -> float:
    """Return what TL-NMF minimises, at the answer of either method."""
    if options.objective == "C":
        return result.objective
    assert result.divergence is not None
    assert result.W is not None
    return result.divergence + (options.l1 * float(result.W.sum()) if options.l1 else 0.0)


def _with_factors(
    state: TransformState, data: Frames, options: TransformOptions, loop: LoopOptions
) -> TransformState:
    """Factor the variances of every transform of a batch, each from its own start."""
    state = renewed(state, data)
    V = variances(state.frames, data)
    factors = FactorState(state.activations, state.components, np.arange(state.batch))
    # Every start has variances of its own. Nothing is measured on the way, so that many iterations are one.
    left = loop.max_iter
    while left > 0:
        n_iter = min(left, AT_ONCE)
        several = replace(options, n_nmf_updates=n_iter * options.n_nmf_updates)
        compiled = compiled_advance("factors", V, several)
        factors, _ = advance_factors(factors, V, several) if compiled is None else compiled(factors)
        left -= n_iter
    return replace(
        state,
        activations=factors.activations,
        components=factors.components,
        n_done=0,
        marks=None,
        lanes=np.arange(state.batch),
    )
