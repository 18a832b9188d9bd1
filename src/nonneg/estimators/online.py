"""`partial_fit`: components learned one batch at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context

from nonneg._arrays import to_numpy
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg.data import DataMatrix
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.estimators.preparation import beta_loss_of, given_factors, penalties_of, rank_of
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.solvers.factorize import checked_rank, initial_factors
from nonneg.solvers.online import OnlineState, decay_of, online_step

# Attributes of a fit, which no longer describe the model once a batch has changed it.
OF_A_FIT = ("result_", "history_", "certificate_", "reconstruction_err_", "n_iter_")


class OnlineEstimator(FactorizingEstimator):
    """An estimator that also learns from one batch at a time."""

    init: str | None
    random_state: Seed
    n_jobs: int | None
    batch_size: int
    forget_factor: float
    fresh_restarts: bool
    fresh_restarts_max_iter: int
    scale: str | None
    _online: OnlineState
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "_online": Part(
            {
                OnlineState: {
                    "numerator": StoredArray("n_features_in_", "n_components_", optional=True),
                    # (n_components, n_components) for least squares, the shape of the numerator otherwise.
                    "denominator": StoredArray("rows of the denominator", "n_components_", optional=True),
                    "n_samples": Value(float),
                    "decay": Value(float, optional=True),
                }
            },
            optional=True,
        ),
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Any:
        """Update the components with one batch of samples.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            The batch. Never modified, and not kept.
        y : Any
            Ignored.
        W : array of shape (n_samples, n_components), optional
            Initial W, from which H is fitted if H is not given. Used in the first call only.
        H : array of shape (n_components, n_features), optional
            Initial H. Used in the first call only.

        Returns
        -------
        self : NMF
            The estimator, with `components_`, `n_components_` and `n_steps_`.

        Notes
        -----
        After `fit`, training continues from the fitted components.
        """
        beta = beta_loss_of(self)
        if getattr(self, "scale", None) is not None:
            raise InvalidParameterError(
                f"partial_fit does not accept scale={self.scale!r}, because the next batch may have a "
                f"different one. Divide the columns of all batches by the same numbers, and leave scale out."
            )
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, positive=beta <= 0)
        with threads(self.n_jobs):
            if first:
                W, H = given_factors(self, W, H)
                k = rank_of(self, data, W, H)
                rng = generator(self.random_state)
                k = checked_rank(k, data.shape, type(self).__name__)
                _, Ht = initial_factors(data, k, init=self.init, W=W, H=H, rng=rng)
            else:
                Ht = data.to_device(self.components_.T)
            Ht, self._online = online_step(
                data,
                Ht,
                self._past(data, first=first),
                beta=beta,
                penalties=penalties_of(self, data),
                max_iter=self.fresh_restarts_max_iter if self.fresh_restarts else None,
            )
        if data.numpy_out:
            Ht = to_numpy(Ht)
            sums = {
                "numerator": to_numpy(self._online.numerator),
                "denominator": to_numpy(self._online.denominator),
            }
            self._online = replace(self._online, **sums)
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self.components_ = np.ascontiguousarray(Ht.T) if isinstance(Ht, np.ndarray) else Ht.T
        self.n_components_ = int(Ht.shape[1])
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _past(self, data: DataMatrix, *, first: bool) -> OnlineState:
        state = OnlineState() if first else getattr(self, "_online", OnlineState())
        if state.decay is None:
            decay = decay_of(self.forget_factor, self.batch_size, data.shape[0])
            state = replace(state, decay=decay)
        if state.numerator is None:
            return state
        # A batch may come in another container than the one before.
        numerator, denominator = data.to_device(state.numerator), data.to_device(state.denominator)
        return replace(state, numerator=numerator, denominator=denominator)

    def _complete_loaded(self) -> None:
        past = getattr(self, "_online", None)
        if past is None or past.numerator is None:
            return
        k, n_features = self.components_.shape
        if past.denominator is None or past.denominator.shape not in ((k, k), (n_features, k)):
            raise FileFormatError("the sums of past batches do not fit the components.")
