"""How well fitted models explain data: one number, larger is better, for scikit-learn's model selection."""

from __future__ import annotations

from typing import Any

from nonneg._threads import threads
from nonneg._typing import Array, SampleArray
from nonneg.certificates.svd_lower_bound import squared_residual
from nonneg.data import DataMatrix
from nonneg.estimators._base import input_data
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
    if hasattr(W, "to_numpy"):
        # The user asked for data frames (`set_output`).
        W = W.to_numpy()
    # What entries may be, `transform` has looked at.
    data = input_data(estimator, X, reset=False, sample_weight=sample_weight, signed=True)
    with threads(estimator.n_jobs):
        Ht = data.to_device(estimator.components_.T)
        return -mean_deviance(data, W, Ht, beta_of(getattr(estimator, "beta_loss", "frobenius")))
