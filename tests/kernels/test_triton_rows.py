"""Row subproblems in Triton: coordinate descent and block pivoting against the compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import kkt_violation, nonnegative_rows, row_objective

from nonneg.data.observed import observed_entries
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.grams import DenseGrams, ListedGrams, SharedGram, WeightedGrams, quadratic_form
from nonneg.kernels.hals import hals_passes
from nonneg.leastsquares import nonnegative_least_squares

BOUND = {np.float64: 1e-11, np.float32: 2e-4}


@pytest.fixture
def gpu(device, monkeypatch):
    """A GPU, or the interpreter, for which few large programs take less time."""
    if device.type != "cuda":
        monkeypatch.setattr("nonneg.kernels.hals.triton.FULL", 1)
    return device


def problem(n_rows, k, dtype=np.float64, seed=0):
    """Rows with zeros in the start and slopes of both signs."""
    rng = np.random.default_rng(seed)
    Ht = rng.gamma(1.0, size=(4 * k, k))
    gram = Ht.T @ Ht
    cross = rng.normal(size=(n_rows, k)) * 4 * k
    factor = np.where(rng.random((n_rows, k)) < 0.4, 0, rng.random((n_rows, k)))
    return tuple(array.astype(dtype) for array in (factor, gram, cross))


def on(device, torch, *arrays):
    return tuple(torch.asarray(array).to(device) for array in arrays)


def check(found, expected, bound):
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("n_rows", "k", "passes"), [(1, 1, 3), (33, 1, 1), (1, 3, 30), (70, 5, 1), (37, 20, 9), (3, 255, 1)]
)
def test_coordinate_descent_is_that_of_the_compiled_kernel(n_rows, k, passes, dtype, torch, gpu):
    if gpu.type != "cuda" and (k >= 20) == (dtype == np.float64):
        pytest.skip("one type takes the interpreter long enough")
    factor, gram, cross = problem(n_rows, k, dtype)
    expected, violation = hals_passes(factor, SharedGram(gram), cross, max_passes=passes, shrink=0.1)
    f, g, c = on(gpu, torch, factor, gram, cross)
    rows, found = hals_passes(f, SharedGram(g), c, max_passes=passes, shrink=0.1)
    assert rows.dtype == f.dtype
    check(rows, expected, BOUND[dtype])
    assert found.dtype == torch.float64
    assert float(found) == pytest.approx(violation, rel=BOUND[dtype])
    check(f, factor, 0)
    if gpu.type == "cuda":  # the interpreter has one order of sums
        again, same = hals_passes(f, SharedGram(g), c, max_passes=passes, shrink=0.1)
        assert torch.equal(rows, again)
        assert torch.equal(found, same)


@pytest.mark.parametrize("order", [[3, 1], [4, 3, 2, 1, 0], []])
def test_only_the_components_of_the_order_change(order, torch, gpu):
    factor, gram, cross = problem(20, 5)
    gram[1, :] = gram[:, 1] = 0.0  # no curvature
    expected, violation = hals_passes(factor, SharedGram(gram), cross, order=order, max_passes=2)
    f, g, c = on(gpu, torch, factor, gram, cross)
    rows, found = hals_passes(f, SharedGram(g), c, order=order, max_passes=2)
    check(rows, expected, 1e-12)
    assert float(found) == pytest.approx(violation, rel=1e-12)


def test_nan_is_not_hidden_and_does_not_spread(torch, gpu):
    factor, gram, cross = problem(4, 3)
    cross[1, 1] = np.nan
    f, g, c = on(gpu, torch, factor, gram, cross)
    rows, _ = hals_passes(f, SharedGram(g), c, max_passes=2)
    assert torch.isnan(rows[1]).any()
    assert torch.isfinite(rows[[0, 2, 3]]).all()


def test_rows_may_have_matrices_of_their_own(torch, gpu):
    k, n_rows = 4, 6
    factor, _, cross = problem(n_rows, k)
    grams = np.stack([problem(1, k, seed=seed)[1] for seed in range(n_rows)])
    expected, violation = hals_passes(factor, DenseGrams(grams), cross, max_passes=5, shrink=0.1)
    f, g, c = on(gpu, torch, factor, grams, cross)
    rows, found = hals_passes(f, DenseGrams(g), c, max_passes=5, shrink=0.1)
    check(rows, expected, 1e-11)
    assert float(found) == pytest.approx(violation, rel=1e-11)


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_lists_and_masks_of_observed_entries_give_the_matrices_of_the_rows(share, torch, gpu, monkeypatch):
    if share < 0.5 and gpu.type != "cuda":  # the others subtract from the matrix of all entries
        pytest.skip("takes long in the interpreter")
    rng = np.random.default_rng(0)
    Ht, mask = rng.gamma(1.0, size=(14, 3)), rng.random((9, 14)) < share
    mask[4] = False
    factor, _, cross = problem(9, 3)
    cross[4] = 0.0
    listed = observed_entries(mask, float).row_grams(Ht)
    expected, violation = hals_passes(factor, listed, cross, max_passes=3)
    base, other, indptr, indices, f, c, m = on(
        gpu, torch, listed.base, Ht, listed.indptr, listed.indices, factor, cross, mask.astype(float)
    )
    monkeypatch.setattr("nonneg.kernels.hals.triton.CHUNK_ENTRIES", 4 * 9)  # four rows at a time
    monkeypatch.setattr("nonneg.kernels.grams.CHUNK_ENTRIES", 4 * 9)
    for gram in (ListedGrams(base, listed.values, other, indptr, indices), WeightedGrams(m, other)):
        rows, found = hals_passes(f, gram, c, max_passes=3)
        check(rows, expected, 1e-10)
        assert float(found) == pytest.approx(violation, rel=1e-10)
        check(gram.dense().matrices, listed.dense().matrices, 1e-10)
        solved, flags = block_pivoting(f, gram.plus_ridge(0.5), c)
        expected_rows, _ = block_pivoting(factor, listed.plus_ridge(0.5), cross)
        check(solved, expected_rows, 1e-9)
        assert not flags.any()
    assert float(WeightedGrams(m, other, 0.5).quadratic_form(f)) == pytest.approx(
        quadratic_form(factor, listed.plus_ridge(0.5)), rel=1e-12
    )


def design(k, n_rows=20, n_features=None, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.gamma(0.5, size=(n_features or 3 * k, k))
    return A, rng.normal(size=(n_rows, A.shape[0])) + A.mean(axis=1)


@pytest.mark.parametrize(("n_rows", "k"), [(1, 1), (6, 2), (2, 13), (1, 20), (50, 64), (9, 130), (3, 255)])
def test_block_pivoting_has_the_minimizers_of_scipy(n_rows, k, torch, gpu):
    if k > 20 and gpu.type != "cuda":
        pytest.skip("takes minutes through the interpreter")
    A, X = design(k, n_rows)
    gram, cross = A.T @ A, X @ A
    g, c = on(gpu, torch, gram, cross)
    expected = nonnegative_rows(A, X)
    guesses = (c.clip(0), torch.zeros_like(c), torch.ones_like(c))
    for guess in guesses if k < 13 or gpu.type == "cuda" else guesses[:1]:
        rows, flags = block_pivoting(guess, SharedGram(g), c)
        assert not flags.any()
        check(rows, expected, 1e-8)
    if gpu.type == "cuda":
        again, _ = block_pivoting(guess, SharedGram(g), c)
        assert torch.equal(rows, again)


def test_block_pivoting_in_float32_meets_the_conditions(torch, gpu):
    A, X = design(6)
    gram, cross = (A.T @ A).astype(np.float32), (X @ A).astype(np.float32)
    g, c = on(gpu, torch, gram, cross)
    rows, flags = block_pivoting(c.clip(0), SharedGram(g), c)
    assert rows.dtype == torch.float32
    assert not flags.any()
    assert kkt_violation(rows.cpu().numpy().astype(float), gram.astype(float), cross.astype(float)) < 1e-6


def test_rows_of_zeros_components_of_zeros_and_few_exchanges(torch, gpu):
    A, X = design(5, n_rows=6)
    A[:, 2] = 0.0
    X[0], X[1] = 0.0, -1.0
    g, c = on(gpu, torch, A.T @ A, X @ A)
    rows, flags = block_pivoting(torch.ones_like(c), SharedGram(g), c)
    assert not flags.any()
    assert not rows[:2].any()
    assert not rows[:, 2].any()
    start = torch.ones_like(c)
    rows, flags = block_pivoting(start, SharedGram(g), c, max_pivots=1)
    assert flags.any()
    assert torch.equal(rows[flags], start[flags])


def test_singular_systems_are_left_to_coordinate_descent(torch, gpu):
    A, X = design(4, n_rows=8, n_features=12)
    A[:, 3] = A[:, 0]
    gram, cross = A.T @ A, X @ A
    g, c = on(gpu, torch, gram, cross)
    _, flags = block_pivoting(torch.ones_like(c), SharedGram(g), c)
    assert flags.any()
    solved = nonnegative_least_squares(SharedGram(g), c, start=torch.ones_like(c)).cpu().numpy()
    best = row_objective(nonnegative_rows(A, X), gram, cross)
    np.testing.assert_allclose(row_objective(solved, gram, cross), best, rtol=1e-7, atol=1e-9)
    assert solved.min() >= 0
