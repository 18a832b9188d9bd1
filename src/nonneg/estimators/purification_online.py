"""`PurificationNMF.partial_fit`, and what a saved model holds of it."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import _fit_context

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.estimators.purification_initialization import purification_init
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError
from nonneg.purification.decode import Decoder
from nonneg.purification.iteration import PurificationState, final_decoder
from nonneg.purification.moments import Moments
from nonneg.purification.online import BATCH_SIZE, OnlineState, begin_online, online_method, take_in
from nonneg.purification.options import DECODES, Options, completed_options

# What describes a fit and no longer the model once a batch has changed it.
OF_A_FIT = ("result_", "history_", "certificate_", "reconstruction_err_", "n_iter_")


_PER_COMPONENT = StoredArray("n_components_")
_FEATURES = StoredArray("n_components_", "n_features_in_")
_MOMENTS = Part(
    {
        Moments: {
            "total": Value(float),
            "mean_weights": _PER_COMPONENT,
            "mean_sample": StoredArray("n_features_in_"),
            "gram": StoredArray("n_components_", "n_components_"),
            "cross": _FEATURES,
            "negative_counts": _PER_COMPONENT,
            "negative_squares": _PER_COMPONENT,
            "active": _PER_COMPONENT,
        }
    },
    optional=True,
)
_STATE = Part(
    {
        PurificationState: {
            "H": _FEATURES,
            "threshold": _PER_COMPONENT,
            "noise": _PER_COMPONENT,
            "weight_scale": _PER_COMPONENT,
            "reference": _PER_COMPONENT,
            "step_size": Value(float),
            "change": Value(float),
            "bases": StoredArray(
                "n_components_", "n_components_", kind="i", below="n_features_in_", optional=True
            ),
            "iteration": Value(int),
        }
    }
)


class OnlinePurification(FactorizingEstimator):
    """An estimator that also purifies a stream."""

    n_components: int | str
    init: Any
    update: str
    decode: str
    threshold: Any
    threshold_decay: Any
    step_size: Any
    scale: Any
    pseudo_inverse: str
    batch_size: int | None
    forget_factor: float
    random_state: Seed
    n_jobs: int | None
    _online_state: OnlineState
    _decoder: Decoder

    # Features may have negative entries.
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "components_": StoredArray("n_components_", "n_features_in_", finite=True),
        "_decoder": Part({Decoder: {"inverse": _FEATURES, "threshold": _PER_COMPONENT, "rule": Value(str)}}),
        "_online_state": Part({OnlineState: {"state": _STATE, "past": _MOMENTS, "pending": _MOMENTS}}),
    }

    def _options(self, n: int) -> Options:
        return completed_options(
            n,
            update=self.update,
            decode=self.decode,
            threshold=self.threshold,
            threshold_decay=self.threshold_decay,
            step_size=self.step_size,
            scale=self.scale,
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Update the features with one batch of samples, none of which is kept.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            The batch; never changed. The first one must be large enough for the initialization.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            Sample weights; an integer weight is equivalent to repeating the sample.

        Returns
        -------
        PurificationNMF
            The fitted estimator.

        Notes
        -----
        Samples are decoded with the current features and counted; after `batch_size` of them (1024 by
        default) the features are updated once, from these and from the past, weighted by `forget_factor`.
        `balance`, `normalize`, `max_iter`, `tol`, `verbose`, `callback` and `checkpoint` have no effect here.
        """
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, sample_weight=sample_weight, signed=True)
        method = online_method(self.pseudo_inverse)
        with threads(self.n_jobs):
            if first:
                init = purification_init(self, data)
                options = self._options(len(init))
                online = begin_online(data, init, options, method)
            else:
                online, options = self._online_state, self._options(len(self._online_state.state.H))
            batch_size = BATCH_SIZE if self.batch_size is None else self.batch_size
            online = take_in(
                online, data, options, method, batch_size=batch_size, forget_factor=self.forget_factor
            )
            decoder = final_decoder(online.state, options, method)
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self._online_state, self._decoder = online, decoder
        self.components_ = data.to_device(online.state.H)
        self.n_components_ = len(online.state.H)
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _complete_loaded(self) -> None:
        if self._decoder.rule not in DECODES[1:]:
            raise FileFormatError(f"there is no decoding rule {self._decoder.rule!r}.")
