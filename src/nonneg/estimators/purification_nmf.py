"""PurificationNMF: features recovered from noisy samples, with scikit-learn's interface."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import SampleArray
from nonneg.certificates.svd_lower_bound import relative_frobenius_error
from nonneg.estimators._base import input_data
from nonneg.estimators.purification_initialization import purification_init
from nonneg.estimators.purification_online import OnlinePurification
from nonneg.iteration import Progress
from nonneg.purification import purify
from nonneg.purification.decode import decode
from nonneg.purification.online import OnlineState
from nonneg.purification.options import DECODES, UPDATES
from nonneg.purification.plausibility import with_fallback
from nonneg.purification.pseudo_inverse import METHODS

COUNT = [Interval(Integral, 1, None, closed="left")]
AUTO = StrOptions({"auto"})


class PurificationNMF(OnlinePurification):
    r"""Features by alternating decoding and updates: the method of Li, Liang and Risteski.

    Samples are y = A* x* + noise, with nonnegative weights and features that need only be linearly
    independent (entries may be negative). Given a warm start, each iteration decodes weights by a
    pseudo-inverse and a threshold, and updates the features by a regression on them (or by the paper's
    covariance).

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        The number of features. "auto" is the number of features in `init` if that is an array, otherwise an
        estimate by `nonneg.compare_ranks`.
    init : {"auto", "anchors", "cone", "nmf"} or array of shape (n_components, n_features), default "auto"
        The warm start: samples that show one feature alone (successive projections), the directions of cones
        (also named "cr1"), fifty iterations of NMF, or given features. For cones and NMF, negative entries
        count as zeros. "auto" uses NMF if the mean sample is nonnegative up to its standard error, and
        anchors otherwise.
    fallback : {"auto", "nmf"} or None, default "auto"
        "nmf" returns the features of NMF, with a warning, if purification is not plausible for the data; see
        Notes. "auto" does so for ``init="auto"`` and trusts an `init` that you chose. None always keeps the
        features of purification.
    update : {"regression", "covariance"}, default "regression"
        The regression on decoded weights, or the published update.
    decode : {"auto", "unshifted", "shifted", "linear"}, default "auto"
        What happens to decoded values; see `nonneg.purify`.
    threshold, threshold_decay, step_size, scale : float or "auto", default "auto"
        The initial threshold, its decay, the step size, and the scale of the covariance update; see
        `nonneg.purify`.
    pseudo_inverse : {"auto", "moore-penrose", "min-infinity", "min-infinity-highs"}, default "auto"
        Which one; see `nonneg.purify`.
    balance : bool, default False
        Whether features are scaled first so that weights have equal second moments.
    normalize : None, "l1" or "l2"
        Scale the features found by `fit` to norm one, and the weights accordingly.
    batch_size : int or None
        The number of samples in a mini-batch. None: `fit` uses all samples in every iteration, and
        `partial_fit` updates the features after 1024 samples.
    max_iter : int, default 100
        Maximum number of iterations.
    tol : float or None
        When to stop; see `nonneg.purify`.
    forget_factor : float, default 0.7
        The weight of the past at each update of `partial_fit`.
    random_state : int, RandomState, Generator or None
        For ``init="nmf"``, which draws random numbers.
    verbose : int, default 0
        1 shows a line with rate and time left.
    n_jobs : int or None
        Number of threads; None uses all cores.
    callback : callable or None
        Called with a `Progress` after each iteration; returning True stops.
    checkpoint : str, path or None
        A folder in which the run is saved, and from which it resumes.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The features; entries may be negative.
    n_components_ : int
        Their number.
    rank_estimate_ : RankComparison
        How ``n_components="auto"`` chose it; only if it did.
    reconstruction_err_ : float
        The Frobenius norm of X - W H.
    n_iter_ : int
        Number of iterations of `fit`.
    n_steps_ : int
        Number of batches seen by `partial_fit`.
    history_ : History
        What was measured after each iteration.
    certificate_ : Certificate
        How good the initialization was, and how consistent decoding and features are; not after
        `partial_fit`.
    result_ : PurificationResult
        The complete result.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : array of str
        Their names, where X had any.

    See Also
    --------
    nonneg.purify : The function behind it, which also takes streams.

    Notes
    -----
    `transform` decodes each sample on its own: A^+ y where it exceeds the noise. `fit_transform(X)` equals
    `fit(X).transform(X)`.

    Is purification plausible for the data? Noise pulls the features of NMF out of the space that the leading
    singular vectors of the samples span; purification averages it out, but mistakes correlations of the
    weights for mixing. `fit` therefore also runs NMF. If correlations cost more than averaging gains, or if
    the features explain less than nine tenths of what those of NMF explain, it warns and returns those of
    NMF; `result_.fallback` and the statement ``plausible-beside-nmf`` of `certificate_` say so. If the mean
    sample has negative entries, NMF cannot be fitted, and only features that explain nothing are replaced, by
    the initial ones. A given `init` and `partial_fit` are not compared.

    If the data show that the initialization is not a warm start, `certificate_` says so; a given array is
    rejected. There is no `n_init`, because there is no loss by which restarts could be compared.

    Sample weights enter every average that the features depend on: the initialization, the threshold, the
    moments of decoded weights. The mini-batches of `fit` count rows; those of `partial_fit` count weights.

    References
    ----------
    .. [1] Li, Liang & Risteski (2016), Recovery guarantee of non-negative matrix factorization via
       alternating updates, NIPS.

    Examples
    --------
    >>> from nonneg import PurificationNMF, metrics
    >>> from nonneg.datasets import purification_data
    >>> data = purification_data(2000, 60, 10, rng=0)
    >>> model = PurificationNMF(10).fit(data.X)
    >>> metrics.match_components(data.H, model.components_).cosines.min() > 0.999
    True
    """

    missing = "error"
    signed_components = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [*COUNT, AUTO],
        "init": [str, "array-like"],
        "fallback": [StrOptions({"auto", "nmf"}), None],
        "update": [StrOptions(set(UPDATES))],
        "decode": [StrOptions(set(DECODES))],
        "threshold": [Interval(Real, None, None, closed="neither"), "array-like", AUTO],
        "threshold_decay": [Interval(Real, 0, 1, closed="right"), AUTO],
        "step_size": [Interval(Real, 0, 1, closed="right"), AUTO],
        "scale": [Interval(Real, 0, None, closed="neither"), "array-like", AUTO],
        "pseudo_inverse": [StrOptions(set(METHODS))],
        "balance": ["boolean"],
        "normalize": [StrOptions({"l1", "l2"}), None],
        "batch_size": [*COUNT, None],
        "max_iter": COUNT,
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "forget_factor": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "verbose": ["verbose"],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), *COUNT, None],
        "callback": [callable, None],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        init: Any = "auto",
        fallback: str | None = "auto",
        update: str = "regression",
        decode: str = "auto",
        threshold: Any = "auto",
        threshold_decay: float | str = "auto",
        step_size: float | str = "auto",
        scale: Any = "auto",
        pseudo_inverse: str = "auto",
        balance: bool = False,
        normalize: str | None = None,
        batch_size: int | None = None,
        max_iter: int = 100,
        tol: float | None = None,
        forget_factor: float = 0.7,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.fallback = fallback
        self.update = update
        self.decode = decode
        self.threshold = threshold
        self.threshold_decay = threshold_decay
        self.step_size = step_size
        self.scale = scale
        self.pseudo_inverse = pseudo_inverse
        self.balance = balance
        self.normalize = normalize
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.forget_factor = forget_factor
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> PurificationNMF:
        """Find the features.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            The data; never changed.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            Sample weights; an integer weight is equivalent to repeating the sample.

        Returns
        -------
        PurificationNMF
            The fitted estimator.
        """
        self._fit(X, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Find the features and return the weights of the same data.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            The data; never changed.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            Sample weights; an integer weight is equivalent to repeating the sample.

        Returns
        -------
        array of shape (n_samples, n_components)
            W, same array type as X.
        """
        return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> SampleArray:
        data = input_data(self, X, reset=True, sample_weight=sample_weight, signed=True)
        options = {
            "update": self.update,
            "decode": self.decode,
            "threshold": self.threshold,
            "threshold_decay": self.threshold_decay,
            "step_size": self.step_size,
            "scale": self.scale,
            "pseudo_inverse": self.pseudo_inverse,
            "balance": self.balance,
            "normalize": self.normalize,
            "batch_size": self.batch_size,
            "max_iter": self.max_iter,
            "n_jobs": self.n_jobs,
        }
        with threads(self.n_jobs):
            init = purification_init(self, data)
        result = purify(
            data,
            init,
            **options,
            tol=self.tol,
            check_init="report" if isinstance(self.init, str) else "error",
            callback=self.callback,
            verbose=self.verbose,
            checkpoint=None if self.checkpoint is None else str(self.checkpoint),
        )
        chosen = self.fallback == "auto" and not (isinstance(self.init, str) and self.init == "auto")
        if self.fallback is not None and not chosen:
            with threads(self.n_jobs):
                result = with_fallback(data, init, result, options)
        with threads(self.n_jobs):
            error = relative_frobenius_error(data, result.W, data.to_device(result.H).T)
            self.reconstruction_err_ = error * math.sqrt(data.squared_norm())
        # `partial_fit` continues from here.
        self.__dict__.pop("n_steps_", None)
        self._decoder, self._online_state = result.decoder, OnlineState(result.state)
        self.components_ = result.H
        self.n_components_ = len(init)
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.certificate_ = result.certificate
        self.result_ = result
        return result.W

    def transform(self, X: Any) -> Any:
        """Return the weights of samples, each decoded on its own.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            The data; never changed.

        Returns
        -------
        array of shape (n_samples, n_components)
            W, same array type as X.
        """
        check_is_fitted(self)
        data = input_data(self, X, reset=False, signed=True)
        with threads(self.n_jobs):
            return decode(data, self._decoder)
