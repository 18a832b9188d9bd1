"""Held-out entries: planted ranks are found, zeros count, and nothing depends on threads or containers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import estimate_rank
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError


@pytest.fixture
def planted(rng):
    """Rank 4 with a tenth of noise, nonnegative."""
    X = rng.gamma(1.0, size=(80, 4)) @ rng.gamma(1.0, size=(4, 30))
    return np.maximum(X + 0.1 * X.mean() * rng.standard_normal(X.shape), 0.0)


@pytest.fixture
def planted_counts(rng):
    """Sparse counts of rank 3, four entries in five zero."""
    rates = rng.gamma(0.3, size=(120, 3)) @ rng.gamma(0.3, size=(3, 60))
    return sp.csr_array(rng.poisson(2 * rates).astype(float))


def estimate(X, *, n_folds=5, **options):
    params = {"n_folds": n_folds}
    return estimate_rank(
        X, method="cross-validation", method_params=params, **({"k_max": 8, "rng": 0} | options)
    )


def test_a_planted_rank_predicts_best(planted):
    found = estimate(planted)
    assert found.rank == 4
    assert found.curve.better == "smaller"
    assert min(found.scores, key=found.scores.get) == 4
    assert "of held-out entries is not explained" in found.reason
    # One tenth of the mean is noise and cannot be predicted; a fold learns from four ninths of the entries.
    noise = 0.01 * planted.mean() ** 2 / np.mean(planted**2)
    assert noise < found.scores[4] < 3 * noise


def test_sparse_and_dense_hold_out_the_same(planted_counts):
    dense = estimate(planted_counts.toarray(), candidates=[2, 3, 5])
    sparse = estimate(planted_counts, candidates=[2, 3, 5])
    np.testing.assert_allclose(sparse.curve.mean, dense.curve.mean, rtol=1e-6)
    assert sparse.rank == 3


@pytest.mark.parametrize("container", ["torch", "dask", "float32"])
def test_other_containers_give_the_same(container, planted):
    makers = {
        "torch": lambda X: pytest.importorskip("torch").asarray(X),
        "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(33, -1)),
        "float32": lambda X: X.astype(np.float32),
    }
    options = {"candidates": [3, 4, 5]}
    here, there = estimate(planted, **options), estimate(makers[container](planted), **options)
    rtol = 1e-5 if container != "float32" else 0.05
    np.testing.assert_allclose(there.curve.mean, here.curve.mean, rtol=rtol)
    assert there.rank == here.rank


def test_the_same_seed_gives_the_same_numbers_whatever_the_threads(planted):
    options = {"candidates": [3, 4]}
    one, two = (estimate(planted, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.curve.mean, two.curve.mean)
    assert not np.array_equal(estimate(planted, rng=1, **options).curve.mean, one.curve.mean)


@pytest.mark.parametrize("sparse", [False, True])
def test_missing_entries_are_neither_fitted_nor_scored(planted, rng, sparse):
    lost = rng.random(planted.shape) < 0.2
    wrap = sp.csr_array if sparse else np.asarray
    found = estimate(wrap(np.where(lost, 5.0, planted)), mask=~lost, candidates=[2, 4, 6])
    assert found.rank == 4
    assert "10% of the entries at a time" in found.reason
    masked = estimate(wrap(np.where(lost, 1e3, planted)), mask=~lost, candidates=[2, 4, 6])
    np.testing.assert_allclose(masked.curve.mean, found.curve.mean, rtol=1e-10)


def test_candidates_that_are_not_significantly_worse_are_as_good(planted):
    found = estimate(planted, candidates=[2, 3, 4, 5, 6])
    assert found.rank == min(found.as_good)
    assert min(found.scores, key=found.scores.get) in found.as_good
    assert not {2, 3} & set(found.as_good)


def test_the_search_ends_after_the_best_and_looks_around_it(rng):
    X = rng.gamma(0.5, size=(150, 11)) @ rng.gamma(0.5, size=(11, 90))
    X = np.maximum(X + 0.1 * X.mean() * rng.standard_normal(X.shape), 0.0)
    found = estimate(X, k_max=45)
    assert found.rank == 11
    assert {10, 11, 12} <= set(found.scores)
    assert max(found.scores) < 45


def test_a_sample_of_the_points_is_enough(rng):
    X = rng.gamma(1.0, size=(400, 3)) @ rng.gamma(1.0, size=(3, 25))
    X *= 1 + 0.05 * rng.random(X.shape)
    found = estimate(X, max_samples=60, candidates=[2, 3, 4])
    assert found.rank == 3
    dask = pytest.importorskip("dask.array")
    chunked = estimate(dask.from_array(X, chunks=(90, -1)), max_samples=60, candidates=[2, 3, 4])
    np.testing.assert_allclose(chunked.curve.mean, found.curve.mean, rtol=1e-8)
    with pytest.raises(InvalidParameterError, match="max_samples must be None or an integer of at least 10"):
        estimate(X, max_samples=3)


def test_normalized_points(planted_counts, rng):
    lengths = sp.diags_array(rng.gamma(2.0, size=120))
    scaled = estimate(lengths @ planted_counts, normalize="l2", candidates=[2, 3])
    plain = estimate(planted_counts, normalize="l2", candidates=[2, 3])
    np.testing.assert_allclose(scaled.curve.mean, plain.curve.mean, rtol=1e-6)


def test_exact_data_give_their_rank(rng):
    assert estimate(rng.gamma(1.0, size=(40, 3)) @ rng.gamma(1.0, size=(3, 20))).rank == 3


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (np.zeros((20, 15)), "X is zero"),
        (np.ones((20, 15)), "only 1 singular values lie above rounding"),
        (np.ones((40, 2)) + np.eye(40, 2), "smaller dimension of X is 2"),
    ],
)
def test_what_has_no_candidates_has_a_stated_way_out(X, reason):
    found = estimate_rank(X, method="cross-validation")
    assert found.rank == 1
    assert reason in found.reason
    assert found.curve is None


def test_what_cannot_be_done_is_said(planted, rng):
    with pytest.raises(InvalidDataError, match="hides at least 10 entries per fold, but X has 25 observed"):
        estimate(rng.random((5, 5)))
    with pytest.raises(InvalidParameterError, match="n_folds must be an integer of at least 2, got 1"):
        estimate(planted, n_folds=1)
    with pytest.raises(InvalidParameterError, match="exceeds the 24 rows or columns that a fold leaves"):
        estimate(planted, candidates=[25, 28], k_max=None)
    with pytest.raises(UnsupportedInputError, match="does not support sample weights"):
        estimate(as_data_matrix(planted, weights=np.ones(80)))
    chunked = pytest.importorskip("dask.array").from_array(planted, chunks=(20, -1))
    with pytest.raises(UnsupportedInputError, match="chunked data with missing entries"):
        estimate(as_data_matrix(chunked, mask=np.ones(planted.shape, dtype=bool)))


def test_progress_is_shown_on_request(planted, capsys):
    estimate(planted, candidates=[2, 3], verbose=1)
    assert "cross-validation: 2 of 2 candidates (k=3)" in capsys.readouterr().err
    estimate(planted, k_max=3, verbose=1)
    assert "cross-validation: 3 of 3 candidates (k=3)" in capsys.readouterr().err
    estimate(planted, candidates=[2, 3])
    assert capsys.readouterr().err == ""
