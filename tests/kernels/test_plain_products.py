"""Kernels of divergences, rotations and the simplex, not compiled, against formulas of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.plain import plain

from nonneg.kernels.beta_products import array_api

LOGARITHMS = "nonneg.kernels.beta_products.logarithms"
BETA = "nonneg.kernels.beta_products.numba"
NEWTON = "nonneg.kernels.kl_newton.numba"
DESCENT = "nonneg.kernels.kl_newton.descent"
SIMPLEX = "nonneg.kernels.simplex.numba"
BETAS = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


def divergence(x, v, beta):
    """Return the beta-divergence of every entry."""
    if beta == 1.0:
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0) / v), 0.0) - x + v
    if beta == 0.0:
        return x / v - np.log(x / v) - 1.0
    own = np.where(x > 0, np.where(x > 0, x, 1.0) ** beta, 0.0) if beta > 0 else x**beta
    return (own + (beta - 1.0) * v**beta - beta * x * v ** (beta - 1.0)) / (beta * (beta - 1.0))


@pytest.mark.parametrize("value", [1e-200, 3e-7, 0.5, 0.70710678, 0.7071068, 1.0, 1.5, 123.4, 1e200])
def test_logarithms_and_exponentials(value):
    kernels = plain(LOGARITHMS)
    value = np.float64(value)
    assert kernels.quick_log(value) == pytest.approx(np.log(value), rel=1e-15, abs=1e-16)
    for x in (0.3, 1.0, 7.7):
        assert kernels.log_ratio(np.float64(x), value) == pytest.approx(
            np.log(x / value), rel=1e-14, abs=2e-16
        )
    power = np.log(value)
    assert kernels.quick_exp(power) == pytest.approx(np.exp(power), rel=1e-14)


@pytest.mark.parametrize("k", [1, 2, 4, 5, 8, 11])
def test_products_of_one_row_and_of_two(k, rng):
    kernels = plain(NEWTON)
    rows, H, out = rng.random((5, k)), rng.random((k, 6)), np.full((4, 6), 9.0)
    kernels.times(rows, 3, H, out, 1)
    np.testing.assert_allclose(out[1], rows[3] @ H)
    kernels.times_pair(rows, 1, H, out, 2)
    np.testing.assert_allclose(out[2:], rows[1:3] @ H)
    assert (out[0] == 9.0).all()


def test_derivatives_and_penalties_of_a_row(rng):
    x, v = rng.poisson(2.0, (3, 5)).astype(float), rng.random((2, 5))
    slope, curvature = np.zeros((4, 5)), np.zeros((4, 5))
    plain(NEWTON).terms(x, 2, v, 1, 0.4, slope, curvature, 3)
    model = np.maximum(v[1], 0.4)
    np.testing.assert_allclose(slope[3], 1 - x[2] / model)
    np.testing.assert_allclose(curvature[3], x[2] / model**2)
    descent, factor = plain(DESCENT), rng.random((3, 4))
    expected = 2.0 * np.sum(0.3 * factor[1] + 0.5 * 0.7 * factor[1] ** 2)
    assert descent.penalty_of(factor, 1, 2.0, 0.3, 0.7) == pytest.approx(expected)
    assert descent.penalty_of(factor, 1, 2.0, 0.3, 0.0) == pytest.approx(2.0 * 0.3 * factor[1].sum())
    assert descent.penalty_of(factor, 1, 2.0, 0.0, 0.7) == pytest.approx(0.7 * np.sum(factor[1] ** 2))
    assert descent.penalty_of(factor, 1, 2.0, 0.0, 0.0) == 0.0
    target = np.zeros((3, 4))
    descent.copy_to(target, factor)
    np.testing.assert_array_equal(target, factor)


@pytest.mark.parametrize("change", [-0.9, -0.5, 0.0, 1.0, 3.0, 9.0, 99.0])
@pytest.mark.parametrize("most", [0.5, 1.0, 2.0])
def test_the_factor_of_a_step_is_near_the_minimum_of_the_parabola(change, most):
    # A parabola with slope -1 at 0 and `change` at 1 is lowest at 1 / (2 (change + 1)).
    found = plain(DESCENT).factor_of(-1.0, change, most)
    lowest = 1.0 / (2.0 * (change + 1.0))
    allowed = [power for power in (0.25, 0.5, 1.0, 2.0) if power <= most and 0.7 * power <= lowest]
    assert found == max(allowed, default=0.125)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("compiled", [True, False])
def test_divergences_of_rows_and_columns(beta, compiled, rng):
    kernels = plain(BETA) if compiled else array_api
    x, v = 0.1 + rng.random((4, 5)), rng.random((4, 5))
    if beta > 0:
        x[1, 2] = 0.0
    low, weights, of_rows = 0.2, rng.random((4, 5)), rng.random(4)
    model = v if beta == 2.0 else np.maximum(v, low)
    entries = divergence(x, model, beta)
    np.testing.assert_allclose(kernels.row_losses(x, v, beta, low), entries.sum(axis=1), atol=1e-13)
    np.testing.assert_allclose(
        kernels.row_losses(x, v, beta, low, weights), (weights * entries).sum(axis=1), atol=1e-13
    )
    np.testing.assert_allclose(
        kernels.row_losses(x, v, beta, low, weights[0]), (weights[0] * entries).sum(axis=1), atol=1e-13
    )
    np.testing.assert_allclose(kernels.column_losses(x, v, beta, low), entries.sum(axis=0), atol=1e-13)
    np.testing.assert_allclose(
        kernels.column_losses(x, v, beta, low, of_rows, weights), of_rows @ (weights * entries), atol=1e-13
    )
    assert kernels.row_losses(x.astype(np.float32), v.astype(np.float32), beta, low).dtype == np.float64
    if not compiled:
        mask = (weights > 0.5).astype(float)
        np.testing.assert_allclose(
            kernels.row_losses(x, v, beta, low, weights[0], mask),
            (mask * weights[0] * entries).sum(axis=1),
            atol=1e-13,
        )
        ratio, power = kernels.ratio_terms(x, v, beta, low, mask)
        model = np.maximum(v, low)
        np.testing.assert_allclose(ratio, x * model ** (beta - 2))
        np.testing.assert_allclose(power, mask * model ** (beta - 1))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("compiled", [True, False])
def test_terms_of_multiplicative_and_newton_steps(beta, compiled, rng):
    kernels = plain(BETA) if compiled else array_api
    x, v, low = 0.1 + rng.random((4, 5)), rng.random((4, 5)), 0.2
    model, weights = np.maximum(v, low), rng.random((4, 5))
    if beta != 2.0:
        ratio, power = kernels.ratio_terms(x, v.copy(), beta, low)
        np.testing.assert_allclose(ratio, x * model ** (beta - 2))
        assert power is None if beta == 1.0 else np.allclose(power, model ** (beta - 1))
    convex = 1 <= beta <= 2
    for given in (None, np.array([True, False, True, False])):
        exact = np.full(4, convex) if given is None or convex else given
        slope, curvature = kernels.newton_terms(x, v, weights, beta, low, exact=given)
        np.testing.assert_allclose(slope, weights * (model - x) * model ** (beta - 2), atol=1e-13)
        true = (beta - 1) * model ** (beta - 2) + (2 - beta) * x * model ** (beta - 3)
        expected = np.where(exact[:, None], true, model ** (beta - 2))
        np.testing.assert_allclose(curvature, weights * expected, atol=1e-12)
    if 1 < beta < 2:
        _, curvature = kernels.newton_terms(x, v, None, beta, low, curvature_bound=0.6)
        bounded = np.minimum(model ** (beta - 2), 0.6 ** (beta - 2))
        np.testing.assert_allclose(curvature, (beta - 1) * bounded + (2 - beta) * x * model ** (beta - 3))


@pytest.mark.parametrize("beta", BETAS)
def test_a_line_search_lowers_the_loss_of_every_row(beta, rng):
    kernels = plain(BETA)
    x, v, low = 0.1 + rng.random((6, 5)), 0.2 + rng.random((6, 5)), 1e-3
    weights, linear, quadratic = 0.5 + rng.random((6, 5)), 0.01 * rng.random(6), 0.01 * rng.random(6)
    slope = weights * (v - x) * v ** (beta - 2)
    d = -slope * 10.0 ** rng.uniform(-2, 0.5, (6, 1))
    d[5] = -d[5]  # uphill: it stays
    slopes = np.sum(slope * d, axis=1) + linear
    before = v.copy()

    def losses(model, t):
        entries = weights * divergence(x, np.maximum(model, low), beta)
        return entries.sum(axis=1) + linear * t + 0.5 * quadratic * t * t

    moved, steps = kernels.line_search(x, v, d, weights, beta, low, linear, quadratic, slopes, 30)
    assert moved is v
    np.testing.assert_allclose(v, before + steps[:, None] * d)
    down = slopes < 0
    assert (steps[~down] == 0.0).all()
    assert not down[5]
    assert (losses(v, steps) < losses(before, 0.0))[down].all()
    assert ((steps > 0) & (steps <= 1))[down].all()
    for t in (0.0, 0.3):
        for i in range(6):
            model = np.maximum(before[i] + t * d[i], low)
            expected = np.sum(weights[i] * d[i] * (model - x[i]) * model ** (beta - 2))
            given = None if beta == 1.0 else beta
            found = kernels.slope_along(x[i], before[i], d[i], t, weights[i], given, low)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("size", [0.5, 4.0])
@pytest.mark.parametrize("tries", [1, 2, 6])
def test_line_searches_are_those_of_the_array_code(beta, size, tries, rng):
    x, v, low = 0.1 + rng.random((8, 5)), 0.2 + rng.random((8, 5)), 1e-3
    slope = (v - x) * v ** (beta - 2)
    d = np.maximum(-size * slope, -0.9 * v)
    linear, quadratic = 0.3 * rng.standard_normal(8), 9.0 * rng.random(8)
    slopes = np.sum(slope * d, axis=1) + linear
    given = d, None, beta, low, linear, quadratic, slopes, tries
    expected, steps = array_api.line_search(x, v, *given)
    moved, found = plain(BETA).line_search(x, v.copy(), *given)
    np.testing.assert_allclose(found, steps, rtol=1e-9)
    np.testing.assert_allclose(moved, expected, rtol=1e-9)


def test_the_gain_of_itakura_saito_is_a_difference_of_losses(rng):
    x, v, d, weights = (0.1 + rng.random(7) for _ in range(4))
    found = plain(BETA).itakura_saito_gain(x, v, d, 0.4, weights, 1e-3)
    expected = np.sum(weights * (divergence(x, v, 0.0) - divergence(x, v + 0.4 * d, 0.0)))
    assert found == pytest.approx(expected)


def test_what_compiled_code_reads():
    kernels = plain(BETA)
    assert kernels.is_supported(np.ones((2, 2)))
    assert not kernels.is_supported(np.ones((2, 2)), np.ones((2, 2)))
    assert not kernels.is_supported([[1.0]])


def test_factors_of_subsets(rng):
    kernels = plain(SIMPLEX)
    A = rng.random((9, 5))
    gram, subset = A.T @ A, np.array([3, 0, 4, 0, 0])
    lower, inverse = np.zeros((5, 5)), np.zeros(5)
    assert kernels.factored(gram, subset, 3, lower, inverse)
    part = gram[np.ix_(subset[:3], subset[:3])]
    full = np.tril(lower[:3, :3], -1) + np.diag(1.0 / inverse[:3])
    np.testing.assert_allclose(full @ full.T, part)
    values = rng.random(3)
    found = values.copy()
    kernels.solve(lower, inverse, 3, found)
    np.testing.assert_allclose(part @ found, values)
    assert not kernels.factored(np.ones((5, 5)), np.arange(5), 2, lower, inverse)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("warm", [False, True])
def test_weights_on_the_simplex_meet_the_optimality_conditions(k, warm, rng):
    points = rng.random((k, 8))
    gram, cross = points @ points.T + 0.1, rng.standard_normal((20, 8)) @ points.T
    start = rng.dirichlet(np.ones(k), 20) * (rng.random((20, k)) < 0.5) if warm else None
    found, unsolved = plain(SIMPLEX).simplex_pivoting(start, gram, cross, 100)
    assert not unsolved.any()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    gradient = found @ gram - cross
    level = np.sum(gradient * found, axis=1, keepdims=True)
    assert (gradient - level >= -1e-8).all()  # none of the others would be better
    np.testing.assert_allclose(np.where(found > 1e-10, gradient - level, 0.0), 0.0, atol=1e-8)
    _, unsolved = plain(SIMPLEX).simplex_pivoting(start, gram, cross, 0)
    assert unsolved.all()


def test_single_exchanges_follow_three_without_progress(monkeypatch):
    # Whatever the support, all signs are wrong: all components are exchanged once, three times more without
    # progress, and from then on the last one alone.
    kernels, seen = plain(SIMPLEX), []

    def wrong(_, __, passive, n_passive, *rest):
        seen.append(set(passive[:n_passive].tolist()))
        x, slope = rest[-2:]
        x[:], slope[:] = -1.0, -1.0
        return True

    monkeypatch.setattr(kernels, "primal", wrong)
    monkeypatch.setattr(kernels, "dual", wrong)
    _, unsolved = kernels.simplex_pivoting(np.array([[1.0, 0.0, 0.0]]), np.eye(3), np.zeros((1, 3)), 7)
    assert unsolved.all()
    assert seen == [{0}, {1, 2}, {0}, {1, 2}, {0}, {0, 2}, {0}]


def test_the_equations_of_either_set_give_the_same_weights(rng):
    kernels, k = plain(SIMPLEX), 5
    points = rng.random((k, 8))
    gram, target = points @ points.T, rng.random(k)
    inverse = np.linalg.inv(gram)
    sums = inverse.sum(axis=1)
    projector = inverse - np.outer(sums, sums) / sums.sum()
    full = target @ projector + sums / sums.sum()
    passive, active = np.array([4, 1, 2, 0, 0]), np.array([0, 3, 0, 0, 0])
    room = lambda: (np.zeros((k, k)), np.zeros(k))  # noqa: E731
    one, two, slopes, others = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k)
    assert kernels.primal(gram, target, passive, 3, active, 2, *room(), np.zeros(k), np.zeros(k), one, slopes)
    twins = np.array([1, 1, 0, 0, 0])
    assert not kernels.primal(
        gram, target, twins, 2, active, 2, *room(), np.zeros(k), np.zeros(k), two, others
    )
    lower, roots = room()
    assert kernels.dual(projector, full, passive, 3, active, 2, lower, roots, np.zeros(k), two, others)
    np.testing.assert_allclose(one, two, atol=1e-9)
    np.testing.assert_allclose(slopes[[0, 3]], others[[0, 3]], atol=1e-9)
    assert one.sum() == pytest.approx(1.0)
    gradient = gram @ one - target
    assert np.ptp(gradient[[4, 1, 2]]) < 1e-9
    np.testing.assert_allclose(slopes[[0, 3]], gradient[[0, 3]] - gradient[4], atol=1e-9)
    rough = two + np.array([0.0, 1e-4, 1e-4, 0.0, -2e-4])
    kernels.refined(
        gram, projector, target, passive, 3, active, 2, lower, roots, np.zeros(k), np.zeros(k), rough
    )
    np.testing.assert_allclose(rough, one, atol=1e-9)
