"""Moments and updates against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.purification import paper_update

from nonneg import purify
from nonneg.data import as_data_matrix
from nonneg.purification.decode import (
    LOWEST_WITH_DECAY,
    Decoder,
    decode,
    initial_threshold,
    weight_scales,
)
from nonneg.purification.iteration import PurificationState, effective_threshold, noise_level
from nonneg.purification.moments import Moments, moments_of
from nonneg.purification.update import covariance_target, regression_target


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


def test_thresholds_follow_the_size_of_the_weights():
    rng = np.random.default_rng(0)
    binary = (rng.random((5000, 3)) < 0.1) * np.array([1.0, 10.0, 0.01])
    np.testing.assert_allclose(weight_scales(binary), [1.0, 10.0, 0.01])
    uniform = rng.random((200000, 1))
    assert weight_scales(uniform)[0] == pytest.approx(0.75, abs=0.01)
    noisy = binary / np.array([1.0, 10.0, 0.01]) + 0.1 * rng.normal(size=binary.shape)
    chosen = initial_threshold(noisy * np.array([1.0, 10.0, 0.01]))
    np.testing.assert_allclose(chosen / chosen[0], [1.0, 10.0, 0.01], rtol=0.1)
    assert 0.25 < chosen[0] < 0.6
    np.testing.assert_array_equal(initial_threshold(-np.ones((5, 2))), [0.0, 0.0])


def test_features_of_any_size_give_the_same_answer(planted):
    data, init = planted(weights="uniform")
    sizes = 10.0 ** np.linspace(-3, 3, 20)
    one = purify(data.X, init, max_iter=20, tol=0)
    other = purify(data.X, init * sizes[:, None], max_iter=20, tol=0)
    np.testing.assert_allclose(other.H / sizes[:, None], one.H, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.W * sizes, one.W, rtol=1e-8, atol=1e-10)
    units = purify(1e5 * data.X, 1e5 * init, max_iter=20, tol=0)
    np.testing.assert_allclose(units.H / 1e5, one.H, rtol=1e-8, atol=1e-12)


def test_a_state_of_longer_features_has_smaller_weights():
    rng = np.random.default_rng(0)
    H, (threshold, noise, scale, reference) = rng.random((3, 5)), rng.random((4, 3))
    state = PurificationState(H, threshold, noise, scale, reference, 0.5, balancing=np.ones(5))
    factors = np.array([2.0, 0.25, 10.0])
    other = state.rescaled(factors)
    np.testing.assert_allclose(other.H, factors[:, None] * H)
    for mine, theirs in ((threshold, other.threshold), (noise, other.noise), (scale, other.weight_scale)):
        np.testing.assert_allclose(theirs, mine / factors)
    np.testing.assert_allclose(other.reference, reference / factors)
    assert other.balancing is None
    assert other.step_size == 0.5
    for rule in ("unshifted", "shifted"):
        np.testing.assert_allclose(
            effective_threshold(other, rule), effective_threshold(state, rule) / factors
        )


def test_a_typical_weight_is_the_mean_weighted_by_squares():
    values = np.array([[2.0, -1.0, 0.5], [0.0, -3.0, 1.5], [-7.0, 0.0, 2.5]])
    np.testing.assert_allclose(weight_scales(values), [2.0, 0.0, 19.125 / 8.75])
    np.testing.assert_allclose(weight_scales(1e-200 * values), 1e-200 * weight_scales(values))
    np.testing.assert_array_equal(weight_scales(np.zeros((0, 2))), [0.0, 0.0])


def test_directions_in_which_weights_do_not_vary_are_left_alone():
    """Two weights that are equal up to rounding: only their sum is regressed on."""
    H = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    gram = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])
    cross = np.array([[2.0, 4.0, 6.0], [3.0, 1.0, 0.0]])
    moments = Moments(
        10.0, np.full(2, 0.1), np.zeros(3), gram, cross, np.zeros(2), np.zeros(2), np.full(2, 10.0)
    )
    change = (cross - gram @ H).sum(axis=0) / 4.0
    np.testing.assert_allclose(regression_target(H, moments), H + change, rtol=1e-9)


@pytest.mark.parametrize("own", [0.5, 0.05])
def test_a_feature_that_keeps_little_of_itself_is_not_scaled_back(own):
    H = np.array([[1.0, 1.0]])
    moments = Moments(
        10.0, np.zeros(1), np.zeros(2), np.array([[4.0]]), np.array([[4.0, 8.0]]), np.zeros(1), np.zeros(1),
        np.full(1, 10.0),
    )  # fmt: skip
    found = regression_target(H, moments, np.array([[own, 0.0]]))
    np.testing.assert_allclose(found, [[1.0, 2.0]] / np.array(own if own > 0.1 else 1.0))


def test_covariances_are_scaled_by_what_is_given_or_to_their_own_share():
    H, cross = np.eye(2, 3), np.array([[6.0, 2.0, 4.0], [0.0, 0.0, 8.0]])
    moments = Moments(4.0, np.zeros(2), np.zeros(3), np.eye(2), cross, np.zeros(2), np.zeros(2), np.ones(2))
    inverse = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(covariance_target(H, moments, inverse, 3.0), 2 * 3.0 * cross / 4)
    each = covariance_target(H, moments, inverse, np.array([1.0, 0.5]))
    np.testing.assert_allclose(each, 2 * np.array([[1.0], [0.5]]) * cross / 4)
    # The second one has no share of its own, and stays.
    found = covariance_target(H, moments, inverse, None)
    np.testing.assert_allclose(found, [cross[0] / 8.0, H[1]])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", ["unshifted", "shifted", "linear"])
def test_moments_are_plain_sums(sparse, weighted, rule, rng):
    X = rng.standard_normal((25, 5)) * (rng.random((25, 5)) < 0.7)
    inverse, threshold = rng.standard_normal((3, 5)), np.array([0.3, 0.0, 0.5])
    weights = rng.integers(0, 3, 25).astype(float) if weighted else np.ones(25)
    data = as_data_matrix(sp.csr_array(X) if sparse else X, weights=weights if weighted else None)
    found = moments_of(data, Decoder(inverse, threshold, rule), np.array([0.1, -0.2, 0.3]))
    values = X @ inverse.T
    x = {
        "unshifted": np.where(values > threshold, values, 0.0),
        "shifted": np.maximum(values - threshold, 0.0),
        "linear": values,
    }[rule]
    total, w = weights.sum(), weights[:, None]
    mean_x, mean_y = (w * x).sum(axis=0) / total, (w * X).sum(axis=0) / total
    assert found.total == pytest.approx(total)
    np.testing.assert_allclose(found.mean_weights, mean_x, atol=1e-12)
    np.testing.assert_allclose(found.mean_sample, mean_y, atol=1e-12)
    np.testing.assert_allclose(found.gram, (w * (x - mean_x)).T @ (x - mean_x), atol=1e-10)
    np.testing.assert_allclose(found.cross, (w * (x - mean_x)).T @ (X - mean_y), atol=1e-10)
    np.testing.assert_allclose(found.negative_counts, (w * (values < 0)).sum(axis=0))
    np.testing.assert_allclose(found.negative_squares, (w * np.minimum(values, 0.0) ** 2).sum(axis=0))
    np.testing.assert_allclose(found.second_moments, (w * x**2).sum(axis=0) / total, atol=1e-12)
    np.testing.assert_allclose(found.noise, np.sqrt(found.negative_squares / found.negative_counts))


def test_moments_of_nothing_change_nothing():
    zeros = Moments(0.0, np.zeros(1), np.zeros(2), np.zeros((1, 1)), np.zeros((1, 2)), *np.zeros((3, 1)))
    some = Moments(
        3.0, np.array([2.0]), np.array([1.0, 4.0]), np.array([[5.0]]), np.array([[6.0, 7.0]]),
        np.array([0.5]), np.array([8.0]), np.array([2.0]),
    )  # fmt: skip
    for found in (zeros + some, some + zeros):
        assert found.total == 3.0
        for name in ("mean_weights", "mean_sample", "gram", "cross", "negative_counts", "active"):
            np.testing.assert_allclose(getattr(found, name), getattr(some, name))
    assert (zeros + zeros).total == 0.0
    assert (zeros.noise, zeros.second_moments) == (0.0, 0.0)
    assert some.noise[0] == pytest.approx(4.0)  # eight over half a negative value
    assert some.second_moments[0] == pytest.approx(5.0 / 3.0 + 4.0)


@pytest.mark.parametrize(("variance", "seen"), [(1e-6, False), (1e-3, True)])
def test_a_weight_that_hardly_varies_is_constant(variance, seen):
    """Relative to its squared mean, 1e8, the first varies by less than 1e-13."""
    moments = Moments(
        10.0, np.array([1e4]), np.zeros(2), np.array([[10.0 * variance]]), np.array([[1.0, 2.0]]),
        np.zeros(1), np.zeros(1), np.full(1, 10.0),
    )  # fmt: skip
    found = regression_target(np.zeros((1, 2)), moments)
    np.testing.assert_allclose(found, [[1.0, 2.0]] / np.array(10.0 * variance) if seen else [[0.0, 0.0]])


def test_a_share_that_is_rounding_beside_the_largest_leaves_a_feature_alone():
    H, cross = np.ones((2, 2)), np.array([[1e-5, 0.0], [0.0, 1e10]])
    moments = Moments(1.0, np.zeros(2), np.zeros(2), np.eye(2), cross, np.zeros(2), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(covariance_target(H, moments, np.eye(2), None), [[1.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("sparse", [False, True])
def test_shares_of_samples_multiply_their_weights(sparse, rng):
    X, weights, shares = rng.standard_normal((8, 4)), rng.random(8) + 0.5, rng.integers(0, 3, 8).astype(float)
    wrap = sp.csr_array if sparse else np.asarray
    decoder = Decoder(rng.standard_normal((2, 4)), np.zeros(2), "unshifted")
    data = as_data_matrix(wrap(X), weights=weights)
    found = moments_of(data, decoder, np.zeros(2), data.to_sample_array(shares[:, None]))
    expected = moments_of(as_data_matrix(wrap(X), weights=weights * shares), decoder, np.zeros(2))
    assert found.total == pytest.approx(expected.total)
    np.testing.assert_allclose(found.gram, expected.gram, atol=1e-12)
    np.testing.assert_allclose(found.cross, expected.cross, atol=1e-12)
    none = moments_of(data, decoder, np.array([0.5, 0.25]), data.to_sample_array(np.zeros((8, 1))))
    assert none.total == 0.0
    np.testing.assert_array_equal(none.mean_weights, [0.5, 0.25])


def test_features_without_positive_values_do_not_move_the_threshold(rng):
    values = np.where(rng.random((50, 1)) < 0.3, 1.0, 0.1) * rng.random((50, 1))
    both = initial_threshold(np.hstack([values, -np.ones((50, 1))]))
    np.testing.assert_allclose(both, [initial_threshold(values)[0], 0.0])


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
        expected = initial_threshold(values, LOWEST_WITH_DECAY).max()
        assert result.parameters["threshold"] == pytest.approx(expected)
    given = purify(X, init, threshold=[0.1, 0.2, 0.15, 0.05], max_iter=1, tol=0, check_init="report")
    assert given.parameters["threshold"] == 0.2
