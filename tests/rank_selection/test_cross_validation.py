"""Held-out entries: planted ranks are found, zeros count, and nothing depends on threads or chunks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import estimate_rank
from nonneg.data import as_data_matrix
from nonneg.data.local import local_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError, UnsupportedInputError
from nonneg.rank_selection import holdouts
from nonneg.rank_selection.candidates import between, spaced
from nonneg.rank_selection.cross_validation import _folds, smallest_as_good
from nonneg.rank_selection.holdouts import bi_cross_validation, wold_holdouts
from nonneg.rank_selection.nested import _squared_residuals, grown, nested_fits
from nonneg.rank_selection.sampling import sample, without


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


def estimate(X, *, n_folds=3, holdout="auto", **options):
    params = {"n_folds": n_folds, "holdout": holdout}
    return estimate_rank(
        X, method="cross-validation", method_params=params, **({"k_max": 8, "rng": 0} | options)
    )


@pytest.mark.parametrize("holdout", ["wold", "bi-cross-validation"])
def test_a_planted_rank_predicts_best(holdout, planted):
    found = estimate(planted, holdout=holdout)
    assert found.rank == 4
    assert found.curve.better == "smaller"
    assert min(found.scores, key=found.scores.get) == 4
    assert "of held-out entries is not explained" in found.reason
    # One tenth of the mean is noise and cannot be predicted. A block leaves less to learn from: two thirds of
    # the rows and of the columns.
    noise = 0.01 * planted.mean() ** 2 / np.mean(planted**2)
    assert noise < found.scores[4] < (2 if holdout == "wold" else 3) * noise


@pytest.mark.parametrize("holdout", ["wold", "bi-cross-validation"])
def test_sparse_and_dense_hold_out_the_same(holdout, planted_counts):
    dense = estimate(planted_counts.toarray(), holdout=holdout, candidates=[2, 3, 5])
    sparse = estimate(planted_counts, holdout=holdout, candidates=[2, 3, 5])
    np.testing.assert_allclose(sparse.curve.mean, dense.curve.mean, rtol=1e-6)
    assert sparse.rank == 3


@pytest.mark.parametrize("container", [pytest.param("torch", marks=pytest.mark.slow), "dask", "float32"])
def test_other_containers_give_the_same(container, planted):
    makers = {
        "torch": lambda X: pytest.importorskip("torch").asarray(X),
        "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(33, -1)),
        "float32": lambda X: X.astype(np.float32),
    }
    options = {"candidates": [3, 4, 5], "n_folds": 2}
    here, there = estimate(planted, **options), estimate(makers[container](planted), **options)
    np.testing.assert_allclose(
        there.curve.mean, here.curve.mean, rtol=1e-5 if container != "float32" else 0.05
    )
    assert there.rank == here.rank


def test_the_same_seed_gives_the_same_numbers_whatever_the_threads(planted):
    options = {"candidates": [3, 4]}
    one, two = (estimate(planted, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.curve.mean, two.curve.mean)
    assert not np.array_equal(estimate(planted, rng=1, **options).curve.mean, one.curve.mean)


def test_missing_entries_are_neither_fitted_nor_scored(planted, rng):
    X = planted.copy()
    lost = rng.random(X.shape) < 0.2
    X[lost] = np.nan
    found = estimate(X, missing="mask", candidates=[2, 4, 6])
    assert found.rank == 4
    other = np.where(lost, 1e3, planted)
    masked = estimate(other, mask=~lost, candidates=[2, 4, 6])
    np.testing.assert_allclose(masked.curve.mean, found.curve.mean, rtol=1e-10)
    with pytest.raises(InvalidParameterError, match="'bi-cross-validation' needs complete data"):
        estimate(X, missing="mask", holdout="bi-cross-validation")


def test_large_complete_data_hold_out_blocks_and_all_other_data_entries(planted, monkeypatch):
    def kind(X, mask=None):
        return _folds(as_data_matrix(X, mask=mask), "auto", 5, np.random.default_rng(0))[1]

    X = planted
    monkeypatch.setattr("nonneg.rank_selection.cross_validation.FEW_ENTRIES", X.size)
    assert kind(X) == "wold"
    monkeypatch.setattr("nonneg.rank_selection.cross_validation.FEW_ENTRIES", X.size - 1)
    assert kind(X) == "bi-cross-validation"
    assert kind(X, X.min() < X) == "wold"
    monkeypatch.setattr("nonneg.rank_selection.cross_validation.FEW_ENTRIES", 0)
    assert kind(X[:10]) == kind(X[:, :10]) == "bi-cross-validation"
    assert kind(X[:9]) == kind(X[:, :9]) == "wold"  # a block would have one row or column


def test_folds_of_entries_are_disjoint_and_a_tenth(planted):
    folds = wold_holdouts(as_data_matrix(planted), 4, np.random.default_rng(0))
    places = np.concatenate([fold.rows * 30 + fold.columns for fold in folds])
    assert len(np.unique(places)) == len(places) == 4 * 240


def test_folds_of_many_sparse_entries_are_limited_and_weighted(planted_counts, monkeypatch):
    monkeypatch.setattr(holdouts, "MAX_HIDDEN", 100)
    data = as_data_matrix(planted_counts)
    dense = planted_counts.toarray()
    folds = wold_holdouts(data, 2, np.random.default_rng(0))
    for fold in folds:
        filled = dense[fold.rows, fold.columns] != 0
        assert len(filled) == 100
        assert filled.sum() == 50
        # What the weights stand for is the whole matrix.
        assert fold.weights[filled].sum() == pytest.approx(planted_counts.nnz)
        assert fold.weights[~filled].sum() == pytest.approx(dense.size - planted_counts.nnz)
    places = np.concatenate([fold.rows * 60 + fold.columns for fold in folds])
    assert len(np.unique(places)) == 200


def test_blocks_cover_every_row_and_column_once(planted):
    folds = bi_cross_validation(as_data_matrix(planted), 3, np.random.default_rng(0))
    assert sorted(np.concatenate([fold.rows for fold in folds])) == list(range(80))
    assert sorted(np.concatenate([fold.columns for fold in folds])) == list(range(30))


def test_hidden_entries_are_hidden(planted, planted_counts):
    rows, columns = np.array([0, 3, 3]), np.array([5, 1, 2])
    for X in (planted, planted_counts):
        before = X.copy()
        data = without(local_matrix(X), rows, columns)
        seen = data.observed.dense_rows(0, X.shape[0])
        assert seen.sum() == X.shape[0] * X.shape[1] - 3
        assert not seen[rows, columns].any()
        assert not data.take_rows([0, 3])[[0, 1, 1], columns].any()
        assert abs(X - before).max() == 0


def test_components_are_added_without_a_change_of_the_product(planted, rng):
    data = as_data_matrix(planted)
    W, Ht = rng.random((80, 2)), rng.random((30, 2))
    larger_W, larger_B = grown(data, W, Ht, 5, np.random.default_rng(0))
    assert larger_B.shape == (30, 5)
    np.testing.assert_array_equal(larger_W @ larger_B.T, W @ Ht.T)
    assert larger_B[:, 2:].max(axis=0).min() > 0


def test_nested_fits_get_better(planted):
    fits = nested_fits(as_data_matrix(planted), [1, 2, 3, 4], np.random.default_rng(0), max_iter=60, tol=1e-4)
    losses = [np.square(planted - W @ Ht.T).sum() for _, W, Ht in fits]
    assert np.all(np.diff(losses) < 0)
    floor = np.square(np.linalg.svd(planted, compute_uv=False)[4:]).sum()
    assert losses[-1] < 1.1 * floor


def test_the_smallest_candidate_within_one_standard_error_of_the_difference():
    shared = np.array([[0.0], [0.5], [1.0]])
    errors = shared + np.array([[3.0, 1.02, 1.0, 1.5], [3.0, 0.99, 1.0, 1.5], [3.0, 1.01, 1.0, 1.5]])
    # Candidate 4 is worse by 0.0067 on average with a standard error of 0.0088, whatever the folds share.
    assert smallest_as_good([2, 4, 6, 8], errors) == (4, 6)


def test_the_search_ends_after_the_best_and_looks_around_it(rng):
    X = rng.gamma(1.0, size=(90, 9)) @ rng.gamma(1.0, size=(9, 70))
    X = np.maximum(X + 0.2 * X.mean() * rng.standard_normal(X.shape), 0.0)
    found = estimate(X, k_max=34, k_min=7)
    assert found.rank == 9
    # The grid is 7, 8, 10, 12, 15, 18, ...: 9 was looked at because it lies beside the best.
    assert 9 in found.scores
    assert max(found.scores) < 34


def test_the_grid_and_what_lies_between():
    assert spaced(2, 20) == [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20]
    assert spaced(3, 3) == [3]
    assert between([8, 10, 12, 15], 12) == [11, 13, 14]
    assert between([2, 3, 4], 3) == []
    assert len(between([10, 40, 80], 40)) == 6


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
    X = rng.gamma(1.0, size=(40, 3)) @ rng.gamma(1.0, size=(3, 20))
    assert estimate(X).rank == 3


@pytest.mark.parametrize(
    ("X", "rank", "reason"),
    [
        (np.zeros((20, 15)), 1, "X is zero"),
        (np.ones((20, 15)), 1, "only 1 singular values lie above rounding"),
        (np.ones((40, 2)) + np.eye(40, 2), 1, "smaller dimension of X is 2"),
    ],
)
def test_what_has_no_candidates_has_a_stated_way_out(X, rank, reason):
    found = estimate(X)
    assert found.rank == rank
    assert reason in found.reason
    assert found.curve is None


def test_what_cannot_be_done_is_said(planted, rng):
    with pytest.raises(InvalidDataError, match="hides at least 10 entries per fold, but X has 30 observed"):
        estimate(rng.random((6, 5)))
    with pytest.raises(InvalidDataError, match="needs at least 6 rows and columns for 3 folds"):
        estimate(rng.random((40, 5)), holdout="bi-cross-validation")
    with pytest.raises(InvalidParameterError, match="n_folds must be an integer of at least 2, got 1"):
        estimate(planted, n_folds=1)
    with pytest.raises(UnknownNameError, match="holdout='entry' is not known"):
        estimate(planted, holdout="entry")
    with pytest.raises(InvalidParameterError, match="exceeds the 20 rows or columns that a fold leaves"):
        estimate(planted, holdout="bi-cross-validation", candidates=[25, 28], k_max=None)
    weighted = as_data_matrix(planted, weights=np.ones(80))
    with pytest.raises(UnsupportedInputError, match="do not support sample weights"):
        estimate(weighted)
    dask = pytest.importorskip("dask.array")
    masked = as_data_matrix(
        dask.from_array(planted, chunks=(20, -1)), mask=np.ones(planted.shape, dtype=bool)
    )
    with pytest.raises(UnsupportedInputError, match="chunked data with missing entries"):
        estimate(masked)


def test_progress_is_shown_on_request(planted, capsys):
    estimate(planted, candidates=[2, 3], verbose=1)
    assert "cross-validation: 2 of 2 (k=3)" in capsys.readouterr().err
    estimate(planted, candidates=[2, 3])
    assert capsys.readouterr().err == ""


def test_squared_residuals_of_rows_are_those_of_the_definition(rng):
    X, W, Ht = rng.random((6, 5)), rng.random((6, 2)), rng.random((5, 2))
    found = _squared_residuals(local_matrix(X), W, Ht)
    np.testing.assert_allclose(found, ((X - W @ Ht.T) ** 2).sum(axis=1))
    assert not _squared_residuals(local_matrix(W @ Ht.T), W, Ht).any()  # rounding is none


def test_a_sample_of_rows_keeps_their_missing_entries(rng):
    X = rng.random((30, 4))
    whole = sample(local_matrix(X), 10, np.random.default_rng(0))
    assert whole.shape == (10, 4)
    assert whole.observed is None
    mask = np.tile([True, True, False, True], (30, 1))
    part = sample(as_data_matrix(X, mask=mask), 10, np.random.default_rng(0))
    assert part.shape == (10, 4)
    assert part.observed.weight(None) == 30
