"""Single steps of rows under the Kullback-Leibler divergence, not compiled, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from tests.kernels.plain import plain

COORDINATE = "nonneg.kernels.beta_products.kl_coordinate"
LOW = 1e-250


def swept(x, h, w, cost, l2, components):
    """Return the row after one sweep over some components, and the weighted sum of the changes."""
    w, change = w.copy(), 0.0
    for a in components:
        wh, t = h @ w, w[a]
        g = cost[a] + l2 * t - np.sum(x * h[:, a] / wh)
        curvature = l2 + np.sum(x * h[:, a] ** 2 / wh**2)
        if g < 0:
            w[a] = t - g / curvature  # Newton's step for g
        elif t > 0:
            w[a] = t * t * curvature / (g + t * curvature)  # and for t g(t)
            at_zero = cost[a] - np.sum(x * h[:, a] / np.maximum(wh - t * h[:, a], LOW))
            if t * curvature <= g and at_zero >= 0:
                w[a] = 0.0
        change += abs(w[a] - t) * cost[a]
    return w, change


def gradient_of(x, h, w, cost, l2):
    return cost + l2 * w - h.T @ (x / (h @ w))


def residual_of(x, h, w, cost, l2):
    """Return the KKT residual as `kl_passes` defines it."""
    g = gradient_of(x, h, w, cost, l2)
    counted = (w > 0) | (g < 0)
    lowest = np.max(np.where(counted, -g / (cost + l2 * w), 0.0), initial=0.0)
    return max(lowest, np.sum(w * np.abs(g)) / x.sum())


def row_of(rng, n=6, k=4):
    """Return a row whose sweep meets all cases: a component rises, falls, becomes zero, and stays zero."""
    h = 0.05 + rng.random((n, k))
    w = np.array([0.2, 0.9, 0.05, 0.0])[:k]
    x = h @ w * (0.7 + 0.6 * rng.random(n))
    cost = h.sum(axis=0) * np.array([0.5, 1.2, 3.0, 9.0])[:k]
    return x, h, w, cost


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_a_sweep_takes_newton_steps_of_single_components(l2, rng):
    x, h, w, cost = row_of(rng)
    active = np.array([2, 0, 1, 3])
    expected, total = swept(x, h, w, cost, l2, active)
    assert expected[0] > w[0]
    assert 0 < expected[1] < w[1]
    assert expected[2] == expected[3] == 0.0
    found, wh = w.copy(), np.append(h @ w, 9.0)
    inverse = 1.0 / wh
    columns = np.ascontiguousarray(np.vstack([h, np.ones(4)]).T[active])
    change = plain(COORDINATE).sweep_row(
        np.append(x, 9.0), wh, inverse, columns, active, 4, cost, l2, found, 6, LOW
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert change == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(wh, [*(h @ expected), 9.0])  # what is behind the row stays
    np.testing.assert_allclose(inverse, 1.0 / wh)


def test_a_component_without_curvature_stays():
    w, one = np.array([0.5]), np.ones(3)
    given = one, one, one, np.zeros((1, 3)), np.array([0]), 1, np.array([-1.0]), 0.0, w, 3, LOW
    assert plain(COORDINATE).sweep_row(*given) == 0.0
    assert w[0] == 0.5


def newton_reference(x, h, w, cost, l2):
    """Return the row after a Newton step of its positive components within w >= 0."""
    at = w > 0
    columns, wh = h[:, at], h @ w
    hessian = (columns * (x / wh**2)[:, None]).T @ columns + l2 * np.eye(at.sum())
    slope = -gradient_of(x, h, w, cost, l2)[at]
    root = scipy.linalg.cholesky(hessian, lower=True)
    target = scipy.linalg.solve_triangular(root, hessian @ w[at] + slope, lower=True)
    step = scipy.optimize.nnls(root.T, target)[0] - w[at]
    moved, down, t = columns @ step, slope @ step, 1.0
    for _ in range(4):
        up = step @ (cost[at] + l2 * w[at]) + t * l2 * step @ step - np.sum(x * moved / (wh + t * moved))
        if up <= 0:
            break
        t *= down / (down + up)
        if up <= 2 * down:
            break
    new = w.copy()
    new[at] += t * step
    return new, t


@pytest.mark.parametrize("l2", [0.0, 0.4])
@pytest.mark.parametrize("case", ["near", "far", "zeros"])
def test_a_newton_step_is_that_of_the_quadratic_model(case, l2, rng):
    n, k = 12, 5
    h, w = 0.05 + rng.random((n, k)), np.array([0.4, 0.0, 0.7, 0.3, 0.6])
    if case == "zeros":  # the model makes some of the components zero
        target = np.array([1.2, 0.0, 0.0, 0.0, 0.5])
    else:
        target = w * (1.0 + (0.02 if case == "near" else 3.0) * rng.random(k))
    x, cost = h @ target, h.sum(axis=0)
    expected, t = newton_reference(x, h, w, cost, l2)
    if case == "zeros":
        assert (np.count_nonzero(expected) < 4) or t < 1
    found, wh, active = w.copy(), h @ w, np.array([4, 0, 1, 3, 2])
    inverse, columns = 1.0 / wh, np.ascontiguousarray(h.T[active])
    plain(COORDINATE).newton_row(
        x, wh, inverse, columns, active, k, cost, l2, found, n, LOW,
        np.full((k, k), 9.0), np.full(k, 9.0), np.zeros(k, dtype=int), np.full((3, k + 1, k), 9.0),
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(wh, h @ expected, rtol=1e-7)
    np.testing.assert_allclose(inverse, 1.0 / wh)
    assert found[1] == 0.0


@pytest.mark.parametrize("x", [0.0, 1.0])
def test_no_newton_step_without_a_model_or_a_slope(x, rng):
    # Without data the Hessian is zero; where data and model agree the gradient is.
    h, w = np.abs(rng.standard_normal((2, 5))), np.array([0.4, 0.7])
    wh = w @ h
    found, model = w.copy(), wh.copy()
    plain(COORDINATE).newton_row(
        x * wh, model, 1.0 / wh, h, np.array([0, 1]), 2, h.sum(axis=1), 0.0, found, 5, LOW,
        np.zeros((2, 2)), np.zeros(2), np.zeros(2, dtype=int), np.zeros((3, 3, 2)),
    )  # fmt: skip
    np.testing.assert_allclose(found, w, rtol=1e-12)
    np.testing.assert_allclose(model, wh, rtol=1e-12)


def passes(X, factor, other, sums=None, order=None, **options):
    csr = sp.csr_array(X)
    given = {"l1": 0.0, "l2": 0.0, "max_rounds": 1, "max_sweeps": 1, "shrink": 0.0, "tol": 0.0, "unit": 1.0}
    given |= options
    sums = other.sum(axis=0) if sums is None else sums
    return plain(COORDINATE).kl_passes(
        (csr.indptr, csr.indices, csr.data), factor, other, sums, order, *given.values()
    )


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.2)])
@pytest.mark.parametrize(("rounds", "sweeps", "shrink"), [(1, 1, 0.0), (2, 1, 0.0), (2, 3, 0.0), (1, 9, 0.3)])
@pytest.mark.parametrize("order", [None, [3, 1]])
def test_rounds_are_sweeps_over_the_components_that_may_move(l1, l2, rounds, sweeps, shrink, order, rng):
    X, other = rng.poisson(1.5, (6, 8)).astype(float), 0.05 + rng.random((8, 4))
    X[:, 0] += 1.0
    factor = 0.1 + rng.random((6, 4))
    factor[1, 1], factor[2, 3] = 0.0, 0.0
    found, logs, residuals = passes(
        X, factor, other, order=order, l1=l1, l2=l2, max_rounds=rounds, max_sweeps=sweeps, shrink=shrink,
        unit=3.0,
    )  # fmt: skip
    cost, which = other.sum(axis=0) + l1, range(4) if order is None else order
    for i in range(6):
        at = X[i] > 0
        x, h, w = X[i, at], other[at], factor[i]
        for _ in range(rounds):
            g = gradient_of(x, h, w, cost, l2)
            last = residual_of(x, h[:, which], w[which], cost[which], l2) if order is None else None
            active = [a for a in which if w[a] > 0 or g[a] < 0]
            limit = None
            for _ in range(sweeps):
                w, change = swept(x, h, w, cost, l2, active)
                limit = shrink * change if limit is None else limit
                if change <= limit:
                    break
        np.testing.assert_allclose(found[i], w, rtol=1e-9, atol=1e-12)
        assert logs[i] == pytest.approx(np.sum(x * np.log(h @ w / 3.0)))
        if order is None:
            assert residuals[i] == pytest.approx(last)


def test_a_residual_below_the_tolerance_ends_a_row(rng):
    X, other, factor = 1 + rng.poisson(2.0, (4, 6)), 0.1 + rng.random((6, 2)), 0.1 + rng.random((4, 2))
    X, cost = X.astype(float), other.sum(axis=0)
    _, _, residuals = passes(X, factor, other, max_rounds=2, tol=1e-300)
    now = [residual_of(X[i], other, factor[i], cost, 0.0) for i in range(4)]
    assert (residuals < now).all()  # at the end, not at the beginning of the last round
    found, _, same = passes(X, factor, other, max_rounds=5, tol=max(now) * 1.001)
    np.testing.assert_array_equal(found, factor)
    np.testing.assert_allclose(same, now)


@pytest.mark.parametrize("order", [None, [1]])
def test_newton_steps_double_the_digits(order, rng):
    X, other = 1 + rng.poisson(2.0, (5, 9)).astype(float), 0.1 + rng.random((9, 3))
    _, _, residuals = passes(X, 0.1 + rng.random((5, 3)), other, order=order, max_rounds=9, tol=1e-12)
    assert residuals.max() <= 1e-12


def test_a_stored_zero_needs_no_model():
    other, factor = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 0.0]])
    X = sp.csr_array((np.array([3.0, 0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    found, logs, _ = passes(X, factor, other, max_sweeps=0)
    np.testing.assert_array_equal(found, factor)
    assert logs[0] == pytest.approx(3.0 * np.log(3.0))


def test_rows_whose_model_is_zero_start_from_equal_parts(rng):
    other = 0.1 + rng.random((4, 3))
    other[3] = 0.0  # no component reaches this column: nothing can be done about it
    other[2, :2] = 0.0
    X = np.array([[2.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 5.0], [0.0, 0.0, 4.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    factor = np.zeros((4, 3))
    factor[2] = 1.0, 2.0, 0.0
    factor[3] = 1.0, 1.0, 1.0
    sums = other.sum(axis=0)
    found, _, _ = passes(X, factor, other, l1=0.5, max_sweeps=0)
    cost = sums.sum() + 3 * 0.5
    expected = np.array([[3.0 / cost] * 3, [0.0] * 3, np.array([1.0, 2.0, 0.0]) + 4.0 / cost, [1.0] * 3])
    np.testing.assert_allclose(found, expected)
    # Components that may not move neither help nor change.
    held, _, _ = passes(X, factor, other, order=[0, 1], max_sweeps=0)
    np.testing.assert_allclose(held[0], [3.0 / sums[:2].sum()] * 2 + [0.0])
    np.testing.assert_array_equal(held[1:], factor[1:])


def test_every_row_has_its_own_sums(rng):
    X, other = 1 + rng.poisson(2.0, (3, 5)).astype(float), 0.1 + rng.random((5, 2))
    factor, sums = 0.1 + rng.random((3, 2)), 1 + rng.random((3, 2))
    found, _, _ = passes(X, factor, other, sums)
    for i in range(3):
        np.testing.assert_allclose(found[i], swept(X[i], other, factor[i], sums[i], 0.0, [0, 1])[0])


@pytest.mark.parametrize("n_rows", [1, 70])
def test_all_rows_are_updated_wherever_the_parts_end(n_rows, rng):
    X = np.where(rng.random((n_rows, 6)) < 0.5, 0.0, 1.0)
    X[n_rows // 2] = 1.0
    other, factor = 0.1 + rng.random((6, 2)), 0.1 + rng.random((n_rows, 2))
    found, logs, residuals = passes(X, factor, other)
    assert np.isfinite(logs).all()
    assert np.isfinite(residuals).all()
    for i in (0, n_rows // 2, n_rows - 1):
        at = X[i] > 0
        expected, _ = swept(X[i, at], other[at], factor[i], other.sum(axis=0), 0.0, [0, 1])
        np.testing.assert_allclose(found[i], expected, rtol=1e-9)
