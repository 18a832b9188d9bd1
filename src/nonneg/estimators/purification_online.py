"""The part of `PurificationNMF` that learns from one batch after the other, and what it keeps on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sklearn.base import _fit_context

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.estimators.purification_initialization import features_to_start, number_of_features
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError
from nonneg.iteration.loop import Stalled
from nonneg.purification.decode import Decoder
from nonneg.purification.iteration import updated_features
from nonneg.purification.moments import Moments, moments_of
from nonneg.purification.options import DECODES, Options, completed_options
from nonneg.purification.pseudo_inverse import pseudo_inverse
from nonneg.purification.samples import spread_rows
from nonneg.purification.state import PurificationState, effective_threshold, final_decoder, first_state

# What speaks of a fit and no longer of the model once a batch has changed it.
OF_A_FIT = ("result_", "history_", "certificate_", "reconstruction_err_", "n_iter_")


@dataclass(frozen=True)
class PurificationStream:
    """What is remembered of the samples so far."""

    state: PurificationState  # features, threshold and noise
    past: Moments | None = None  # decayed moments of the batches that made the features
    pending: Moments | None = None  # moments of samples that have not yet made an update


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
            "features": _FEATURES,
            "threshold": _PER_COMPONENT,
            "noise": _PER_COMPONENT,
            "units": _PER_COMPONENT,
            "reference": _PER_COMPONENT,
            "eta": Value(float),
            "change": Value(float),
            "supports": StoredArray(
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
    alpha: Any
    eta: Any
    r: Any
    anneal: Any
    pseudo_inverse: str
    batch_size: int
    forget_factor: float
    random_state: Seed
    n_jobs: int | None
    _stream: PurificationStream
    _decoder: Decoder
    # Features may have negative entries.
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "components_": StoredArray("n_components_", "n_features_in_", finite=True),
        "_decoder": Part({Decoder: {"inverse": _FEATURES, "threshold": _PER_COMPONENT, "rule": Value(str)}}),
        "_stream": Part({PurificationStream: {"state": _STATE, "past": _MOMENTS, "pending": _MOMENTS}}),
    }

    def _options(self, n: int) -> Options:
        return completed_options(
            n,
            update=self.update,
            decode=self.decode,
            alpha=self.alpha,
            eta=self.eta,
            r=self.r,
            anneal=self.anneal,
        )

    @property
    def _method(self) -> str:
        # The linear programs would cost more than a batch.
        return "moore-penrose" if self.pseudo_inverse == "auto" else self.pseudo_inverse

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Take in one batch of samples, none of which is kept.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The batch; never changed. The first one must be large enough for the start to be found in it.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            An integer weight counts like so many equal samples.

        Returns
        -------
        PurificationNMF
            Itself.

        Notes
        -----
        Samples are decoded with the present features and counted; when `batch_size` of them have come, the
        features are updated once, from these and from the past, of which `forget_factor` is kept. `balance`,
        `fresh_samples`, `max_iter`, `tol`, `verbose`, `callback` and `checkpoint` do not matter here.
        """
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, sample_weight=sample_weight, signed=True)
        with threads(self.n_jobs):
            if first:
                n = number_of_features(self.n_components, self.init, data)
                start = features_to_start(data, n, self.init, self.random_state)
                inverse = pseudo_inverse(start, self._method)
                self._stream = PurificationStream(
                    first_state(spread_rows(data), start, inverse, self._options(n))
                )
            stream, options = self._stream, self._options(len(self._stream.state.features))
            state = stream.state
            found = pseudo_inverse(state.features, self._method, state.supports)
            decoder = Decoder(found.inverse, effective_threshold(state, options.decode), options.decode)
            batch = moments_of(data, decoder, state.reference)
            pending = batch if stream.pending is None else stream.pending + batch
            stream = PurificationStream(replace(state, supports=found.supports), stream.past, pending)
            if pending.total >= self.batch_size:
                stream = self._advanced(stream, found.inverse, options)
            self._take_over(stream, options, data)
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _advanced(
        self, stream: PurificationStream, inverse: FloatArray, options: Options
    ) -> PurificationStream:
        state, pending = stream.state, stream.pending
        assert pending is not None
        past = pending if stream.past is None else stream.past.scaled(self.forget_factor) + pending
        try:
            features, change = updated_features(state.features, past, inverse, options, state.eta)
        except Stalled:
            # A batch that says nothing leaves the features as they are.
            return replace(stream, pending=None)
        state = replace(
            state,
            features=features,
            threshold=state.threshold * options.anneal,
            noise=pending.noise,
            reference=past.mean_weights,
            change=change,
            iteration=state.iteration + 1,
        )
        return PurificationStream(state, past)

    def _take_over(self, stream: PurificationStream, options: Options, data: Any) -> None:
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self._stream = stream
        state = stream.state
        self.components_ = data.to_device(state.features)
        self.n_components_ = len(state.features)
        self._decoder = final_decoder(state, options, self._method)

    def _complete_loaded(self) -> None:
        if self._decoder.rule not in DECODES[1:]:
            raise FileFormatError(f"there is no decoding rule {self._decoder.rule!r}.")
