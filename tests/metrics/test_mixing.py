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
    with pytest.raises(ShapeError, match=r"of (the same )?shape"):
        mixing(true, true[:3])


def test_one_entry_that_is_not_finite_is_enough():
    holes = np.eye(3)
    holes[1, 1] = np.inf
    for true, found, name in ((holes, np.eye(3), "true"), (np.eye(3), holes, "estimated")):
        with pytest.raises(NonFiniteDataError, match=f"`{name}`"):
            mixing(true, found)


@pytest.mark.parametrize("transposed", [False, True])
def test_symmetric_norms_take_the_larger_of_rows_and_columns(transposed):
    E = np.array([[0.0, 0.3, 0.2], [0.0, 0.0, 0.0], [-0.1, -0.6, 0.0]])
    E = E.T if transposed else E
    found = mixing(np.eye(3), (np.eye(3) + E).T)
    columns, rows = np.abs(E).sum(axis=0), np.abs(E).sum(axis=1)
    assert found.e_norm == pytest.approx(columns.max())
    assert found.e_symmetric_norm == pytest.approx(max(columns.max(), rows.max()))
    # ||E+||_s is 0.5 and ||E-||_s 0.7 both ways.
    assert found.potential(3.0) == pytest.approx(0.5 + 3 * 0.7)
    assert found.potential() == pytest.approx(0.5 + 4 * 0.7)


def test_a_found_feature_of_zeros_and_small_ones():
    """Features are compared at l1 norm one; zeros have none, and a feature has no share of its own."""
    found = mixing(0.1 * np.eye(2), [[0.05, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(found.diagonal, [0.5, 0.0])
    assert found.normalized_error == pytest.approx(1.0)
    assert found.relative_e_norm == np.inf
    assert mixing(0.1 * np.eye(2), 0.01 * np.eye(2)).normalized_error == pytest.approx(0.0)
    with pytest.raises(ShapeError, match=r"of (the same )?shape"):
        mixing(np.ones(3), np.ones(3))
