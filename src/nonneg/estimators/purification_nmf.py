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
from nonneg.estimators.purification_initialization import features_to_start, number_of_features
from nonneg.estimators.purification_online import OnlinePurification, PurificationStream
from nonneg.iteration import Progress
from nonneg.purification import purify
from nonneg.purification.decode import decode
from nonneg.purification.options import DECODES, UPDATES
from nonneg.purification.pseudo_inverse import METHODS

COUNT = [Interval(Integral, 1, None, closed="left")]
AUTO = StrOptions({"auto"})


class PurificationNMF(OnlinePurification):
    r"""Features from decoding and updating in turn: the method of Li, Liang and Risteski.

    Samples are y = A* x* + noise, with features that need only be independent (entries may be negative) and
    nonnegative weights. Given a start near enough, each iteration decodes weights by a pseudo-inverse and a
    threshold, and updates the features by a regression on them (or by the paper's covariance).

    Parameters
    ----------
    n_components : int or "auto"
        The number of features. "auto" takes that of a given start, else an estimate by
        `nonneg.estimate_rank`.
    init : {"anchors", "cone", "nmf"} or array of shape (n_components, n_features)
        The warm start: samples that show one feature alone (successive projections), the directions of cones
        (also named "cr1"), fifty passes of NMF, or given features. For cones and NMF negative entries count
        as zeros.
    update : {"regression", "covariance"}
        The regression on decoded weights, or the published update.
    decode : {"auto", "unshifted", "shifted", "linear"}
        What happens to decoded values; see `nonneg.purify`.
    alpha, eta, r, anneal : float or "auto"
        Threshold, step size, scaling of the covariance update, and factor of the threshold; see
        `nonneg.purify`.
    pseudo_inverse : {"auto", "moore-penrose", "min-infinity", "min-infinity-highs"}
        Which one; see `nonneg.purify`.
    balance : bool
        Whether features are scaled first so that weights have equal second moments.
    fresh_samples : int or None
        So many new samples an iteration; None takes all.
    max_iter : int
        At most so many iterations.
    tol : float or None
        When to stop; see `nonneg.purify`.
    batch_size : int
        `partial_fit` updates the features after so many samples.
    forget_factor : float
        What it keeps of the past at each update.
    random_state : int, RandomState, Generator or None
        For starts that draw.
    verbose : int
        1 shows a line with rate and time left.
    n_jobs : int or None
        Threads; None takes all cores.
    callback : callable or None
        Called with a `Progress` after each iteration; True stops.
    checkpoint : str, path or None
        A folder in which the run is saved, and from which it is taken up again.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The features; entries may be negative.
    n_components_ : int
        Their number.
    reconstruction_err_ : float
        The Frobenius norm of X - W H.
    n_iter_ : int
        Iterations of `fit`.
    n_steps_ : int
        Batches seen by `partial_fit`.
    history_ : History
        What was measured after each iteration.
    certificate_ : Certificate
        How good the start was, how consistent decoding and features are; not after `partial_fit`.
    result_ : PurificationResult
        All of it.
    n_features_in_ : int
        The number of features of a sample.
    feature_names_in_ : array of str
        Their names, where X had any.

    See Also
    --------
    nonneg.purify : The function behind it, which also takes streams.

    Notes
    -----
    `transform` decodes each sample on its own: A^+ y where it exceeds the noise. `fit_transform(X)` equals
    `fit(X).transform(X)`. A start by name that the data show to be none is reported in `certificate_`; a
    given one is refused.

    A weighted sample counts in every average that the features rest on: the start, the threshold, the moments
    of decoded weights. `fresh_samples` counts rows, whatever they weigh; `batch_size` counts weights.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [*COUNT, AUTO],
        "init": [str, "array-like"],
        "update": [StrOptions(set(UPDATES))],
        "decode": [StrOptions(set(DECODES))],
        "alpha": [Interval(Real, None, None, closed="neither"), "array-like", AUTO],
        "eta": [Interval(Real, 0, 1, closed="right"), AUTO],
        "r": [Interval(Real, 0, None, closed="neither"), "array-like", AUTO],
        "anneal": [Interval(Real, 0, 1, closed="right"), AUTO],
        "pseudo_inverse": [StrOptions(set(METHODS))],
        "balance": ["boolean"],
        "fresh_samples": [*COUNT, None],
        "max_iter": COUNT,
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "batch_size": COUNT,
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
        init: Any = "anchors",
        update: str = "regression",
        decode: str = "auto",
        alpha: Any = "auto",
        eta: float | str = "auto",
        r: Any = "auto",
        anneal: float | str = "auto",
        pseudo_inverse: str = "auto",
        balance: bool = False,
        fresh_samples: int | None = None,
        max_iter: int = 100,
        tol: float | None = None,
        batch_size: int = 1024,
        forget_factor: float = 0.7,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.update = update
        self.decode = decode
        self.alpha = alpha
        self.eta = eta
        self.r = r
        self.anneal = anneal
        self.pseudo_inverse = pseudo_inverse
        self.balance = balance
        self.fresh_samples = fresh_samples
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
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
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The data; never changed.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            An integer weight counts like so many equal samples.

        Returns
        -------
        PurificationNMF
            Itself.
        """
        self._fit(X, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Find the features and return the weights of the same data.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The data; never changed.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            An integer weight counts like so many equal samples.

        Returns
        -------
        array of shape (n_samples, n_components)
            W, of the kind of X.
        """
        return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> SampleArray:
        data = input_data(self, X, reset=True, sample_weight=sample_weight, signed=True)
        with threads(self.n_jobs):
            n = number_of_features(self.n_components, self.init, data)
            start = features_to_start(data, n, self.init, self.random_state)
        result = purify(
            data,
            start,
            update=self.update,
            decode=self.decode,
            alpha=self.alpha,
            eta=self.eta,
            r=self.r,
            anneal=self.anneal,
            pseudo_inverse=self.pseudo_inverse,
            balance=self.balance,
            fresh_samples=self.fresh_samples,
            max_iter=self.max_iter,
            tol=self.tol,
            check_start="report" if isinstance(self.init, str) else "error",
            n_jobs=self.n_jobs,
            callback=self.callback,
            verbose=self.verbose,
            checkpoint=None if self.checkpoint is None else str(self.checkpoint),
        )
        with threads(self.n_jobs):
            error = relative_frobenius_error(data, result.W, data.to_device(result.features).T)
            self.reconstruction_err_ = error * math.sqrt(data.squared_norm())
        # `partial_fit` goes on from here.
        self.__dict__.pop("n_steps_", None)
        self._decoder, self._stream = result.decoder, PurificationStream(result.state)
        self.components_ = result.features
        self.n_components_ = n
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.certificate_ = result.certificate
        self.result_ = result
        return result.W

    def transform(self, X: Any) -> Any:
        """Return the weights of data: each sample is decoded on its own.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The data; never changed.

        Returns
        -------
        array of shape (n_samples, n_components)
            W, of the kind of X.
        """
        check_is_fitted(self)
        data = input_data(self, X, reset=False, signed=True)
        with threads(self.n_jobs):
            return decode(data, self._decoder)
