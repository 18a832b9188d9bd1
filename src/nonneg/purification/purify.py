"""purify: features recovered by decoding weights and updating features in turn (Algorithm 1)."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_count, checked_verbose
from nonneg._arrays import numpy_dtype
from nonneg._threads import threads
from nonneg._typing import Array, FloatArray
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError, NonnegWarning, UnsupportedError
from nonneg.iteration import Checkpoint, Progress, Run, StopReason, iterate
from nonneg.iteration.progress import reporter
from nonneg.purification.balance import balancing_scales
from nonneg.purification.certify import certified
from nonneg.purification.decode import Decoder
from nonneg.purification.decode import decode as decoded
from nonneg.purification.iteration import FeaturesSettled, Iteration
from nonneg.purification.moments import Moments, moments_of
from nonneg.purification.options import (
    Options,
    checked_flag,
    checked_name,
    checked_tolerance,
    completed_options,
)
from nonneg.purification.pseudo_inverse import chosen_method, pseudo_inverse
from nonneg.purification.result import PurificationResult
from nonneg.purification.samples import BatchStream, Samples, WholeSet, samples_of
from nonneg.purification.state import PurificationState, final_decoder, first_state
from nonneg.purification.warm_start import StartQuality, checked_features, start_quality


def purify(
    X: Any,
    features: Any,
    *,
    update: str = "regression",
    decode: str = "auto",
    alpha: float | str | Array = "auto",
    eta: float | str = "auto",
    r: float | str | Array = "auto",
    anneal: float | str = "auto",
    pseudo_inverse: str = "auto",
    balance: bool = False,
    normalize: str | None = None,
    fresh_samples: int | None = None,
    max_iter: int = 100,
    tol: float | None = None,
    check_start: str = "error",
    truth: Any = None,
    beta: float = 4.0,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
) -> PurificationResult:
    """Recover features A* from samples y = A* x* + noise with nonnegative weights x*, given a warm start.

    Parameters
    ----------
    X : array, sparse matrix, tensor, dask array, or a stream of batches of them
        One sample a row, negative entries allowed; never changed. A stream is an iterator, which is read
        once, or an iterable or a function without arguments that can be read again. One batch is in memory at
        a time.
    features : array of shape (n, m)
        The start: one feature a row, independent, each holding most of a true one and little of the others.
    update : {"regression", "covariance"}
        How features follow from decoded weights x: "regression" takes Cov(y, x) Cov(x, x)^+; "covariance"
        takes r E[(y - y')(x - x')'] as Algorithm 1 does, which on a finite sample has a floor of about 0.8 n
        / sqrt(N).
    decode : {"auto", "unshifted", "shifted", "linear"}
        What happens to the values A^+ y: those above the threshold are kept ("unshifted", for the regression
        update), kept less the threshold ("shifted", the paper's ReLU, for the covariance update), or all are
        kept ("linear", which fails: it is there to be compared with).
    alpha : float, array of shape (n,) or "auto"
        The threshold, in units of the weights. "auto" lies above the bulk of the decoded values.
    eta : float or "auto"
        The step size, above 0 and at most 1. "auto" begins at 1 (covariance: 1/2) and halves when the
        features move more and more.
    r : float, array of shape (n,) or "auto"
        The scaling of the covariance update. "auto" keeps the own share of every feature.
    anneal : float or "auto"
        By what the threshold is multiplied after an iteration: 0.8 for unshifted decoding, which never goes
        below three times the noise that negative values show, else 1.
    pseudo_inverse : {"auto", "moore-penrose", "min-infinity", "min-infinity-highs"}
        Which A^+. "min-infinity" is the paper's, n linear programs an iteration; "-highs" solves them by
        SciPy's HiGHS without warm starts. "auto" takes it for the covariance update where it costs at most a
        tenth of the products, and else Moore-Penrose, which did better under unbiased noise.
    balance : bool
        Whether features are scaled first so that the decoded weights have equal second moments (Section 6).
        The default update with an automatic threshold does not depend on it; a given `alpha` or `r` does.
    normalize : {"l1"}, optional
        Scale the features found to l1 norm one, and the weights with them: both are known up to that scale
        only, and otherwise keep that of the start.
    fresh_samples : int, optional
        Use so many new samples in every iteration: the next rows, from the first one again after the last (in
        an order that tells nothing), or the next ones of the stream. None uses all samples in every
        iteration; for an iterator it means 10 000, or 200 n where that is more.
    max_iter : int
        At most so many iterations.
    tol : float, optional
        Stop when no feature moved by more than this share of its l1 norm in two iterations. 1e-10 by default,
        1e-5 for float32; 0 never stops.
    check_start : {"error", "report"}
        Whether features that the data show to be no warm start are refused, or only reported.
    truth : array of shape (n, m), optional
        The true features, in the order of `features`: errors against them are recorded.
    beta : float
        Weight of negative entries in the recorded potential.
    sample_weight : array of shape (n_samples,), optional
        For data that are no stream; an integer weight counts like so many equal samples.
    n_jobs : int or None
        Threads; None takes all cores.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    verbose : int
        1 shows a line with rate and time left.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it is taken up again; not for streams.

    Returns
    -------
    PurificationResult
        Features, weights, history and certificate.

    Raises
    ------
    InvalidParameterError
        If the features are dependent, zero, too many, or no warm start.

    Warns
    -----
    NonnegWarning
        If a stream ends before its first iteration has half of its samples: the features are still the start.

    Notes
    -----
    An iteration takes two products with the data, 4 n m N operations, and n x m numbers of memory beside a
    block of rows. Weights returned by unshifted decoding are cut at the noise alone, not at the threshold.

    References
    ----------
    .. [1] Li, Liang & Risteski (2016), Recovery guarantee of non-negative matrix factorization via
       alternating updates, NIPS.

    Examples
    --------
    >>> from nonneg import purify
    >>> from nonneg.datasets import purification_data
    >>> from nonneg.purification import perturbed_features
    >>> data = purification_data(2000, 60, 10, rng=0)
    >>> result = purify(data.X, perturbed_features(data.H, 0.1, rng=0), truth=data.H)
    >>> result.certificate["true-mixing"].number < 1e-10
    True
    """
    checked_name("check_start", check_start, ("error", "report"))
    if normalize is not None:
        checked_name("normalize", normalize, ("l1",))
    balance = checked_flag("balance", balance)
    if not isinstance(beta, Real) or not 0 <= beta < math.inf:
        raise InvalidParameterError(f"beta must be a finite number not below 0, got {beta!r}.")
    max_iter = checked_count("max_iter", max_iter, 0)
    verbose, folder = checked_verbose(verbose), checked_checkpoint(checkpoint)
    fresh = None if fresh_samples is None else checked_count("fresh_samples", fresh_samples)
    shape = getattr(features, "shape", None) or (len(features) if hasattr(features, "__len__") else 1,)
    samples = samples_of(X, fresh, int(shape[0]), sample_weight)
    given = checked_features(features, samples.n_columns)
    true = None if truth is None else _checked_truth(truth, given)
    options = completed_options(
        len(given), update=update, decode=decode, alpha=alpha, eta=eta, r=r, anneal=anneal
    )
    method = chosen_method(
        pseudo_inverse, given.shape[0], given.shape[1], samples.per_iteration, options.update
    )
    stop = FeaturesSettled(checked_tolerance(tol, samples.dtype))
    with threads(n_jobs):
        state, start, scales = _started(samples, given, options, method, balance)
        if check_start == "error" and not start.usable:
            raise InvalidParameterError(
                f"{start.sentence} Start from better features (nonneg.PurificationNMF finds some by name), "
                "or call nonneg.purify with check_start='report', which goes on."
            )
        step = Iteration(
            samples,
            options,
            method,
            truth=true,
            beta=beta,
            scales=scales,
            settled=stop.tol or checked_tolerance(None, samples.dtype),
        )
        run = iterate(
            step,
            state,
            max_iter=max_iter,
            stop=stop,
            callback=callback,
            progress=reporter("purification", verbose),
            checkpoint=_checkpoint(folder, samples, given, options, method, balance, fresh),
        )
        if step.ended:
            run = replace(run, stop_reason=StopReason.SAMPLES_ENDED)
            _warn_of_a_short_stream(run.n_iter, samples)
        alpha = state.threshold if scales is None else state.threshold * scales
        return _result(run, samples, step, start, alpha=float(alpha.max()), normalize=normalize)


def _warn_of_a_short_stream(n_iter: int, samples: Samples) -> None:
    if n_iter == 0 and isinstance(samples, BatchStream):
        warnings.warn(
            f"The stream ended after {samples.n_seen} samples, and an iteration takes "
            f"{samples.per_iteration:.0f} (at the end of a stream at least half of them): the features are "
            "still those of the start. Pass a smaller fresh_samples, or a stream that can be read again.",
            NonnegWarning,
            stacklevel=3,
        )


def _started(
    samples: Samples, given: FloatArray, options: Options, method: str, balance: bool
) -> tuple[PurificationState, StartQuality, FloatArray | None]:
    some = samples.some()
    start = start_quality(some, given)
    scales = None
    if balance:
        values = some @ pseudo_inverse(given, "moore-penrose").inverse.T
        scales = balancing_scales(np.where(values > start.threshold, values, 0.0))
        given = given * scales[:, None]
    return first_state(some, given, pseudo_inverse(given, method), options), start, scales


def _result(
    run: Run[PurificationState],
    samples: Samples,
    step: Iteration,
    start: StartQuality,
    *,
    alpha: float,
    normalize: str | None,
) -> PurificationResult:
    state, scales, options = run.state, step.scales, step.options
    if normalize == "l1":
        state = state.rescaled(1.0 / np.abs(state.features).sum(axis=1))
    elif scales is not None:
        state = state.rescaled(1.0 / scales)
    features = state.features
    decoder = final_decoder(state, options, step.method)
    certificate = certified(
        features,
        decoder,
        samples.some(),
        _halves(samples, decoder),
        start,
        scales=scales,
        truth=step.truth,
        beta=step.beta,
    )
    parameters = {
        "update": options.update,
        "decode": options.decode,
        "pseudo_inverse": step.method,
        "alpha": alpha if options.alpha is None else float(np.max(options.alpha)),
        "eta": options.eta,
        "r": "auto" if options.r is None else float(np.max(options.r)),
        "anneal": options.anneal,
        "balance": scales is not None,
        "samples_per_iteration": samples.per_iteration,
    }
    W: Any = None
    if isinstance(samples, WholeSet):
        W, placed = decoded(samples.data, decoder), samples.data.to_device(features)
    else:
        placed = features.astype(numpy_dtype(samples.dtype))
    return PurificationResult(
        placed,
        W,
        run.history,
        certificate,
        parameters,
        run.n_iter,
        run.stop_reason,
        decoder,
        state,
        start,
        scales,
    )


def _halves(samples: Samples, decoder: Decoder) -> tuple[Moments, Moments] | None:
    if isinstance(samples, BatchStream):
        return samples.halves
    assert isinstance(samples, WholeSet)
    data, reference = samples.data, np.zeros(len(decoder.threshold))
    even = (np.arange(data.shape[0]) % 2 == 0).astype(np.float64)[:, None]
    first, second = (
        moments_of(data, decoder, reference, data.to_sample_array(part)) for part in (even, 1.0 - even)
    )
    return first, second


def _checked_truth(truth: Any, features: FloatArray) -> FloatArray:
    true = checked_features(truth, features.shape[1])
    if true.shape != features.shape:
        raise InvalidParameterError(
            f"truth has {len(true)} features, the start has {len(features)}: the same number in the same "
            "order is needed."
        )
    return true


def _checkpoint(
    folder: Path | None, samples: Samples, features: FloatArray, *facts: Any
) -> Checkpoint | None:
    if folder is None:
        return None
    if not isinstance(samples, WholeSet):
        raise UnsupportedError(
            "A stream cannot be taken up where a run was interrupted. Leave `checkpoint` out, or use "
            "PurificationNMF.partial_fit and save the model."
        )
    described = json.dumps(
        ["purification", [str(fact) for fact in facts], fingerprint(samples.data), features.tolist()]
    )
    return Checkpoint(folder, hashlib.sha256(described.encode()).hexdigest())
