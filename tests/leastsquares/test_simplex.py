"""Least squares over the simplex: shifted, singular and hard problems."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from tests.references.simplex import simplex_kkt

from nonneg.leastsquares import simplex as module
from nonneg.leastsquares.simplex import onto_simplex, simplex_least_squares


def problem(k, m, n_rows=50, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((k, m))
    X = rng.dirichlet(np.ones(k), n_rows) @ points + noise * rng.normal(size=(n_rows, m))
    return points, X


def errors(points, X, rows):
    return np.sum((X - rows @ points) ** 2, axis=1)


def test_beats_a_general_solver():
    points, X = problem(6, 10, n_rows=8)
    rows = simplex_least_squares(points @ points.T, X @ points.T)
    for x, error in zip(X, errors(points, X, rows), strict=True):
        found = scipy.optimize.minimize(
            lambda f, x=x: np.sum((x - f @ points) ** 2),
            np.full(6, 1 / 6),
            jac=lambda f, x=x: 2 * points @ (f @ points - x),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda f: f.sum() - 1, "jac": lambda f: np.ones(6)},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert error <= found.fun + 1e-9
        assert error >= found.fun - 1e-6


@pytest.mark.parametrize("k", [3, 20])
def test_as_many_points_as_a_simplex_has_in_their_dimensions(k):
    # Linearly dependent, and yet with a single answer because the weights sum to one.
    points, X = problem(k, k - 1)
    gram, cross = points @ points.T, X @ points.T
    rows = simplex_least_squares(gram, cross)
    assert simplex_kkt(rows, gram, cross) < 1e-10
    truth = np.random.default_rng(5).dirichlet(np.ones(k), 30)
    found = simplex_least_squares(gram, truth @ points @ points.T)
    np.testing.assert_allclose(found @ points, truth @ points, atol=1e-9)


@pytest.mark.parametrize("kind", ["twin", "middle", "more than fit", "zero"])
def test_singular_problems_have_the_best_value(kind):
    points, X = problem(5, 3 if kind == "more than fit" else 8)
    if kind == "twin":
        points[4] = points[0]
    elif kind == "middle":
        points[4] = 0.5 * (points[0] + points[1])
    elif kind == "zero":
        points[4] = 0.0
    rows = simplex_least_squares(points @ points.T, X @ points.T)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    assert rows.min() >= 0
    if kind in ("twin", "middle"):
        # The fifth point adds nothing to the hull of the others.
        four = points[:4]
        best = errors(four, X, simplex_least_squares(four @ four.T, X @ four.T))
        np.testing.assert_allclose(errors(points, X, rows), best, rtol=1e-8, atol=1e-10)
    assert simplex_kkt(rows, points @ points.T, X @ points.T) < 1e-9


def test_all_points_at_the_origin():
    rows = simplex_least_squares(np.zeros((3, 3)), np.zeros((2, 3)))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)


def test_one_component_has_weight_one(xp):
    rows = simplex_least_squares(xp.asarray([[4.0]]), xp.asarray([[3.0], [-1.0]]))
    np.testing.assert_array_equal(np.asarray(rows), 1.0)


def test_rows_that_pivoting_gives_up_are_solved_by_descent(monkeypatch):
    points, X = problem(6, 9)
    gram, cross = points @ points.T, X @ points.T
    expected = simplex_least_squares(gram, cross)

    def gives_up(system, products, *, start=None):
        flags = np.zeros(len(products), dtype=bool)
        flags[::3] = True
        return np.where(flags[:, None], 0.0, expected), flags

    monkeypatch.setattr(module, "simplex_pivoting", gives_up)
    np.testing.assert_allclose(simplex_least_squares(gram, cross), expected, atol=1e-9)


def test_namespaces_agree(xp):
    points, X = problem(7, 12)
    gram, cross = points @ points.T, X @ points.T
    rows = simplex_least_squares(xp.asarray(gram), xp.asarray(cross))
    np.testing.assert_allclose(np.asarray(rows), simplex_least_squares(gram, cross), atol=1e-12)


def test_projection_onto_the_simplex(xp):
    points = 2 * np.random.default_rng(0).normal(size=(40, 6))
    rows = np.asarray(onto_simplex(xp.asarray(points)))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    assert rows.min() >= 0
    # The nearest point: least squares over the simplex of the unit vectors.
    np.testing.assert_allclose(rows, simplex_least_squares(np.eye(6), points), atol=1e-10)
