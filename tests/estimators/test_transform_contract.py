"""TransformNMF: scikit-learn's own checks of an estimator."""

from __future__ import annotations

from tests.references.checks import parametrize_with_options

from nonneg import TransformNMF

ESTIMATORS = [
    TransformNMF(2, max_iter=5, random_state=0),
    TransformNMF(1, method="jd", max_iter=5, random_state=0),
    TransformNMF(2, method="dct", max_iter=5, n_init=2, random_state=0),
]


@parametrize_with_options(*ESTIMATORS)
def test_follows_the_scikit_learn_contract(estimator, check):
    check(estimator)
