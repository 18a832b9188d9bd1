"""How well fitted models explain data: one number, larger is better, for scikit-learn's model selection."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import to_float64
from nonneg._threads import threads
from nonneg._typing import Array, SampleArray
from nonneg.certificates.svd_lower_bound import squared_residual
from nonneg.data import DataMatrix
from nonneg.data.checks import checked_data
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.estimators.frame_input import input_frames, variances
from nonneg.losses.beta import objective
from nonneg.solvers.registry import beta_of


def mean_deviance(data: DataMatrix, W: SampleArray, Ht: Array, beta: float) -> float:
    """Return twice the mean beta divergence of an entry."""
    n_entries = data.observed_weight()
    if n_entries == 0:
        return 0.0
    total = squared_residual(data, W, Ht) if beta == 2.0 else 2.0 * objective(data, W, Ht, beta=beta)
    return total / n_entries


def reconstruction_score(estimator: Any, X: Any, sample_weight: Any) -> float:
    """Return minus the mean deviance of data from what a model makes of them."""
    W = estimator.transform(X)
    if hasattr(W, "to_float64"):
        # The user asked for data frames (`set_output`).
        W = W.to_numpy()
    # What entries may be, `transform` has looked at.
    data = input_data(estimator, X, reset=False, sample_weight=sample_weight, signed=True)
    with threads(estimator.n_jobs):
        Ht = data.to_device(estimator.components_.T)
        return -mean_deviance(data, W, Ht, beta_of(getattr(estimator, "beta_loss", "frobenius")))


class FrameScore(FactorizingEstimator):
    """An estimator of frames and their transform, which is judged by the likelihood of frames."""

    transform_: Array
    eps0_: float
    n_jobs: int | None

    @abstractmethod
    def _encoded(self, Y: Array) -> Array:
        """Return the activations of frames of shape (n_realizations, n_frames, frame_length)."""

    @abstractmethod
    def _beside(self, array: Array, X: Array) -> Array:
        """Return an array of the model where frames are."""

    def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
        """Return how likely frames are under the model: minus the mean of C over the coefficients.

        Parameters
        ----------
        X : array-like or tensor of shape (n_frames, frame_length) or (n_realizations, n_frames, frame_length)
            The frames, of any sign; never changed.
        y : Any
            Ignored.
        sample_weight : array of shape (n_frames,), optional
            Weights of the frames in the mean.

        Returns
        -------
        float
            Twice the mean log-likelihood of a coefficient, up to a constant: larger is better, and models
            with different transforms can be compared, those with different `eps0_` cannot. Activations are
            those that `transform` finds.
        """
        check_is_fitted(self)
        Y = input_frames(self, X, reset=False)
        W = self._encoded(Y)
        with threads(self.n_jobs):
            model = W @ self._beside(self.components_, Y) + self.eps0_
            # The frames' own variances, whatever neighbours the activations were averaged over.
            V = variances(Y, self._beside(self.transform_, Y)) + self.eps0_
            xp = array_namespace(model)
            rows = to_float64(xp.mean(V / model + xp.log(model), axis=1)).astype(np.float64)
        who = type(self).__name__
        return -checked_data(rows[:, None], sample_weight=sample_weight, signed=True, who=who).mean()
