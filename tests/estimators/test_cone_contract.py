"""scikit-learn's own checks of ConeNMF."""

from __future__ import annotations

from tests.references.checks import parametrize_with_options

from nonneg import ConeNMF

ESTIMATORS = [
    ConeNMF(),
    ConeNMF(n_components=2, bounds=False),
    ConeNMF(n_components=2, seeding="plus-plus", n_init=3, random_state=0),
]


@parametrize_with_options(*ESTIMATORS)
def test_follows_the_scikit_learn_contract(estimator, check):
    check(estimator)
