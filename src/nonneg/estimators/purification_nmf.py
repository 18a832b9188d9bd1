"""PurificationNMF: features recovered from noisy samples, with scikit-learn's interface."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, SampleArray
from nonneg.certificates.svd_lower_bound import relative_frobenius_error
from nonneg.data import DataMatrix
from nonneg.estimators._base import NOT_NEGATIVE, Callback, Checkpoint, WeightedEstimator, input_data, rank_of
from nonneg.estimators.saving import Fields, StoredArray
from nonneg.exceptions import FileFormatError, UnknownNameError
from nonneg.purification import purify
from nonneg.purification.decode import Decoder, decode
from nonneg.purification.initialization import initial_features
from nonneg.purification.iteration import (
    BATCH_SIZE,
    OnlineState,
    PurificationState,
    begin_online,
    final_decoder,
    take_in,
)
from nonneg.purification.moments import Moments
from nonneg.purification.options import DECODES, UPDATES, completed_options
from nonneg.separable import select_anchors

METHOD_PARAMS = (
    "decode", "threshold", "threshold_decay", "step_size", "scale", "pseudo_inverse", "balance"
)  # fmt: skip

_PER_COMPONENT = StoredArray("n_components_")
_FEATURES = StoredArray("n_components_", "n_features_in_")
_MOMENTS = {
    Moments: {
        "total": float,
        "mean_sample": StoredArray("n_features_in_"),
        "gram": StoredArray("n_components_", "n_components_"),
        "cross": _FEATURES,
        **dict.fromkeys(("mean_weights", "negative_counts", "negative_squares", "active"), _PER_COMPONENT),
    }
}
_STATE = {
    PurificationState: {
        "H": _FEATURES,
        **dict.fromkeys(("threshold", "noise", "weight_scale", "reference"), _PER_COMPONENT),
        "change": float,
        "bases": StoredArray(
            "n_components_", "n_components_", kind="i", below="n_features_in_", optional=True
        ),
        "iteration": int,
    }
}


@dataclass(eq=False, repr=False)
class PurificationNMF(WeightedEstimator):
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
        The warm start: samples that show one feature alone (successive projections), the directions of cones,
        fifty iterations of NMF, or given features. For cones and NMF, negative entries count as zeros. "auto"
        takes anchors or NMF, whichever the samples show to be mixed less.
    {function: update}
    method_params : dict or None
        Further parameters of `nonneg.purify`: ``decode``, ``threshold``, ``threshold_decay``, ``step_size``,
        ``scale``, ``pseudo_inverse`` and ``balance``. All are chosen from the data unless given.
    {function: normalize}
    batch_size : int or None
        The number of samples in a mini-batch. None: `fit` uses all samples in every iteration, and
        `partial_fit` updates the features after 1024 samples.
    {function: max_iter, tol}
    forget_factor : float, default 0.7
        The weight of the past at each update of `partial_fit`.
    {random_state, verbose, n_jobs, callback, checkpoint}

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The features; entries may be negative.
    {n_components_, rank_estimate_, reconstruction_err_, n_iter_, n_steps_, history_}
    certificate_ : Certificate
        How good the initialization was, and how consistent decoding and features are; not after
        `partial_fit`.
    result_ : PurificationResult
        The complete result.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    nonneg.purify : The function behind it, which also takes streams.

    Notes
    -----
    `transform` decodes each sample on its own: A^+ y where it exceeds the noise. `fit_transform(X)` equals
    `fit(X).transform(X)`.

    Purification mistakes correlations of the weights for mixing: the statement ``weight-correlation`` of
    `certificate_` says whether there are any, and ``explained`` whether the features have moved away from the
    data. Compare with `NMF` if they fail.

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

    n_components: int | str = "auto"
    _: KW_ONLY
    init: Any = "auto"
    update: str = "regression"
    method_params: dict[str, Any] | None = None
    normalize: str | None = None
    batch_size: int | None = None
    max_iter: int = 100
    tol: float | None = None
    forget_factor: float = 0.7
    random_state: Seed = None
    verbose: int = 0
    n_jobs: int | None = None
    callback: Callback = None
    checkpoint: Checkpoint = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "init": [str, "array-like"],
        "update": [StrOptions(set(UPDATES))],
        "normalize": [StrOptions({"l1", "l2"}), None],
        "tol": [NOT_NEGATIVE, None],
        "forget_factor": [Interval(Real, 0, 1, closed="both")],
    }

    # Features may have negative entries.
    _function: ClassVar[Any] = purify
    _stored: ClassVar[Fields] = {
        **WeightedEstimator._stored,
        "components_": StoredArray("n_components_", "n_features_in_", finite=True),
        "_decoder": {Decoder: {"inverse": _FEATURES, "threshold": _PER_COMPONENT, "rule": str}},
        "_online_state": {OnlineState: {"state": _STATE, "past": _MOMENTS, "pending": _MOMENTS}},
    }

    def _accepts_signed(self) -> bool:
        return True

    def _fit(self, X: Any, sample_weight: Any = None) -> SampleArray:
        data = input_data(self, X, reset=True, sample_weight=sample_weight, signed=True)
        with threads(self.n_jobs):
            init = self._init(data)
        check = "report" if isinstance(self.init, str) else "error"
        options = self._shared(purify) | {"init": init, "check_init": check} | self._parameters()
        result = purify(data, **options)
        with threads(self.n_jobs):
            error = relative_frobenius_error(data, result.W, data.to_device(result.H).T)
            self.reconstruction_err_ = error * math.sqrt(data.squared_norm())
        self._finish(result, result.H)
        self.result_ = result
        # `partial_fit` continues from here.
        self._decoder, self._online_state = result.decoder, OnlineState(result.state)
        return result.W

    def _weights(self, data: DataMatrix) -> SampleArray:
        return decode(data, self._decoder)

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of the method, after checking their names."""
        params = dict(self.method_params or {})
        for name in params:
            UnknownNameError.check("method_params", name, METHOD_PARAMS)
        return params

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> PurificationNMF:
        """Update the features with one batch of samples, none of which is kept.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        PurificationNMF
            Itself, fitted.

        Notes
        -----
        The first batch must be large enough for the initialization. Samples are decoded with the current
        features and counted; after `batch_size` of them (1024 by default) the features are updated once, from
        these and from the past, weighted by `forget_factor`.
        `normalize`, `max_iter`, `tol`, `verbose`, `callback`, `checkpoint` and "balance" have no effect here.
        """
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, sample_weight=sample_weight, signed=True)
        params = self._parameters()
        params.pop("balance", None)
        if params.get("pseudo_inverse", "auto") == "auto":
            params["pseudo_inverse"] = "moore-penrose"  # linear programs would cost more than a batch
        options = completed_options(update=self.update, **params)
        with threads(self.n_jobs):
            online = begin_online(data, self._init(data), options) if first else self._online_state
            online = take_in(
                online,
                data,
                options,
                batch_size=self.batch_size or BATCH_SIZE,
                forget_factor=self.forget_factor,
            )
            decoder = final_decoder(online.state, options)
        self._online_state, self._decoder = online, decoder
        self._count_batch(data.to_device(online.state.H))
        return self

    def _complete_loaded(self) -> None:
        if self._decoder.rule not in DECODES[1:]:
            raise FileFormatError(f"there is no decoding rule {self._decoder.rule!r}.")

    def _init(self, data: DataMatrix) -> FloatArray:
        """Return as many initial features as asked for; "auto" takes those given, or the estimated rank."""
        n = rank_of(self, data, H=None if isinstance(self.init, str) else self.init)
        anchors = lambda points, k: select_anchors(points, k, method="spa").anchors  # noqa: E731
        return initial_features(data, n, self.init, self.random_state, anchors)
