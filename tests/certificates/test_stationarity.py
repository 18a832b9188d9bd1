"""The KKT residual: zero exactly at stationary points, without units, the same for every container."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from nonneg.certificates.stationarity import (
    frobenius_kkt_residuals,
    gram_residual,
    normalized,
    ratio_residual,
    stationarity_statement,
)
from nonneg.data import as_data_matrix
from nonneg.losses.penalties import Penalties
from nonneg.solvers.certificate import certify

CONTAINERS = {
    "numpy": lambda X: X,
    "csr": sp.csr_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "array_api_strict": lambda X: pytest.importorskip("array_api_strict").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(7, -1)),
}


def direct(X, W, Ht, weights=None, l1=0.0, l2=0.0):
    """The definition, entry by entry."""
    weights = np.ones(len(X)) if weights is None else weights
    total = 0.0
    curvature = np.sum(Ht**2, axis=0) + l2
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            slope = (W[i] @ Ht.T - X[i]) @ Ht[:, j] + l1 + l2 * W[i, j]
            total += weights[i] * curvature[j] * min(W[i, j], slope / curvature[j]) ** 2
    return np.sqrt(total / np.sum(weights[:, None] * X**2))


@pytest.fixture
def problem(rng):
    return rng.gamma(1.0, size=(20, 9)), rng.gamma(1.0, size=(20, 3)), rng.gamma(1.0, size=(9, 3))


@pytest.mark.parametrize("container", CONTAINERS)
def test_it_is_the_definition_for_every_container(container, problem, rng):
    X, W, Ht = problem
    weights = rng.random(20) + 0.5
    data = as_data_matrix(CONTAINERS[container](X), weights=weights)
    left, right = frobenius_kkt_residuals(
        data, data.to_sample_array(W), data.to_device(Ht), Penalties(l1_W=0.3, l2_W=0.7)
    )
    assert left == pytest.approx(direct(X, W, Ht, weights, 0.3, 0.7), rel=1e-12)
    root = np.sqrt(weights)[:, None]
    assert right == pytest.approx(direct((X * root).T, Ht, W * root), rel=1e-12)


def test_a_fit_by_least_squares_is_measured_by_its_gradient(problem):
    X, W, Ht = problem
    data = as_data_matrix(X)
    (found,) = certify(data, W, Ht, beta=2.0, penalties=Penalties(), free=None)
    values = (found.quantities["residual_W"], found.quantities["residual_H"])
    assert values == pytest.approx(frobenius_kkt_residuals(data, W, Ht, Penalties()), rel=1e-12)


def test_it_is_zero_for_the_minimiser_of_each_factor(problem):
    X, _, Ht = problem
    W = np.array([nnls(Ht, row)[0] for row in X])
    left, right = frobenius_kkt_residuals(as_data_matrix(X), W, Ht, Penalties())
    assert (W == 0).any()
    assert left < 1e-12
    assert right > 1e-3
    Ht = np.array([nnls(W, column)[0] for column in X.T])
    assert frobenius_kkt_residuals(as_data_matrix(X), W, Ht, Penalties())[1] < 1e-12


def test_a_zero_with_a_descent_direction_counts(problem):
    X, _, Ht = problem
    W = np.array([nnls(Ht, row)[0] for row in X])
    i, j = np.argwhere(W > 0.1)[0]
    W[i, j] = 0.0
    assert frobenius_kkt_residuals(as_data_matrix(X), W, Ht, Penalties())[0] > 1e-3


@given(power=st.integers(-6, 6), scales=st.lists(st.integers(-4, 4), min_size=3, max_size=3))
@settings(max_examples=20, deadline=None)
def test_it_has_no_units(power, scales):
    rng = np.random.default_rng(5)
    X, W, Ht = rng.random((10, 6)), rng.random((10, 3)), rng.random((6, 3))
    D = 2.0 ** np.array(scales)
    first = frobenius_kkt_residuals(as_data_matrix(X), W, Ht, Penalties())
    second = frobenius_kkt_residuals(as_data_matrix(X * 4.0**power), W * D * 4.0**power, Ht / D, Penalties())
    np.testing.assert_allclose(second, first, rtol=1e-10)


def test_weights_equal_repetition(problem, rng):
    X, W, Ht = problem
    weights = rng.integers(1, 4, size=20)
    first = frobenius_kkt_residuals(as_data_matrix(X, weights=weights.astype(float)), W, Ht, Penalties())
    repeated = as_data_matrix(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(
        first, frobenius_kkt_residuals(repeated, np.repeat(W, weights, axis=0), Ht, Penalties())
    )


def test_empty_components_and_frozen_ones_have_nothing_to_meet(problem):
    X, W, Ht = problem
    Ht[:, 1] = 0.0
    W[:, 1] = 0.0
    assert np.isfinite(frobenius_kkt_residuals(as_data_matrix(X), W, Ht, Penalties())).all()
    _, free = frobenius_kkt_residuals(as_data_matrix(X), W, Ht, Penalties())
    _, frozen = frobenius_kkt_residuals(
        as_data_matrix(X), W, Ht, Penalties(), frozen=np.array([True, True, True])
    )
    assert free > 0
    assert frozen == 0


def test_a_matrix_of_zeros_is_no_special_case():
    data = as_data_matrix(np.zeros((4, 3)))
    assert frobenius_kkt_residuals(data, np.zeros((4, 2)), np.zeros((3, 2)), Penalties()) == (0.0, 0.0)
    assert frobenius_kkt_residuals(data, np.ones((4, 2)), np.ones((3, 2)), Penalties()) == (np.inf, np.inf)


def beta_parts(X, W, Ht, beta):
    """The nonnegative parts of the derivative of the beta divergence with respect to W."""
    model = W @ Ht.T
    return (X * model ** (beta - 2)) @ Ht, model ** (beta - 1) @ Ht


def ratio(X, W, Ht, beta, **options):
    energy, scale = ratio_residual(np, W, *beta_parts(X, W, Ht, beta), **options)
    return normalized(float(energy), float(scale))


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_ratios_have_no_units_and_vanish_at_a_fit(beta, problem):
    X, W, Ht = problem
    D = np.array([0.1, 3.0, 20.0])
    first = ratio(X, W, Ht, beta)
    assert first > 0.05
    assert ratio(X * 7, W * D * 7, Ht / D, beta) == pytest.approx(first, rel=1e-10)
    assert ratio(W @ Ht.T, W, Ht, beta) < 1e-14


def test_multiplicative_updates_bring_the_ratio_residual_down_to_zero(problem):
    X, W, Ht = problem
    values = []
    for _ in range(4000):
        negative, positive = beta_parts(X, W, Ht, 1.0)
        W = W * negative / positive
        values.append(ratio(X, W, Ht, 1.0))
    assert values[-1] < 1e-3 * values[0]


def test_a_locked_zero_with_a_descent_direction_counts_in_the_ratio_residual(problem):
    X, W, Ht = problem
    X = W @ Ht.T
    W = W.copy()
    W[0, 0] = 0.0  # multiplicative updates cannot leave it
    assert ratio(X, W, Ht, 1.0) > 1e-3


def test_the_ratio_residual_of_blocks_adds_up(problem, rng):
    X, W, Ht = problem
    weights = rng.random(20)
    negative, positive = beta_parts(X, W, Ht, 1.0)
    options = {"column_means": W.mean(axis=0)}
    whole = ratio_residual(np, W, negative, positive, weights=weights, **options)
    parts = [
        ratio_residual(np, W[rows], negative[rows], positive[rows], weights=weights[rows], **options)
        for rows in (slice(0, 7), slice(7, 20))
    ]
    np.testing.assert_allclose(np.sum(parts, axis=0), whole)


def test_gram_residual_runs_on_every_namespace(xp, problem):
    X, W, Ht = (xp.asarray(array) for array in problem)
    energy = gram_residual(xp, W, Ht.T @ Ht, X @ Ht, frozen=xp.asarray([False, True, False]))
    assert float(energy) > 0


@pytest.mark.parametrize(
    ("residual", "verdict"), [(1e-5, "holds"), (1e-2, "fails"), (np.nan, "not verifiable")]
)
def test_the_statement_says_the_verdict(residual, verdict):
    statement = stationarity_statement(residual, 1e-6, loss="kullback-leibler")
    assert statement.name == "stationarity"
    assert statement.verdict == verdict
    assert statement.quantities["residual_H"] == 1e-6
    words = {
        "holds": "at most 0.001",
        "fails": "stopped before a stationary point",
        "not verifiable": "could not",
    }
    assert words[verdict] in statement.sentence
