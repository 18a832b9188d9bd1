"""Moments and updates against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.purification import paper_update

from nonneg import purify
from nonneg.data import as_data_matrix
from nonneg.purification.decode import Decoder, decode
from nonneg.purification.iteration import noise_level
from nonneg.purification.moments import Moments, moments_of, regression_target


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


def test_moments_of_parts_add_up_and_do_not_cancel(small):
    X, init = small
    X = X + 1e6  # a background that no weight explains
    inverse = np.linalg.pinv(init.T)
    decoder = Decoder(inverse, np.full(4, -np.inf), "unshifted")
    values = X @ inverse.T
    parts = [moments_of(as_data_matrix(X[a:b]), decoder, values.mean(axis=0)) for a, b in ((0, 7), (7, 40))]
    found = parts[0] + parts[1]
    centered, samples = values - values.mean(axis=0), X - X.mean(axis=0)
    np.testing.assert_allclose(found.gram, centered.T @ centered, rtol=1e-6)
    np.testing.assert_allclose(found.cross, centered.T @ samples, rtol=1e-6)
    np.testing.assert_allclose(found.mean_sample, X.mean(axis=0))
    np.testing.assert_allclose(found.scaled(0.5).gram, 0.5 * found.gram)
    np.testing.assert_allclose(found.scaled(0.5).mean_weights, values.mean(axis=0))


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


@pytest.mark.parametrize(("variance", "seen"), [(1e-6, False), (1e-3, True)])
def test_a_weight_that_hardly_varies_is_constant(variance, seen):
    """Relative to its squared mean, 1e8, the first varies by less than 1e-13."""
    moments = Moments(
        10.0, np.array([1e4]), np.zeros(2), np.array([[10.0 * variance]]), np.array([[1.0, 2.0]]),
        np.zeros(1), np.zeros(1), np.full(1, 10.0),
    )  # fmt: skip
    found = regression_target(np.zeros((1, 2)), moments)
    np.testing.assert_allclose(found, [[1.0, 2.0]] / np.array(10.0 * variance) if seen else [[0.0, 0.0]])


@pytest.mark.parametrize("balance", [False, True])
def test_what_a_run_says_about_itself(balance, small):
    X, init = small
    result = purify(X, init, balance=balance, max_iter=1, tol=0, check_init="report")
    assert result.parameters["balance"] is balance
    assert (result.balancing is not None) is balance
    assert result.n_iter == 1
    state = result.state
    worst = np.max(noise_level(state) / state.weight_scale)
    assert result.certificate["noise-level"].number == pytest.approx(worst)
    if not balance:
        values = X @ np.linalg.pinv(init)
        positive = np.maximum(values, 0.0)
        expected = 0.5 * (positive**3).sum(axis=0) / (positive**2).sum(axis=0)
        assert result.parameters["threshold"] == pytest.approx(expected.max())
    assert purify(X, init, threshold=0.2, max_iter=1, check_init="report").parameters["threshold"] == 0.2
