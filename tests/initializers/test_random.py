"""The random initialization: its distribution, and that it serves as well as scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from sklearn.decomposition import non_negative_factorization

from nonneg.data import as_data_matrix
from nonneg.initializers.random import half_normal_rows, noise_projections, random_init


@pytest.fixture
def noise(digits):
    data = as_data_matrix(digits)
    return half_normal_rows(data, **noise_projections(data, 8, np.random.default_rng(0)))


def test_the_numbers_of_rows_are_half_normal(noise):
    for column in noise.T:
        distance = scipy.stats.kstest(column, scipy.stats.halfnorm.cdf).statistic
        assert distance < 0.05  # 2 / sqrt(1797): one in a thousand for independent rows


def test_the_numbers_of_different_rows_look_independent(noise):
    uniform = scipy.stats.halfnorm.cdf(noise)
    between_columns = np.corrcoef(uniform.T) - np.eye(8)
    assert np.abs(between_columns).max() < 0.1
    neighbors = np.corrcoef(uniform[:-1].ravel(), uniform[1:].ravel())[0, 1]
    assert abs(neighbors) < 0.05


def test_multiples_of_a_row_share_its_numbers(rng):
    row = rng.random((1, 20))
    data = as_data_matrix(np.concatenate([row, 3.7 * row, row * 1e-5]))
    numbers = half_normal_rows(data, **noise_projections(data, 5, rng))
    np.testing.assert_allclose(numbers[1:], numbers[:1] * np.ones((2, 1)), rtol=1e-9)


def test_the_scale_is_scikit_learn_s(digits):
    W, Ht = random_init(as_data_matrix(digits), 16, rng=0)
    scale = np.sqrt(digits.mean() / 16) * np.sqrt(2 / np.pi)
    assert Ht.mean() == pytest.approx(scale, rel=0.1)
    assert W.mean() == pytest.approx(scale, rel=0.1)


def test_it_leads_scikit_learn_s_solver_as_far_as_its_own_initialization(digits):
    X, k = digits[:500], 10

    def error(**start):
        W, H, _ = non_negative_factorization(X, n_components=k, max_iter=60, tol=0.0, **start)
        return np.linalg.norm(X - W @ H)

    ours, theirs = [], []
    for seed in range(8):
        W, Ht = random_init(as_data_matrix(X), k, rng=seed)
        ours.append(error(init="custom", W=W, H=np.ascontiguousarray(Ht.T)))
        theirs.append(error(init="random", random_state=seed))
    spread = max(np.std(ours), np.std(theirs))
    assert np.median(ours) < np.median(theirs) + spread
