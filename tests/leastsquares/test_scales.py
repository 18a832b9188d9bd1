"""Least squares over the simplex with points of very unequal length, twins, and the origin."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.leastsquares import simplex
from nonneg.leastsquares.simplex import simplex_least_squares


def objective(gram, cross, x):
    return 0.5 * np.einsum("ij,jk,ik->i", x, gram, x) - np.sum(x * cross, axis=1)


@pytest.mark.parametrize(
    "scales", [(1.0, 1.0, 1.0), (1.0, 1e-3, 1e3), (1e-6, 1e-6, 1e-6), (0.0, 2.0, 3.0), (0.0, 0.0, 0.0)]
)
@pytest.mark.parametrize("twins", [False, True])
def test_no_other_weights_are_better(scales, twins, rng):
    points = rng.random((3, 5))
    points[1] = points[0] if twins else points[1]
    points *= np.array(scales)[:, None]
    gram, cross = points @ points.T, rng.random((6, 5)) @ points.T
    found = simplex_least_squares(gram, cross)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    others = rng.dirichlet(np.ones(3), (200, 1)) * np.ones((1, 6, 1))
    best = objective(gram, cross, found)
    size = 1e-9 * np.abs(gram).max()
    for other in (*others, *np.eye(3)[:, None] * np.ones((1, 6, 1))):
        assert (best <= objective(gram, cross, other) + size).all()


def test_the_fallback_reaches_the_same_weights(monkeypatch, rng):
    points, data = rng.random((4, 6)), rng.random((5, 6))
    gram, cross = points @ points.T, data @ points.T
    expected = simplex_least_squares(gram, cross)
    unsolved = 0.0 * cross, np.ones(5, dtype=bool)
    monkeypatch.setattr(simplex, "simplex_pivoting", lambda *arguments, **options: unsolved)
    np.testing.assert_allclose(simplex_least_squares(gram, cross), expected, atol=1e-7)


def test_one_point_has_all_weight(rng):
    np.testing.assert_array_equal(simplex_least_squares(np.ones((1, 1)), rng.random((3, 1))), np.ones((3, 1)))
