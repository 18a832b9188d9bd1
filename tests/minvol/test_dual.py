"""The simplex of largest polar volume: its parts against plain geometry."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.minvol import dual
from nonneg.minvol.noise import LOWEST, noise_level

TRIANGLE = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])


def test_the_triangle_around_its_points_is_found():
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(3), 3000)
    weights = weights[weights.max(axis=1) < 0.85]
    start = TRIANGLE.mean(axis=0) + 0.7 * (TRIANGLE - TRIANGLE.mean(axis=0))
    found = dual.mv_dual(weights @ TRIANGLE, start, 1e-3)
    np.testing.assert_allclose(found, TRIANGLE, atol=0.05)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_noise_is_the_next_singular_value(k):
    X = np.random.default_rng(4).random((30, 12))
    singular = np.linalg.svd(X, compute_uv=False)
    found = noise_level(as_data_matrix(X), k)
    assert found.sigma == pytest.approx(singular[k] / (np.sqrt(30) + np.sqrt(12)), rel=1e-6)
    assert found.estimated
    assert found.basis.shape == (12, k)
    floor = LOWEST * singular[k - 1] / np.sqrt(30)
    assert noise_level(as_data_matrix(X), k, 0.0).sigma == pytest.approx(floor, rel=1e-6)
    assert noise_level(as_data_matrix(X), k, 2.0).sigma == 2.0


def test_as_many_components_as_features_leave_no_noise():
    X = np.random.default_rng(5).random((9, 3))
    singular = np.linalg.svd(X, compute_uv=False)
    found = noise_level(as_data_matrix(X), 3)
    assert not found.estimated
    assert found.sigma == pytest.approx(LOWEST * singular[2] / 3.0, rel=1e-6)
