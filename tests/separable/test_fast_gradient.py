"""FastGradient: recovery, optimality on small cases, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import middle_points
from tests.references.containers import TORCH, as_container

from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import UnsupportedInputError
from nonneg.kernels.dominating_diagonal import dominating_diagonal
from nonneg.separable import fast_gradient as fast_gradient_module
from nonneg.separable import select_anchors
from nonneg.separable.fast_gradient import fast_gradient
from nonneg.separable.registry import split_params


def run(X, k, **options):
    return select_anchors(X, k, method="fast-gradient", rng=0, **split_params(options))


def test_finds_anchors_where_successive_projections_fail():
    wins = 0
    for seed in range(4):
        data = middle_points(50, 10, snr=20, rng=seed)
        assert set(run(data.X, 10, max_iter=150).anchors) == set(data.anchors)
        wins += set(select_anchors(data.X, 10, method="spa").anchors) != set(data.anchors)
    assert wins >= 3


def test_dirichlet_points_with_noise():
    data = separable_dirichlet(120, 30, 15, snr=12, rng=1)
    assert data.X.min() < 0  # noise makes entries negative, which the method takes
    assert set(run(data.X, 15, max_iter=150).anchors) == set(data.anchors)


def test_reaches_the_optimum_of_a_fixed_weight(clean):
    result = run(clean.X, 6, lam=0.05, max_iter=4000, tol=0.0)
    C = result.coefficients.toarray()
    weights = np.abs(clean.X).sum(axis=1)
    np.testing.assert_allclose(dominating_diagonal(C, weights), C, atol=1e-12)
    # At a minimum a projected gradient step goes nowhere.
    prices = 1.0 + 0.01 * (np.random.default_rng(0).random(90) - 0.5)
    gradient = clean.X @ (clean.X.T @ C - clean.X.T) + 0.05 * np.diag(prices)
    moved = dominating_diagonal(C - gradient / np.linalg.norm(clean.X, 2) ** 2, weights) - C
    assert np.abs(moved).max() < 1e-6
    objective = 0.5 * np.sum((clean.X.T - clean.X.T @ C) ** 2) + 0.05 * prices @ np.diagonal(C)
    assert result.objective == pytest.approx(objective, rel=1e-10)
    assert result.lam == 0.05


def test_history_and_curve(clean):
    result = run(clean.X, 6, max_iter=60)
    assert set(result.history.names) >= {"loss", "diagonal_change", "trace", "lam"}
    assert result.history.loss[-1] == result.objective
    np.testing.assert_allclose(result.row_maxima, np.diagonal(result.coefficients.toarray()))
    assert (np.diff(result.curve) <= 0).all()
    assert result.margin > 0
    assert set(result.anchors) == set(clean.anchors)


@pytest.mark.parametrize("form", ["fortran", "csr", "strict", TORCH, "dask"])
def test_holders_agree(form, clean):
    expected = run(clean.X, 6, max_iter=40)
    result = run(as_container(clean.X, form), 6, max_iter=40)
    assert list(result.anchors) == list(expected.anchors)
    if form != "dask":  # there the points are reduced first, which changes their l1 norms
        assert abs(result.coefficients - expected.coefficients).max() < 1e-10


def test_more_features_than_points(clean):
    wide = np.concatenate([clean.X, np.zeros((90, 200))], axis=1)
    expected = run(clean.X, 6, max_iter=30)
    result = run(wide, 6, max_iter=30)
    assert abs(result.coefficients - expected.coefficients).max() < 1e-9


def test_single_precision_stays_single(clean):
    result = run(clean.X.astype(np.float32), 6, max_iter=60)
    assert result.coefficients.dtype == np.float32
    assert set(result.anchors) == set(clean.anchors)


def test_the_limit_of_memory_is_named():
    X = as_data_matrix(np.ones((30_000, 2)))
    with pytest.raises(
        UnsupportedInputError, match=r"33\.5 GiB for 30000 samples .*limit is 2\.0 GiB.*merit"
    ):
        fast_gradient(X, 2)
    with pytest.raises(UnsupportedInputError, match="memory_limit"):
        run(np.eye(40), 2, memory_limit=1e4)


def test_the_same_seed_gives_the_same_answer(noisy):
    first, second = (run(noisy.X, 6, max_iter=30).coefficients for _ in range(2))
    assert (first != second).nnz == 0


def test_callback_stops(clean):
    result = run(clean.X, 6, callback=lambda progress: progress.n_iter == 3)
    assert result.n_iter == 3


def test_its_first_weight_balances_error_and_trace():
    # Anchors e1 and e2 leave the third sample's part along e3: a squared error of 0.04.
    X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.2]])
    found = run(X, 2, max_iter=1)
    spread = 1.0 + fast_gradient_module.SPREAD * (np.random.default_rng(0).random(3) - 0.5)
    expected = (0.04 + 1e-3 * float(np.sum(X**2))) / spread[:2].sum()
    assert found.details["first_lam"] == pytest.approx(expected, rel=1e-9)


def test_its_own_number_of_iterations_is_the_default(rng):
    # The authors' 150, not MERIT's 100.
    found = select_anchors(rng.random((12, 6)), 3, method="fast-gradient", rng=0, tol=0.0)
    assert found.n_iter == 150


def test_few_points_are_compressed_without_loss_in_any_unit():
    X = np.random.default_rng(0).random((6, 20))
    for unit in (1.0, 1e-3, 1e3):
        rows, norms = fast_gradient_module.compressed(as_data_matrix(unit * X))
        assert rows.shape[1] == 6
        np.testing.assert_allclose(rows @ rows.T, unit**2 * X @ X.T, rtol=1e-9)
        np.testing.assert_allclose(norms, unit * X.sum(axis=1))
