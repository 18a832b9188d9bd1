"""purify: features recovered by alternating decoding and updates (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_count, checked_verbose
from nonneg._arrays import numpy_dtype
from nonneg._threads import threads
from nonneg._typing import Array, FloatArray, MatrixLike, SampleArray
from nonneg._warnings import warn_user
from nonneg.certificates.certificate import Certificate
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError, NonnegWarning, UnknownNameError, UnsupportedError
from nonneg.iteration import Checkpoint, History, Progress, Run, StopReason, iterate
from nonneg.iteration.progress import reporter
from nonneg.purification.certificate import purification_certificate
from nonneg.purification.decode import Decoder
from nonneg.purification.decode import decode as decoded
from nonneg.purification.initialization import InitQuality, checked_init, init_quality
from nonneg.purification.iteration import (
    FeaturesConverged,
    Iteration,
    PurificationState,
    balancing_scales,
    final_decoder,
    initial_state,
    noise_level,
)
from nonneg.purification.moments import Moments, moments_of
from nonneg.purification.options import checked_tolerance, completed_options
from nonneg.purification.pseudo_inverse import pseudo_inverse as left_inverse
from nonneg.purification.samples import BatchStream, Samples, StoredSamples, samples_of


@dataclass(frozen=True)
class PurificationResult:
    """Features, weights, and how they were found.

    Attributes
    ----------
    H : array of shape (n_components, n_features)
        The features, one per row, in the order of `init`; entries may be negative. The paper's A, transposed.
    W : array of shape (n_samples, n_components) or None
        The nonnegative weights decoded with them, same array type as X; None for a stream.
    history : History
        After each iteration: `change` (largest relative l1 change of a feature), `threshold`, `noise` (root
        mean square of the negative decoded values).
    certificate : Certificate
        What is known about the solution.
    parameters : mapping
        What was chosen: update, decode, pseudo_inverse, threshold (the initial one, largest feature),
        step_size, scale, threshold_decay, balance, batch_size (samples per iteration).
    n_iter : int
        Number of iterations.
    stop_reason : StopReason
        Why the run ended.
    decoder : Decoder
        The pseudo-inverse, threshold and rule that gave W.
    state : PurificationState
        The last state, from which a stream can continue.
    init_quality : InitQuality
        What the data say about `init`.
    balancing : array of shape (n_components,) or None
        The diagonal D of the balancing; H and W are given without it.
    """

    H: Array
    W: SampleArray | None
    history: History
    certificate: Certificate
    parameters: Mapping[str, Any]
    n_iter: int
    stop_reason: StopReason
    decoder: Decoder
    state: PurificationState
    init_quality: InitQuality
    balancing: FloatArray | None = None

    def __repr__(self) -> str:
        n, m = self.H.shape
        return (
            f"PurificationResult({n} features of length {m}, n_iter={self.n_iter}, "
            f"stopped because {self.stop_reason.value})"
        )


def purify(
    X: MatrixLike,
    init: Any,
    *,
    update: str = "regression",
    decode: str = "auto",
    threshold: float | str = "auto",
    threshold_decay: float | str = "auto",
    step_size: float | str = "auto",
    scale: float | str = "auto",
    pseudo_inverse: str = "auto",
    balance: bool = False,
    normalize: str | None = None,
    batch_size: int | None = None,
    max_iter: int = 100,
    tol: float | None = None,
    check_init: str = "error",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
) -> PurificationResult:
    """Recover features A* from samples y = A* x* + noise with nonnegative weights x*, given a warm start.

    Parameters
    ----------
    X : array, sparse matrix, tensor, Dask array, or a stream of batches of them
        One sample per row, negative entries allowed; never changed. A stream is an iterator, which is read
        once, or an iterable or a function without arguments, which are read again when they end. One batch
        is in memory at a time.
    init : array of shape (n_components, n_features)
        The initial features, one per row: linearly independent, each with most of a true feature and little
        of the others.
    update : {"regression", "covariance", "published"}, default "regression"
        How features follow from decoded weights x: "regression" uses Cov(y, x) Cov(x, x)^+; "covariance" uses
        r E[(y - y')(x - x')'] as Algorithm 1 does, which on a finite sample has an error of about 0.8 n /
        sqrt(N). "published" is Algorithm 1 as a whole: this update, shifted decoding with a constant
        threshold, and the pseudo-inverse of minimum infinity norm.
    decode : {"auto", "unshifted", "shifted", "linear"}, default "auto"
        What happens to the values A^+ y: those above the threshold are kept ("unshifted", for the regression
        update), reduced by the threshold ("shifted", the paper's ReLU, for the covariance update), or all
        values are kept ("linear", which fails and exists for comparison).
    threshold : float or "auto", default "auto"
        The initial threshold, in units of the weights: the paper's alpha. "auto" is half of a typical weight.
    threshold_decay : float or "auto", default "auto"
        The factor by which the threshold decays in each iteration. "auto" is 0.5 for unshifted decoding,
        where the threshold never falls below three times the noise that negative values show, and 1
        otherwise.
    step_size : float or "auto", default "auto"
        The step size in (0, 1]: the paper's eta. "auto" is 1 (covariance: 1/2).
    scale : float or "auto", default "auto"
        The scale of the covariance update: the paper's r. "auto" preserves the share that each feature has
        of itself.
    pseudo_inverse : {"auto", "moore-penrose", "min-infinity"}, default "auto"
        Which A^+. "min-infinity" is the paper's, n linear programs per iteration. "auto" uses it for
        ``update="published"``, and Moore-Penrose otherwise, which costs one QR factorization.
    balance : bool, default False
        Whether features are scaled first so that the decoded weights have equal second moments (Section 6).
        The default update with an automatic threshold does not depend on it; a given `threshold` or `scale`
        does.
    normalize : None, "l1" or "l2"
        Scale the features found to norm one, and the weights accordingly: both are determined only up to
        scale, and otherwise keep the scale of `init`.
    batch_size : int, optional
        The number of samples in the mini-batch of an iteration: the next rows, cyclically (their order must
        carry no information), or the next samples of the stream. None uses all samples in every iteration;
        for an iterator it means 10,000, or 200 per component if that is more.
    max_iter : int, default 100
        Maximum number of iterations.
    tol : float, optional
        Stop when no feature changed by more than this share of its l1 norm in two iterations. Default: 1e-10,
        or 1e-5 for float32; 0 never stops.
    check_init : {"error", "report"}, default "error"
        Whether an `init` that is not a warm start, judged by the data, is rejected or only reported.
    sample_weight : array of shape (n_samples,), optional
        Sample weights; an integer weight is equivalent to repeating the sample. Not for streams.
    n_jobs : int or None
        Number of threads; None uses all cores.
    callback : callable, optional
        Called with a `Progress` after each iteration, whose `state.H` are the current features; returning
        True stops.
    verbose : int, default 0
        1 shows a line with rate and time left.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it resumes; not for streams.

    Returns
    -------
    PurificationResult
        Features, weights, history and certificate.

    Raises
    ------
    InvalidParameterError
        If the features in `init` are dependent, zero, too many, or not a warm start.

    Warns
    -----
    NonnegWarning
        If a stream ends before half of the first mini-batch: the features are still those of `init`.

    Notes
    -----
    An iteration takes two products with the data, 4 n m N operations, and memory for n x m numbers in
    addition to a block of rows. Weights returned by unshifted decoding are cut at the noise alone, not at the
    threshold. Nothing is random and the result follows from `init`, so there are no `rng` and `n_init`.

    References
    ----------
    .. [1] Li, Liang & Risteski (2016), Recovery guarantee of non-negative matrix factorization via
       alternating updates, NIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import metrics, purify
    >>> from nonneg.datasets import purification_data
    >>> data = purification_data(2000, 60, 10, rng=0)
    >>> mixed = 0.99 * np.eye(10) + 0.01  # a tenth of every feature is from the others
    >>> result = purify(data.X, mixed @ data.H)
    >>> metrics.mixing(data.H, result.H).e_norm < 1e-10
    True
    """
    UnknownNameError.check("check_init", check_init, ("error", "report"))
    if normalize is not None:
        UnknownNameError.check("normalize", normalize, ("l1", "l2"))
    max_iter = checked_count("max_iter", max_iter, 0)
    verbose, folder = checked_verbose(verbose), checked_checkpoint(checkpoint)
    size = None if batch_size is None else checked_count("batch_size", batch_size)
    shape = getattr(init, "shape", None) or (len(init) if isinstance(init, list | tuple) else 1,)
    samples = samples_of(X, size, int(shape[0]), sample_weight)
    H = checked_init(init, samples.n_columns)
    options = completed_options(
        update=update, decode=decode, threshold=threshold, step_size=step_size, scale=scale,
        threshold_decay=threshold_decay, pseudo_inverse=pseudo_inverse,
    )  # fmt: skip
    stop = FeaturesConverged(checked_tolerance(tol, samples.dtype))
    with threads(n_jobs):
        sample = samples.subsample()
        quality = init_quality(sample, H, float(np.finfo(numpy_dtype(samples.dtype)).eps))
        if balance:
            values = sample @ left_inverse(H, "moore-penrose").inverse.T
            scales = balancing_scales(np.where(values > quality.threshold, values, 0.0))
            state = replace(initial_state(sample, H * scales[:, None], options), balancing=scales)
        else:
            state = initial_state(sample, H, options)
        if check_init == "error" and not quality.usable:
            raise InvalidParameterError(
                f"{quality.sentence} Use a better init (nonneg.PurificationNMF computes one by name), or "
                "check_init='report' in nonneg.purify, which continues anyway."
            )
        saved = None
        if folder is not None:
            if not isinstance(samples, StoredSamples):
                raise UnsupportedError(
                    "A run on a stream cannot be resumed. Leave `checkpoint` out, or use "
                    "PurificationNMF.partial_fit and save the model."
                )
            key = ("purification", vars(options), balance, size, fingerprint(samples.data), H)
            saved = Checkpoint.of(folder, *key)
        step = Iteration(samples, options, converged=stop.tol or checked_tolerance(None, samples.dtype))
        run = iterate(
            step,
            state,
            max_iter=max_iter,
            stop=stop,
            callback=callback,
            progress=reporter("purification", verbose),
            checkpoint=saved,
        )
        if step.exhausted:
            run = replace(run, stop_reason=StopReason.SAMPLES_ENDED)
            if run.n_iter == 0 and isinstance(samples, BatchStream):
                warn_user(
                    f"The stream ended after {samples.n_seen} samples, but an iteration takes "
                    f"{samples.batch_size:.0f} (at the end of a stream at least half of them): the features "
                    "are still those of init. Pass a smaller batch_size, or a stream that can be read again.",
                    NonnegWarning,
                )
        first = state.threshold if state.balancing is None else state.threshold * state.balancing
        return _result(run, step, quality, H, threshold=float(first.max()), normalize=normalize)


def _result(
    run: Run[PurificationState],
    step: Iteration,
    quality: InitQuality,
    init_H: FloatArray,
    *,
    threshold: float,
    normalize: str | None,
) -> PurificationResult:
    state, balancing, options, samples = run.state, run.state.balancing, step.options, step.samples
    if normalize is not None:
        state = state.rescaled(1.0 / np.linalg.norm(state.H, int(normalize[1]), axis=1))
    elif balancing is not None:
        state = state.rescaled(1.0 / balancing)
    H = state.H
    decoder = final_decoder(state, options)
    noise = float(np.max(noise_level(state) / np.where(state.weight_scale > 0, state.weight_scale, np.inf)))
    certificate = purification_certificate(
        H, decoder, samples.subsample(), _halves(samples, decoder), quality, balancing, noise, init_H
    )
    parameters = vars(options) | {
        "threshold": threshold if options.threshold is None else options.threshold,
        "scale": "auto" if options.scale is None else options.scale,
        "balance": balancing is not None,
        "batch_size": samples.batch_size,
    }
    W: Any = None
    if isinstance(samples, StoredSamples):
        W, H = decoded(samples.data, decoder), samples.data.to_device(H)
    else:
        H = H.astype(numpy_dtype(samples.dtype))
    return PurificationResult(
        H,
        W,
        run.history,
        certificate,
        parameters,
        run.n_iter,
        run.stop_reason,
        decoder,
        state,
        quality,
        balancing,
    )


def _halves(samples: Samples, decoder: Decoder) -> tuple[Moments, Moments] | None:
    if isinstance(samples, BatchStream):
        return samples.halves
    data, reference = samples.data, np.zeros(len(decoder.threshold))
    even = (np.arange(data.shape[0]) % 2 == 0).astype(np.float64)[:, None]
    first, second = (
        moments_of(data, decoder, reference, data.to_sample_array(part)) for part in (even, 1.0 - even)
    )
    return first, second
