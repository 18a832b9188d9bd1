"""The parts of Newton steps for the Kullback-Leibler divergence, not compiled, against formulas of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.plain import plain

NEWTON = "nonneg.kernels.kl_newton.numba"


def divergence(x, v):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0) / v), 0.0) - x + v


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_divergences_of_rows_are_added(dtype, rng):
    kernels = plain(NEWTON)
    x, v = rng.poisson(2.0, (6, 5)).astype(dtype), (0.2 + rng.random((5, 5))).astype(dtype)
    weights = (0.5 + rng.random(6)).astype(dtype)
    low, losses = dtype(0.3), np.zeros(5)
    model = np.maximum(v, low)
    tolerance = {"rtol": 1e-5 if dtype == np.float32 else 1e-12}
    kernels.add_losses(x, 4, v, 1, low, weights, losses, None if dtype == np.float64 else True)
    expected = weights[4] * divergence(x[4], model[1])
    np.testing.assert_allclose(losses, expected, **tolerance)
    if dtype == np.float32:
        kernels.add_four_losses(x, 2, v, 1, low, weights, losses)
        expected = expected + np.sum(weights[2:6, None] * divergence(x[2:6], model[1:5]), axis=0)
        np.testing.assert_allclose(losses, expected, **tolerance)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 2])
def test_gradients_and_diagonals_of_rows(k, count, rng):
    slope, curvature = rng.standard_normal((2, 6)), rng.random((2, 6))
    H, row = rng.random((k, 6)), rng.random((4, k))
    gradient, diagonal = np.full((4, k), 9.0), np.full((4, k), 9.0)
    plain(NEWTON).products(slope, curvature, H, H**2, gradient, diagonal, 1, count, 0.3, 0.7, row)
    rows = slice(1, 1 + count)
    np.testing.assert_allclose(gradient[rows], slope[:count] @ H.T + 0.3 + 0.7 * row[rows])
    np.testing.assert_allclose(diagonal[rows], curvature[:count] @ (H**2).T + 0.7)
    assert (gradient[1 + count :] == 9.0).all()
    assert (gradient[0] == 9.0).all()


def test_steps_along_a_direction_lower_the_divergence(rng):
    kernels = plain(NEWTON)
    x, v, d = rng.poisson(3.0, (3, 6)).astype(float), 0.5 + rng.random((2, 6)), rng.standard_normal((2, 6))
    low = 1e-3
    for t in (0.0, 0.1, 0.4):
        model = np.maximum(v[1] + t * d[0], low)
        found = kernels.slope_along(x, 2, v, 1, d, 0, t, low)
        assert found == pytest.approx(np.sum(d[0] * (1 - x[2] / model)))
    start = np.sum(d[0] * (1 - x[2] / v[1]))
    way = d if start < 0 else -d
    linear, quadratic = 0.01, 0.02
    down = -(-abs(start) + linear)
    t = kernels.step_along(x, 2, v, 1, way, 0, linear, quadratic, down, 20, low)

    def loss(t):
        penalty = linear * t + 0.5 * quadratic * t * t
        return np.sum(divergence(x[2], np.maximum(v[1] + t * way[0], low))) + penalty

    assert 0.0 < t <= 1.0
    assert loss(t) < loss(0.0)
    assert kernels.step_along(x, 2, v, 1, way, 0, linear, quadratic, 0.0, 20, low) == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_sums_for_the_other_factor(count, rng):
    slope, curvature, new = rng.standard_normal((4, 5)), rng.random((4, 5)), rng.random((7, 3))
    weights, sums, curvatures = rng.random(7), np.ones((3, 5)), np.ones((4, 5))
    plain(NEWTON).add_sums(slope, curvature, new, weights, 2, count, sums, curvatures)
    rows, w = slice(2, 2 + count), weights[2 : 2 + count]
    np.testing.assert_allclose(sums, 1 + (w[:, None] * new[rows]).T @ slope[:count])
    squares = np.column_stack([new[rows] ** 2, np.ones(count)])
    np.testing.assert_allclose(curvatures, 1 + (w[:, None] * squares).T @ curvature[:count])


def test_correlations_of_a_gram_matrix(rng):
    A = rng.random((6, 3))
    gram = A.T @ A
    gram[1], gram[:, 1] = 0.0, 0.0
    padded = np.full((3, 8), 9.0)
    plain(NEWTON).correlate(gram, padded)
    scale = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    expected = gram / np.outer(scale, scale)
    expected[1, 1] = 1.0
    np.testing.assert_allclose(padded[:, :3], expected)
    assert (padded[:, 3:] == 0.0).all()
    Ht, means = rng.random((7, 3)), 0.5 + rng.random(7)
    plain(NEWTON).shared_model(Ht, means, np.empty((3, 3)), padded)
    model = Ht.T @ (Ht / means[:, None])
    scale = np.sqrt(np.diag(model))
    np.testing.assert_allclose(padded[:, :3], model / np.outer(scale, scale))


@pytest.mark.parametrize("top", [0.0, 50.0])
def test_small_means_of_a_model_are_a_millionth_of_the_largest(top, rng):
    Ht, padded = rng.random((6, 3)), np.empty((3, 4))
    means = top * np.array([0.5, 1e-9, 0.0, 1e-3, 1.0, 1e-6])
    plain(NEWTON).shared_model(Ht, means, np.empty((3, 3)), padded)
    model = Ht.T @ (Ht / np.maximum(means / (top or 1.0), 1e-6)[:, None])
    scale = np.sqrt(np.diag(model))
    np.testing.assert_allclose(padded[:, :3], model / np.outer(scale, scale))


@pytest.mark.parametrize(("x", "most", "expected"), [(8.0, 3.0, 3.0), (8.0, 9.0, 4.0), (0.0, 9.0, 0.0)])
def test_a_multiplicative_step_has_a_largest_factor(x, most, expected):
    new, H = np.zeros((1, 1)), np.ones((1, 2))
    plain(NEWTON).multiplicative(
        np.full((1, 2), x), 0, np.zeros((1, 2)), 0, H, np.full((1, 1), 2.0), 0.0, 0.0, 1e-9, 1e-30, most, new
    )
    assert new[0, 0] == pytest.approx(2.0 * expected)


@pytest.mark.parametrize("l2", [0.0, 0.4])
def test_the_multiplicative_step(l2, rng):
    x, H, start = rng.poisson(2.0, (3, 6)).astype(float), 0.1 + rng.random((2, 6)), 0.1 + rng.random((3, 2))
    v, new = np.zeros((1, 6)), np.zeros((3, 2))
    plain(NEWTON).multiplicative(x, 1, v, 0, H, start, 0.3, l2, 1e-9, 1e-30, 1e9, new)
    model = start[1] @ H
    pull, cost = (x[1] / model) @ H.T, 0.3 + H.sum(axis=1)
    ratio = pull / cost
    if l2:
        ratio = 2 * pull / (cost + np.sqrt(cost**2 + 4 * l2 * start[1] * pull))
    np.testing.assert_allclose(new[1], start[1] * ratio)
    np.testing.assert_allclose(v[0], new[1] @ H)
    assert (new[[0, 2]] == 0).all()
