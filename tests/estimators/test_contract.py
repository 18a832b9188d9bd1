"""scikit-learn's own checks of an estimator: all for the first of a class, fewer for other parameters."""

from __future__ import annotations

import pytest
from tests.references.checks import parametrize_with_options

from nonneg import NMF, ConeNMF, IntegrativeNMF, TransformNMF

# The checks fit with very few iterations.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_options(
    NMF(),
    NMF(n_components=2, solver="cd", init="random"),
    NMF(n_components=2, beta_loss="kullback-leibler", alpha_W=0.01, l1_ratio=0.5),
    NMF(n_components=2, missing="mask"),
)
def test_nmf(estimator, check):
    check(estimator)


@parametrize_with_options(
    ConeNMF(),
    ConeNMF(n_components=2, bounds=False),
    ConeNMF(n_components=2, seeding="plus-plus", n_init=3, random_state=0),
)
def test_cone_nmf(estimator, check):
    check(estimator)


@parametrize_with_options(IntegrativeNMF(n_components=2, max_iter=10))
def test_integrative_nmf(estimator, check):
    check(estimator)


@parametrize_with_options(
    TransformNMF(2, max_iter=5, random_state=0),
    TransformNMF(1, method="jd", max_iter=5, random_state=0),
    TransformNMF(2, method="dct", max_iter=5, n_init=2, random_state=0),
)
def test_transform_nmf(estimator, check):
    check(estimator)
