"""Moments and updates against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.purification import paper_update

from nonneg import purify
from nonneg.data import as_data_matrix
from nonneg.purification.decode import Decoder, decode
from nonneg.purification.moments import moments_of, regression_target


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    H = rng.random((4, 12))
    W = (rng.random((40, 4)) < 0.4) * rng.random((40, 4))
    return W @ H, H + 0.05 * rng.normal(size=H.shape)


def test_the_published_update_is_the_mean_over_pairs(small):
    X, init = small
    result = purify(
        X,
        init,
        update="covariance",
        threshold=0.1,
        step_size=0.3,
        scale=2.0,
        max_iter=3,
        tol=0,
        check_init="report",
    )
    A = init.T
    for _ in range(3):
        A = paper_update(X.T, A, 0.1, 0.3, 2.0, np.linalg.pinv(A))
    np.testing.assert_allclose(result.H, A.T, rtol=1e-9)
    assert result.parameters["scale"] == 2.0


def test_the_automatic_scale_keeps_the_own_share(small):
    X, init = small
    one = purify(X, init, update="covariance", threshold=0.1, step_size=1.0, max_iter=1, check_init="report")
    np.testing.assert_allclose(np.diagonal(one.H @ np.linalg.pinv(init)), 1.0, rtol=1e-10)


def test_the_regression_is_least_squares_and_leaves_the_unseen_alone(small):
    X, init = small
    inverse = np.linalg.pinv(init.T)
    decoder = Decoder(inverse, np.array([0.1, 0.1, 0.1, 1e9]), "unshifted")
    moments = moments_of(as_data_matrix(X), decoder, np.array([0.3, 0.3, 0.3, 0.3]))
    target = regression_target(init, moments)
    W = decode(as_data_matrix(X), decoder)
    design = np.hstack([W[:, :3], np.ones((40, 1))])
    # The fourth feature has no weights: it stays, and the others are fitted without it.
    np.testing.assert_allclose(target[:3], np.linalg.lstsq(design, X, rcond=None)[0][:3], rtol=1e-8)
    np.testing.assert_array_equal(target[3], init[3])


def test_features_of_any_size_give_the_same_answer(planted):
    data, init = planted(weights="uniform")
    sizes = 10.0 ** np.linspace(-3, 3, 20)
    one = purify(data.X, init, max_iter=20, tol=0)
    other = purify(data.X, init * sizes[:, None], max_iter=20, tol=0)
    np.testing.assert_allclose(other.H / sizes[:, None], one.H, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.W * sizes, one.W, rtol=1e-8, atol=1e-10)
    units = purify(1e5 * data.X, 1e5 * init, max_iter=20, tol=0)
    np.testing.assert_allclose(units.H / 1e5, one.H, rtol=1e-8, atol=1e-12)
