"""The relative error beside the Eckart-Young lower bound, in words and numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import NMF

from nonneg.certificates import svd_lower_bound as module
from nonneg.certificates.svd_lower_bound import eckart_young_statement, relative_frobenius_error
from nonneg.data import as_data_matrix

CONTAINERS = {
    "numpy": lambda X: X,
    "csr": sp.csr_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(17, -1)),
}


@pytest.fixture
def fit(low_rank):
    model = NMF(4, init="nndsvda", max_iter=2000, tol=1e-6)
    W = model.fit_transform(low_rank)
    return low_rank, W, np.ascontiguousarray(model.components_.T)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_good_fit_is_close_to_the_bound(container, fit):
    X, W, Ht = fit
    data = as_data_matrix(CONTAINERS[container](X))
    statement = eckart_young_statement(data, data.to_sample_array(W), data.to_device(Ht))
    values = np.linalg.svd(X, compute_uv=False)
    bound = np.sqrt(np.sum(values[4:] ** 2) / np.sum(values**2))
    error = np.linalg.norm(X - W @ Ht.T) / np.linalg.norm(X)
    assert statement.quantities["lower_bound"] == pytest.approx(bound, rel=1e-6)
    assert statement.quantities["relative_error"] == pytest.approx(error, rel=1e-12)
    assert statement.number == pytest.approx(error / bound, rel=1e-6)
    assert statement.number >= 1.0
    assert statement.verdict == ("holds" if error <= 1.1 * bound else "fails")
    assert "no factorization of rank 4 has a relative error below" in statement.sentence


def test_a_bad_fit_is_said_to_be_one(fit):
    X, W, Ht = fit
    statement = eckart_young_statement(as_data_matrix(X), W * 1.1, Ht)
    assert statement.verdict == "fails"
    assert "within 10% counts as close" in statement.sentence


def test_weights_count_in_both_numbers(fit, rng):
    X, W, Ht = fit
    weights = rng.integers(1, 4, size=60)
    first = eckart_young_statement(as_data_matrix(X, weights=weights.astype(float)), W, Ht)
    repeated = as_data_matrix(np.repeat(X, weights, axis=0))
    second = eckart_young_statement(repeated, np.repeat(W, weights, axis=0), Ht)
    for name in ("relative_error", "lower_bound_estimate", "norm"):
        assert first.quantities[name] == pytest.approx(second.quantities[name], rel=1e-9)


@pytest.mark.parametrize("container", ["numpy", "dask"])
def test_missing_entries_make_it_not_verifiable(container, fit, rng):
    X, W, Ht = fit
    data = as_data_matrix(CONTAINERS[container](X), mask=rng.random(X.shape) < 0.9)
    statement = eckart_young_statement(data, W, Ht)
    assert statement.verdict == "not verifiable"
    assert statement.number is None
    assert "Entries are missing" in statement.sentence


def test_a_bound_of_zero_says_nothing_but_of_an_exact_fit(rng):
    W, Ht = rng.random((9, 3)), rng.random((7, 3))
    exact = eckart_young_statement(as_data_matrix(W @ Ht.T), W, Ht)
    assert exact.verdict == "holds"
    assert "X is reproduced" in exact.sentence
    X = rng.random((9, 3))
    statement = eckart_young_statement(as_data_matrix(X), W, Ht[:3])
    assert statement.verdict == "not verifiable"
    assert "says nothing" in statement.sentence


def test_the_relative_error_of_missing_entries_is_of_the_observed_ones(fit, rng):
    X, W, Ht = fit
    mask = rng.random(X.shape) < 0.7
    data = as_data_matrix(np.where(mask, X, np.nan), mask=mask)
    expected = np.linalg.norm((X - W @ Ht.T)[mask]) / np.linalg.norm(X[mask])
    assert relative_frobenius_error(data, W, Ht) == pytest.approx(expected, rel=1e-12)


def test_the_relative_error_of_zeros_is_defined():
    data = as_data_matrix(np.zeros((4, 3)))
    assert relative_frobenius_error(data, np.zeros((4, 1)), np.zeros((3, 1))) == 0.0
    assert relative_frobenius_error(data, np.ones((4, 1)), np.ones((3, 1))) == np.inf


def test_a_bound_above_the_error_of_the_fit_is_not_stated(fit, monkeypatch):
    X, W, Ht = fit
    bound = module.eckart_young_bound(as_data_matrix(X), 4)._replace(relative_error=0.9)
    monkeypatch.setattr(module, "eckart_young_bound", lambda data, k: bound)
    statement = eckart_young_statement(as_data_matrix(X), W, Ht)
    assert statement.verdict.name == "NOT_VERIFIABLE"
    assert "nothing is claimed" in statement.sentence


def test_the_distance_from_the_bound_is_said_in_percent(fit):
    X, W, Ht = fit
    statement = eckart_young_statement(as_data_matrix(X), W * 1.1, Ht)
    assert f"The error is {100 * (statement.number - 1):.3g}% above that lower bound" in statement.sentence
    assert "within 10% counts as close" in statement.sentence
    error, bound = statement.quantities["relative_error"], statement.quantities["lower_bound"]
    assert f"The relative error is {error:.4g}; no factorization of rank 4" in statement.sentence
    printed = float(re.search(r"has a relative error below (\S+) ", statement.sentence)[1])
    assert bound * (1 - 1e-3) < printed <= bound  # rounded down: what is printed is a bound as well
    assert statement.quantities["norm"] == pytest.approx(np.linalg.norm(X))
    assert statement.quantities["rank"] == 4


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-8), (np.float32, 1e-2)])
def test_small_errors_are_summed_and_others_are_roots(dtype, digits, monkeypatch):
    data = as_data_matrix(np.ones((3, 2), dtype=dtype))
    monkeypatch.setattr(module, "relative_frobenius_error", lambda data, W, Ht: -1.0)
    assert module.relative_error_from_square(data, None, None, 1.01 * digits) == np.sqrt(1.01 * digits)
    assert module.relative_error_from_square(data, None, None, 0.99 * digits) == -1.0
    assert module.rounding_error(data) == pytest.approx(np.sqrt(np.finfo(dtype).eps))


def test_squares_of_weighted_and_observed_entries_are_summed_once(rng):
    X, W, Ht = rng.random((7, 4)), rng.random((7, 2)), rng.random((4, 2))
    mask, weights = rng.random((7, 4)) < 0.7, rng.random(7)
    squares = (X - W @ Ht.T) ** 2
    assert module.squared_residual(as_data_matrix(X), W, Ht) == pytest.approx(squares.sum())
    data = as_data_matrix(np.where(mask, X, np.nan), mask=mask, weights=weights)
    expected = np.sum(np.where(mask, squares, 0.0) * weights[:, None])
    assert module.squared_residual(data, W, Ht) == pytest.approx(expected)
