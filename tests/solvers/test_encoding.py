"""Encoding: the best W for a given H, row by row."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse
from tests.contracts.cases import ALL, MAIN_CASES, PENALTIES, K, close, entries, initial, run
from tests.references.containers import MAIN_FORMS, as_container, plain
from tests.references.least_squares import kkt_violation, nonnegative_rows
from tests.references.objectives import objective

from nonneg import factorize
from nonneg.data import as_data_matrix
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.factorize import run_factorization, scaled_penalties
from nonneg.solvers.registry import SOLVERS

NONE = Penalties()
LOSSES = [2.0, 1.0, 1.5, 0.0]


def encoded(X, H, beta=2.0, penalties=NONE, **options):
    data = as_data_matrix(X, **options)
    return plain(encode(data, data.to_device(H.T), beta=beta, penalties=penalties)[0])


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_rows_are_the_minimisers_of_scipy_in_every_form(form):
    X, H = entries(2.0), initial()["H"]
    np.testing.assert_allclose(
        encoded(as_container(X, form), H), nonnegative_rows(H.T, X), rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize(("dtype", "limit"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("k", [2, 9, 30])
def test_the_kkt_residual_is_tiny(dtype, limit, k):
    rng = np.random.default_rng(k)
    X, H = rng.gamma(0.5, size=(300, 40)).astype(dtype), rng.gamma(0.3, size=(k, 40)).astype(dtype)
    W = encoded(X, H)
    assert W.dtype == dtype
    wide = H.astype(float)
    assert kkt_violation(W.astype(float), wide @ wide.T, X.astype(float) @ wide.T) <= limit


@pytest.mark.parametrize("kind", ["twins", "sum", "zero", "more than features", "tiny"])
def test_the_kkt_residual_is_tiny_for_dependent_components(kind):
    X = entries(2.0, (24, 4) if kind.startswith("more") else (24, 15))
    H = initial(X.shape, k=6)["H"]
    if kind == "twins":
        H[5] = H[0]
    elif kind == "sum":
        H[5] = H[0] + 2 * H[1]
    elif kind == "zero":
        H[5] = 0.0
    elif kind == "tiny":
        H[5] *= 1e-7
    W = encoded(X, H)
    assert kkt_violation(W, H @ H.T, X @ H.T) <= 1e-10
    best = objective(X, nonnegative_rows(H.T, X), H)
    assert objective(X, W, H) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("beta", LOSSES)
@pytest.mark.parametrize("penalized", [False, True])
def test_no_row_depends_on_its_neighbors(beta, penalized):
    X, H = entries(beta, (60, 15)), initial()["H"]
    penalties = Penalties(0.1, 0.2) if penalized else NONE
    whole = encoded(X, H, beta, penalties)
    order = np.random.default_rng(1).permutation(60)
    # To the tolerance of the encoder: the last digits of a product decide whether a row takes one more step.
    close(encoded(X[order], H, beta, penalties), whole[order], 1e-9)
    close(encoded(X[:7], H, beta, penalties), whole[:7], 1e-9)
    close(encoded(X[9:10], H, beta, penalties), whole[9:10], 1e-9)


@pytest.mark.parametrize("beta", LOSSES)
def test_weights_do_not_change_rows(beta):
    X, H = entries(beta), initial()["H"]
    penalties = Penalties(0.1, 0.2)
    expected = encoded(X, H, beta, penalties)
    close(encoded(X, H, beta, penalties, weights=np.arange(1.0, 25.0)), expected, 1e-12)


@pytest.mark.parametrize(
    ("beta", "penalties"), [(2.0, {}), (2.0, PENALTIES), (1.0, {}), (1.0, PENALTIES), (1.5, {})]
)
def test_no_small_change_of_a_row_is_better(beta, penalties):
    X, H = entries(beta), initial()["H"]
    scaled = scaled_penalties(as_data_matrix(X), **penalties) if penalties else NONE
    W = encoded(X, H, beta, scaled)
    best = objective(X, W, H, beta=beta, **penalties)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(5):
            other = np.maximum(W + size * rng.normal(size=W.shape), 0)
            assert objective(X, other, H, beta=beta, **penalties) >= best - 1e-9 * abs(best)


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_missing_entries_do_not_count_in_any_form(form):
    X, H = entries(2.0), initial()["H"]
    mask = np.random.default_rng(1).random(X.shape) < 0.7
    mask[0] = False
    expected = [
        nonnegative_rows(H.T[seen], x[None, seen])[0] for x, seen in zip(X[1:], mask[1:], strict=True)
    ]
    found = encoded(as_container(np.where(mask, X, np.nan), form), H, mask=mask)
    np.testing.assert_allclose(found[1:], expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(found[0], 0.0)


@pytest.mark.parametrize("penalties", [{}, PENALTIES], ids=["plain", "penalized"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_loss_comes_with_the_rows(penalties, masked):
    X, H = entries(2.0), initial()["H"]
    weights = np.arange(24) % 3 + 0.5
    mask = np.random.default_rng(1).random(X.shape) < 0.7 if masked else None
    data = as_data_matrix(X, weights=weights, mask=mask)
    scaled = scaled_penalties(data, **penalties) if penalties else NONE
    W, loss = encode(data, H.T.copy(), beta=2.0, penalties=scaled)
    expected = objective(X, W, H, weights=weights, mask=mask, **penalties)
    assert loss + scaled.of_H(H.T) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("beta", [2.0, 1.0, 1.5])
def test_rows_of_zeros_are_encoded_as_zeros(beta):
    X, H = entries(beta), initial()["H"]
    X[3] = 0.0
    W = encoded(X, H, beta)
    np.testing.assert_array_equal(W[3], 0.0)
    np.testing.assert_array_equal(encoded(np.zeros((4, 15)), H, beta), 0.0)


@pytest.mark.parametrize("beta", LOSSES)
def test_data_in_the_cone_of_h_are_encoded_exactly(beta):
    H = initial()["H"]
    truth = np.random.default_rng(5).random((10, 3)) + 0.1
    np.testing.assert_allclose(encoded(truth @ H, H, beta), truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "beta"), MAIN_CASES)
def test_a_fit_with_a_final_encoding_is_the_encoding_by_its_own_h(name, beta):
    X = entries(beta)
    data = as_data_matrix(X)
    options = {"beta": beta, "penalties": scaled_penalties(data, **PENALTIES)}
    with patch.dict(SOLVERS, {name: ALL[name]}):
        result = run_factorization(
            data, K, solver=name, max_iter=20, tol=0.0, rng=0, final_encoding=True, **options
        )
    W, _ = encode(data, np.ascontiguousarray(result.H.T), **options)
    close(result.W, W, 1e-12)
    rough = run(X, name, beta, max_iter=20, **PENALTIES)
    np.testing.assert_array_equal(result.H, rough.H)
    assert result.loss <= rough.loss * (1 + 1e-9)
    assert result.loss == pytest.approx(objective(X, result.W, result.H, beta=beta, **PENALTIES), rel=1e-9)


def test_no_iterations_give_the_encoding_of_the_initialization(low_rank):
    H = np.random.default_rng(0).random((3, 40))
    result = factorize(low_rank, 3, H=H, max_iter=0)
    np.testing.assert_array_equal(result.H, H)
    np.testing.assert_allclose(result.W, nonnegative_rows(H.T, low_rank), rtol=1e-8, atol=1e-10)
    assert result.loss == pytest.approx(objective(low_rank, result.W, H))


@pytest.mark.parametrize("beta", [1.0, 1.5])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_feature_that_no_component_has_does_not_end_the_search(beta, form):
    # Second derivatives have a pole there.
    rng = np.random.default_rng(0)
    H = rng.gamma(0.5, size=(3, 40))
    X = rng.poisson(3 * rng.gamma(0.5, size=(12, 3)) @ H).astype(float)
    expected = encoded(X, H, beta)
    H = np.hstack([H, np.zeros((3, 2))])
    X = np.hstack([X, np.full((12, 2), 2.0)])
    found = encoded(X if form == "dense" else scipy.sparse.csr_array(X), H, beta)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
