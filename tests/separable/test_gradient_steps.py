"""Steps of FastGradient, its weight and its points against plain formulas, and the choice of MERIT."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from nonneg.certificates.certificate import Verdict
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError
from nonneg.separable import css_nmf, fast_gradient
from nonneg.separable.merit.certificate import number_statements, selection_statements
from nonneg.separable.merit.choice import Fit, Selection


def onto_rows(matrix, weights):
    """Project rows onto {0 <= c_ii <= 1, 0 <= w_i c_ij <= w_j c_ii} by a search for the diagonal."""
    found = np.empty_like(matrix)
    for i, row in enumerate(matrix):

        def distance(d, row=row, i=i):
            limits = weights * d / weights[i]
            limits[i] = d
            inside = np.clip(row, 0.0, limits)
            inside[i] = d
            return ((inside - row) ** 2).sum(), inside

        low, high = 0.0, 1.0
        for _ in range(80):  # the distance is convex in the diagonal entry
            one, two = low + (high - low) / 3, high - (high - low) / 3
            if distance(one)[0] <= distance(two)[0]:
                high = two
            else:
                low = one
        found[i] = distance((low + high) / 2)[1]
    return found


def plain_steps(points, weights, prices, lam, n_steps):
    """Yield coefficients, objectives and momenta of an accelerated gradient that restarts."""
    n, size = len(points), np.linalg.norm(points, 2) ** 2
    C = ahead = np.zeros((n, n))
    momentum, objective, restarted = fast_gradient.FIRST_MOMENTUM, 0.5 * (points**2).sum(), False
    for _ in range(n_steps):
        gradient = points @ points.T @ ahead - points @ points.T
        new = onto_rows(ahead - (gradient + lam * np.diag(prices)) / size, weights)
        second = (math.sqrt(momentum**4 + 4 * momentum**2) - momentum**2) / 2
        pull = momentum * (1 - momentum) / (momentum**2 + second)
        value = 0.5 * ((points.T - points.T @ new) ** 2).sum() + lam * prices @ np.diag(new)
        change = np.abs(np.diag(new) - np.diag(C)).sum() / np.trace(new)
        if not restarted and value > objective:
            C, ahead, momentum, restarted = new, new, fast_gradient.FIRST_MOMENTUM, True
        else:
            C, ahead, momentum, restarted = new, new + pull * (new - C), second, False
        objective = value
        yield C, ahead, value, momentum, change, restarted


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_steps_are_those_of_an_accelerated_gradient(lam, rng):
    points = rng.random((7, 4)) + 0.1
    weights, prices = points.sum(axis=1), 1 + 0.1 * rng.random(7)
    step = fast_gradient._TraceStep(points, weights, prices, None)
    state = step.initial_state(lam)
    assert state.objective == pytest.approx(0.5 * (points**2).sum())
    for number, (C, ahead, value, momentum, change, restarted) in enumerate(
        plain_steps(points, weights, prices, lam, 8), 1
    ):
        state, measures = step(state)
        np.testing.assert_allclose(state.coefficients, C, atol=1e-5)
        np.testing.assert_allclose(state.ahead, ahead, atol=1e-5)
        np.testing.assert_allclose(state.fitted, points.T @ C, atol=1e-5)
        np.testing.assert_allclose(state.fitted_ahead, points.T @ ahead, atol=1e-5)
        assert (state.momentum, state.restarted, state.age) == (pytest.approx(momentum), restarted, number)
        assert measures["loss"] == pytest.approx(value)
        assert measures["diagonal_change"] == pytest.approx(change, rel=1e-3, abs=1e-5)
        assert measures["trace"] == pytest.approx(np.trace(C), abs=1e-5)
        assert measures["lam"] == lam
        # The search for the projection has half the digits: no difference adds up.
        parts = {"coefficients": C, "ahead": ahead, "fitted": points.T @ C, "fitted_ahead": points.T @ ahead}
        state = dataclasses.replace(state, objective=value, **parts)


@pytest.mark.parametrize(
    ("trace", "direction", "lam", "change"),
    [
        (1.0, 1, 0.9, 0.1),
        (3.0, -1, 1.1, 0.1),
        (2.0, -1, 1.1, 0.1),
        (1.0, -1, 0.95, 0.05),
        (3.0, 1, 1.05, 0.05),
    ],
)
def test_the_weight_follows_the_trace(trace, direction, lam, change, rng):
    step = fast_gradient._TraceStep(rng.random((3, 2)), np.ones(3), np.ones(3), 2.0)
    state = dataclasses.replace(step.initial_state(1.0), change=0.1, direction=direction)
    found = step.reweighted(state, trace)
    assert (found.lam, found.change) == (pytest.approx(lam), pytest.approx(change))
    assert found.direction == (1 if trace < 2.0 else -1)
    free = fast_gradient._TraceStep(rng.random((3, 2)), np.ones(3), np.ones(3), None)
    assert free.reweighted(state, trace) is state


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)])
@pytest.mark.parametrize("sparse", [False, True])
def test_compressed_points_have_the_same_products(shape, sparse, rng):
    X = rng.random(shape)
    points, weights = fast_gradient.compressed(as_data_matrix(sp.csr_array(X) if sparse else X))
    np.testing.assert_allclose(points @ points.T, X @ X.T, atol=1e-9)
    assert points.shape == (shape[0], min(shape))
    np.testing.assert_allclose(weights, X.sum(axis=1))


def test_points_of_zeros_are_compressed():
    points, weights = fast_gradient.compressed(as_data_matrix(np.zeros((2, 5))))
    np.testing.assert_array_equal(points @ points.T, np.zeros((2, 2)))
    np.testing.assert_array_equal(weights, 0)


def test_the_first_weight_balances_error_and_trace(rng):
    X, anchors, spread = rng.random((20, 6)), np.array([3, 8]), 1 + 0.1 * rng.random(20)
    error = sum(nnls(X[anchors].T, x)[1] ** 2 for x in X)
    expected = (error + 1e-3 * (X**2).sum()) / spread[anchors].sum()
    assert fast_gradient._balanced(as_data_matrix(X), 2, anchors, spread) == pytest.approx(expected)
    with pytest.raises(InvalidParameterError, match="starts from zero"):
        fast_gradient._balanced(as_data_matrix(X), 2, np.ones((2, 2)), spread)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 4), (np.float64, 8)])
def test_coefficients_that_do_not_fit_are_refused(dtype, size):
    data, needed = as_data_matrix(np.ones((100, 3), dtype=dtype)), 5.0 * 100 * 100 * size
    fast_gradient.check_memory(data, needed, "css-nmf")
    with pytest.raises(
        UnsupportedInputError, match=r"css-nmf would need 0.0 GiB for 100 samples \(5 arrays of 100"
    ):
        fast_gradient.check_memory(data, needed - 1, "css-nmf")


@pytest.mark.parametrize(
    ("age", "trace", "lam"),
    [(5, 3.0, 1.5), (5, 9.0, 2.0), (5, 0.5, 0.5), (4, 3.0, 1.0), (15, 3.0, 1.0), (10, 3.0, 1.5)],
)
def test_the_weight_of_a_squared_diagonal_follows_the_trace(age, trace, lam, monkeypatch, rng):
    step = css_nmf._SquaredDiagonalStep(rng.random((3, 2)), np.ones(3), target=2.0, lowest=0.1, last=10)
    state = dataclasses.replace(step.initial_state(1.0), age=age)
    monkeypatch.setattr(css_nmf.AcceleratedStep, "__call__", lambda self, state: (state, {"trace": trace}))
    found, _ = step(state)
    assert found.lam == pytest.approx(lam)
    assert (found.objective == math.inf) == (lam != 1.0)
    low, _ = step(dataclasses.replace(state, age=5, lam=0.01))
    assert low.lam == 0.1


def chosen(**facts):
    names = {field.name for field in dataclasses.fields(Selection)}
    return Selection(**{name: facts.get(name) for name in names} | {"anchors": np.arange(3)})


@pytest.mark.parametrize(("drop", "holds"), [(1e9, True), (1.0, False)])
def test_how_clear_the_number_of_anchors_is(drop, holds):
    (found,) = number_statements(chosen(drop=drop))
    end = "the number is clear." if holds else "nearby numbers fit as well."
    assert (
        found.sentence
        == f"The last of 3 anchors has a score {drop:.4g} times that of the next candidate: {end}"
    )
    assert (found.number, found.verdict) == (drop, Verdict.HOLDS if holds else Verdict.FAILS)
    assert found.quantities == {"k": 3}
    assert number_statements(chosen()) == []


@pytest.mark.parametrize("from_spa", [False, True])
def test_the_better_of_two_sets_of_anchors_is_named(from_spa):
    fits = {"merit_fit": Fit(4.0, 9.0), "spa_fit": Fit(1.0, 16.0), "fit": Fit(1.0 if from_spa else 4.0, 9.0)}
    (found,) = selection_statements(chosen(from_spa=from_spa, **fits))
    name = "SPA" if from_spa else "MERIT"
    assert found.sentence == (
        "The anchors of MERIT leave residuals of 2 (root mean square) and at most 3, those of SPA 1 and 4; "
        f"those of {name} are returned."
    )
    assert found.quantities == {
        "merit": 2.0, "merit_largest": 3.0, "spa": 1.0, "spa_largest": 4.0, "returned": name.lower(),
    }  # fmt: skip
    assert (found.number, found.threshold) == (1.0 if from_spa else 2.0, None)
    for missing in ("merit_fit", "spa_fit"):
        assert selection_statements(chosen(from_spa=from_spa, **(fits | {missing: None}))) == []
