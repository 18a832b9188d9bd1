"""Sigma, E and N of found features, and the norms made of them."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import NonFiniteDataError, ShapeError
from nonneg.metrics import mixing


def test_a_known_decomposition():
    true = np.eye(3, 5)
    E = np.array([[0.0, 0.2, 0.0], [-0.1, 0.0, 0.3], [0.0, -0.4, 0.0]])
    N = np.zeros((5, 3))
    N[4] = [0.0, 0.5, -0.25]
    found = mixing(true, (true.T @ (np.diag([1.0, 2.0, 0.5]) + E) + N).T)
    np.testing.assert_allclose(found.diagonal, [1.0, 2.0, 0.5])
    np.testing.assert_allclose(found.off_diagonal, E, atol=1e-15)
    np.testing.assert_allclose(found.outside, N, atol=1e-15)
    assert found.e_norm == pytest.approx(0.6)
    assert found.e_symmetric_norm == pytest.approx(0.6)
    assert found.n_norm == pytest.approx(0.5)
    assert found.relative_e_norm == pytest.approx(0.6)
    # ||E+||_s is 0.3 (row 2), ||E-||_s is 0.4.
    assert found.potential(2.0) == pytest.approx(0.3 + 2 * 0.4)
    third = np.array([0.0, 0.3, 0.5, 0.0, -0.25]) / 1.05  # the worst of the three
    assert found.normalized_error == pytest.approx(np.abs(third - [0, 0, 1, 0, 0]).sum())


def test_order_and_shapes():
    true = np.random.default_rng(0).random((4, 9))
    assert mixing(true, true[::-1], match=True).e_norm < 1e-12
    assert mixing(true, true[::-1]).relative_e_norm > 1e6
    with pytest.raises(ShapeError, match="same shape"):
        mixing(true, true[:3])


def test_features_that_are_not_finite_are_refused():
    """Which ones is said."""
    with pytest.raises(NonFiniteDataError, match="found"):
        mixing(np.eye(3), np.full((3, 3), np.nan))
