"""Least squares over the simplex with points of very unequal length, twins, and the origin."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.leastsquares.simplex import RIDGE, _definite, _descended, simplex_least_squares


def objective(gram, cross, x):
    return 0.5 * np.einsum("ij,jk,ik->i", x, gram, x) - np.sum(x * cross, axis=1)


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (1.0, 1e-3, 1e3), (1e-6, 1e-6, 1e-6)])
def test_no_other_weights_are_better(scales, rng):
    points = rng.random((3, 5)) * np.array(scales)[:, None]
    gram, cross = points @ points.T, rng.random((6, 5)) @ points.T
    found = simplex_least_squares(gram, cross)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    others = rng.dirichlet(np.ones(3), (200, 1)) * np.ones((1, 6, 1))
    best = objective(gram, cross, found)
    size = 1e-9 * np.abs(gram).max()
    for other in (*others, *np.eye(3)[:, None] * np.ones((1, 6, 1))):
        assert (best <= objective(gram, cross, other) + size).all()


def test_a_ridge_is_added_to_singular_systems_only():
    points = np.array([[1.0, 0.0, 2.0], [0.0, 1e-4, 0.0], [0.0, 0.0, 1e3]])
    gram = points @ points.T
    plain = gram + gram.diagonal().min()
    np.testing.assert_array_equal(_definite(gram), plain)
    twins = np.array([[1.0, 2.0], [1.0, 2.0], [0.5, 0.0]])
    gram = twins @ twins.T
    plain = gram + gram.diagonal().min()
    np.testing.assert_array_equal(_definite(gram), plain + RIDGE * np.diag(plain.diagonal()))
    np.testing.assert_array_equal(_definite(np.zeros((2, 2))), np.eye(2))
    # Points of zero length count as points, and do not make the constant zero.
    gram = np.diag([0.0, 4.0, 9.0])
    assert _definite(gram)[0, 1] == 4.0


def test_the_fallback_reaches_the_same_weights(rng):
    points = rng.random((4, 6))
    system, cross = _definite(points @ points.T), rng.random((5, 6)) @ points.T
    np.testing.assert_allclose(
        _descended(np, system, cross), simplex_least_squares(points @ points.T, cross), atol=1e-7
    )


def test_one_point_has_all_weight(rng):
    np.testing.assert_array_equal(simplex_least_squares(np.ones((1, 1)), rng.random((3, 1))), np.ones((3, 1)))
