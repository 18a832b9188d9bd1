"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from tests.references.checks import parametrize_with_options

from nonneg import NMF, IntegrativeNMF

ESTIMATORS = [
    NMF(),
    NMF(n_components=2, solver="cd", init="random"),
    NMF(n_components=2, beta_loss="kullback-leibler", alpha_W=0.01, l1_ratio=0.5),
    NMF(n_components=2, missing="mask"),
]


@parametrize_with_options(*ESTIMATORS)
def test_follows_the_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        # The checks fit with very few iterations.
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@parametrize_with_options(IntegrativeNMF(n_components=2, max_iter=20))
def test_integrative_nmf_follows_the_contract(estimator, check):
    with warnings.catch_warnings():
        # The checks fit with very few iterations.
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)
