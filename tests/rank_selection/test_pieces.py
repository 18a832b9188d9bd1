"""Candidates, folds, samples and curves against plain definitions."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import cophenet, linkage

from nonneg import estimate_rank
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError
from nonneg.rank_selection import cross_validation, holdouts
from nonneg.rank_selection.candidates import between, rank_problem, spaced
from nonneg.rank_selection.comparison import _close, recommend
from nonneg.rank_selection.consensus import consensus_matrix, cophenetic_correlation, dispersion
from nonneg.rank_selection.cross_validation import _is_past_best, _possible, smallest_as_good
from nonneg.rank_selection.holdouts import (
    BiCrossValidationBlock,
    WoldHoldout,
    _entries,
    _products,
    bi_cross_validation,
    wold_holdouts,
)
from nonneg.rank_selection.nested import _squared_residuals, grown
from nonneg.rank_selection.result import RankCurve, RankResult, listed, scores_of
from nonneg.rank_selection.sampling import block, sample, without
from nonneg.rank_selection.spectrum import stands_out
from nonneg.rank_selection.stability import CLOSE, _jackknife, largest_as_stable


def test_a_grid_has_all_small_ranks_and_then_steps_of_a_quarter():
    assert spaced(2, 9) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert spaced(2, 20) == [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20]
    assert spaced(3, 3) == [3]
    assert between([8, 10, 15, 18], 10) == [9, 11, 12, 13, 14]
    assert between([8, 10, 15], 15) == [11, 12, 13, 14]
    assert between([8, 10], 8) == [9]
    assert between([2, 30, 60], 30, n_more=4) == [3, 21, 41, 59]
    assert between([2, 3, 4], 3) == []


def test_curves_know_their_candidates():
    curve = RankCurve("error", (2, 4), [0.5, 0.25], [0.1, 0.0], "smaller")
    assert curve.at(4) == (0.25, 0.0)
    assert curve.at(3) is None
    assert scores_of(curve) == {2: 0.5, 4: 0.25}
    with pytest.raises(ShapeError, match="each of 2 candidates, got 1 and 2"):
        RankCurve("error", (2, 4), [0.5], [0.1, 0.0])
    assert [listed(each) for each in ([2, 3], [2, 3, 4], [2, 4, 5])] == ["2, 3", "2 to 4", "2, 4, 5"]
    result = RankResult(4, {2: 1.0}, "so", "x", np.ones(2), 2, 2, 4, (curve,))
    html = result._repr_html_()
    assert "4 components" in html
    assert RankResult(4, {}, "so", "x", np.ones(2), 2, 2, 4).curve is None


@pytest.mark.parametrize(
    ("first", "second", "close"),
    [
        (3, 4, True),
        (3, 5, False),
        (20, 22, True),
        (20, 23, False),
        (1, 1, True),
        (15, 17, True),
        (12, 14, False),
    ],
)
def test_estimates_are_close_up_to_one_or_a_tenth(first, second, close):
    assert _close(first, second) is close
    assert _close(second, first) is close


def test_a_step_of_the_spectrum_stands_out():
    assert stands_out(np.array([1.1, 1.1, 3.0, 1.1]))
    assert not stands_out(np.array([1.2, 1.3, 1.25]))
    assert not stands_out(np.array([1.0, 1.0]))
    assert stands_out(np.exp(np.array([4.0, 1.0, 1.0])))
    assert not stands_out(np.exp(np.array([3.9, 1.0, 1.0])))


def test_the_one_standard_error_rule():
    errors = np.array([[3.0, 1.05, 1.0, 1.2], [3.2, 0.99, 1.02, 1.1], [2.9, 1.1, 1.04, 1.3]])
    excess = errors - errors[:, [2]]
    allowed = excess.std(axis=0, ddof=1) / np.sqrt(3)
    assert excess.mean(axis=0)[1] <= allowed[1]
    assert smallest_as_good([2, 3, 4, 5], errors) == (3, 4)
    errors[:, 1] += 0.1
    assert smallest_as_good([2, 3, 4, 5], errors) == (4, 4)


def test_the_search_ends_when_errors_rise():
    rising = np.array([[3.0, 1.0, 2.0, 3.0], [3.1, 1.1, 2.2, 3.1]])
    assert _is_past_best(rising, 2)
    assert not _is_past_best(rising, 3)
    assert not _is_past_best(rising[:, :2], 2)
    noisy = np.array([[3.0, 1.0, 2.0, 1.1], [3.1, 1.1, 0.9, 1.1]])
    assert not _is_past_best(noisy, 2)
    assert not _is_past_best(rising[:, ::-1], 2)
    # By more than the standard error of the difference: the deviation over the root of the number of folds.
    excess = np.array([0.0, 1.0, 2.0, 5.0])  # a mean of 2 and a standard error of 1.08
    for most, ended in ((0.9, True), (1.0, False)):
        later = excess - most
        errors = np.column_stack([np.full(4, 5.0), np.ones(4), 1.0 + later, 9.0 + np.zeros(4)])
        assert later.std(ddof=1) / 2 == pytest.approx(1.0801, abs=1e-4)
        assert _is_past_best(errors, 2) == ended


def test_candidates_that_folds_allow():
    data = as_data_matrix(np.ones((10, 12)))
    assert _possible([2, 8, 9, 10, 11], data, "wold", 5) == [2, 8, 9, 10]
    assert _possible([2, 8, 9, 10], data, "bi-cross-validation", 5) == [2, 8]
    assert _possible([2, 8, 9, 10], data, "bi-cross-validation", 4) == [2]
    with pytest.raises(InvalidParameterError, match=r"\(9, 10\) exceeds the 8 rows"):
        _possible([9, 10], data, "bi-cross-validation", 5)


def test_the_form_of_folds_by_default(monkeypatch, rng):
    data = as_data_matrix(rng.random((12, 11)))
    kind = lambda data, how="auto", n=5: cross_validation._folds(data, how, n, np.random.default_rng(0))[1]  # noqa: E731
    assert kind(data) == "wold"
    monkeypatch.setattr(cross_validation, "FEW_ENTRIES", 131)
    assert kind(data) == "bi-cross-validation"
    assert kind(data, n=6) == "wold"  # too few columns for blocks
    mask = rng.random((12, 11)) < 0.9
    masked = as_data_matrix(np.where(mask, 1.0, np.nan), mask=mask)
    assert kind(masked) == "wold"
    with pytest.raises(InvalidParameterError, match="needs complete data"):
        kind(masked, "bi-cross-validation")
    monkeypatch.setattr(cross_validation, "FEW_ENTRIES", 132)
    assert kind(data) == "wold"


def test_folds_of_entries_are_disjoint_and_of_equal_size(rng):
    data = as_data_matrix(rng.random((20, 10)))
    folds = wold_holdouts(data, 4, rng)
    places = np.concatenate([fold.rows * 10 + fold.columns for fold in folds])
    assert [len(fold.rows) for fold in folds] == [20] * 4
    assert len(np.unique(places)) == 80
    assert all((fold.weights == 1.0).all() for fold in folds)
    assert len(wold_holdouts(data, 20, rng)[0].rows) == 10
    with pytest.raises(InvalidDataError, match="at least 10 entries per fold, but X has 200"):
        wold_holdouts(data, 21, rng)
    mask = rng.random((20, 10)) < 0.8
    seen = wold_holdouts(as_data_matrix(np.where(mask, 1.0, np.nan), mask=mask), 2, rng)
    assert all(mask[fold.rows, fold.columns].all() for fold in seen)
    blocks = bi_cross_validation(data, 5, rng)
    assert sorted(np.concatenate([each.rows for each in blocks])) == list(range(20))
    assert sorted(np.concatenate([each.columns for each in blocks])) == list(range(10))
    assert all((np.diff(each.rows) > 0).all() for each in blocks)
    with pytest.raises(InvalidDataError, match="at least 12 rows and columns for 6 folds"):
        bi_cross_validation(data, 6, rng)


def test_folds_of_many_sparse_entries_weigh_zeros_and_others(monkeypatch, rng):
    monkeypatch.setattr(holdouts, "MAX_HIDDEN", 30)
    X = np.where(rng.random((40, 20)) < 0.8, 0.0, 1.0 + rng.random((40, 20)))
    csr = sp.csr_array(X)
    folds = wold_holdouts(as_data_matrix(csr), 4, rng)
    n_zeros = X.size - csr.nnz
    for fold in folds:
        values = X[fold.rows, fold.columns]
        assert len(values) == 30
        np.testing.assert_allclose(fold.weights[values > 0].sum(), csr.nnz)
        np.testing.assert_allclose(fold.weights[values == 0].sum(), n_zeros)
    places = np.concatenate([fold.rows * 20 + fold.columns for fold in folds])
    assert len(np.unique(places)) == len(places)


@pytest.mark.parametrize("sparse", [False, True])
def test_held_out_errors_are_shares_of_squares(sparse, rng):
    X = rng.random((14, 2)) @ rng.random((2, 12))
    X[rng.random(X.shape) < 0.3] = 0.0
    data = as_data_matrix(sp.csr_array(X) if sparse else X)
    fold = WoldHoldout(np.array([1, 3, 5, 7]), np.array([0, 2, 4, 6]), np.array([1.0, 2.0, 1.0, 0.5]))
    truth = X[fold.rows, fold.columns]
    np.testing.assert_allclose(_entries(data, fold.rows, fold.columns), truth)
    hidden = without(data, fold.rows, fold.columns)
    expected = X.copy()
    expected[fold.rows, fold.columns] = 0.0
    np.testing.assert_allclose(hidden.dense_rows(0, 14), expected)
    seen = np.ones(X.shape)
    seen[fold.rows, fold.columns] = 0.0
    np.testing.assert_array_equal(hidden.observed.dense_rows(0, 14), seen)
    ((error, W, Ht),) = fold.errors(data, [2], np.random.default_rng(0), ridge=1e-6)
    missed = truth - np.minimum((W @ Ht.T)[fold.rows, fold.columns], X.max())
    assert error == pytest.approx(np.sum(fold.weights * missed**2) / np.sum(fold.weights * truth**2))
    np.testing.assert_allclose(_products(W, Ht, fold.rows, fold.columns), (W @ Ht.T)[fold.rows, fold.columns])
    rows, columns = np.array([0, 4, 9]), np.array([1, 5])
    np.testing.assert_allclose(block(data, rows, columns).dense_rows(0, 3), X[np.ix_(rows, columns)])
    held = BiCrossValidationBlock(rows, columns)
    exact = as_data_matrix(rng.random((14, 2)) @ rng.random((2, 12)))
    ((error, _, _),) = held.errors(exact, [2], np.random.default_rng(0), ridge=1e-9)
    assert error < 1e-3
    ((worse, _, _),) = held.errors(exact, [1], np.random.default_rng(0), ridge=1e-9)
    assert worse > error


def test_components_grow_from_samples_with_large_residuals(rng):
    X = rng.random((8, 5))
    data, W, Ht = as_data_matrix(X), rng.random((8, 2)), rng.random((5, 2))
    squares = np.sum((X - W @ Ht.T) ** 2, axis=1)
    np.testing.assert_allclose(_squared_residuals(data, W, Ht), squares)
    more, wider = grown(data, W, Ht, 4, np.random.default_rng(0))
    assert more.shape == (8, 4)
    assert wider.shape == (5, 4)
    np.testing.assert_array_equal(more[:, :2], W)
    np.testing.assert_array_equal(more[:, 2:], 0.0)
    np.testing.assert_array_equal(wider[:, :2], Ht)
    rest = np.maximum(X - W @ Ht.T, 0.0)
    rest = np.where(rest.sum(axis=1, keepdims=True) == 0, X, rest)
    rest /= np.sqrt(rest.mean(axis=1, keepdims=True))
    for column in wider[:, 2:].T:
        assert np.isclose(rest, column).all(axis=1).any()
    exact = as_data_matrix(W @ Ht.T)
    np.testing.assert_array_equal(_squared_residuals(exact, W, Ht), 0.0)
    assert np.isfinite(grown(exact, W, Ht, 3, np.random.default_rng(0))[1]).all()


def test_a_sample_has_rows_in_order_without_repetition(rng):
    X = np.arange(40.0).reshape(20, 2)
    part = sample(as_data_matrix(X), 6, np.random.default_rng(0)).dense_rows(0, 6)
    assert (np.diff(part[:, 0]) > 0).all()
    assert set(part[:, 0]) <= set(X[:, 0])
    whole = as_data_matrix(X)
    assert sample(whole, 20, rng) is whole
    assert sample(whole, None, rng) is whole
    assert sample(whole, 19, rng).shape == (19, 2)


def test_consensus_of_labels():
    labels = np.array([[0, 0, 1, 1], [1, 1, 0, 1]])
    found = consensus_matrix(labels)
    np.testing.assert_array_equal(found, [[1, 1, 0, 0.5], [1, 1, 0, 0.5], [0, 0, 1, 0.5], [0.5, 0.5, 0.5, 1]])
    distances = 1.0 - found[np.triu_indices(4, 1)]
    expected = np.corrcoef(distances, cophenet(linkage(distances, "average")))[0, 1]
    assert cophenetic_correlation(found) == pytest.approx(expected)
    assert cophenetic_correlation(np.eye(3)) == 1.0
    assert cophenetic_correlation(np.ones((1, 1))) == 1.0
    assert cophenetic_correlation(np.full((3, 3), 0.5)) == 0.0
    assert dispersion(found) == pytest.approx(10 / 16)
    assert dispersion(np.full((2, 2), 0.5)) == 0.0
    assert _jackknife([1.0, 2.0, 4.0]) == pytest.approx(np.sqrt(2 / 3 * np.var([1.0, 2.0, 4.0]) * 3))


def test_the_largest_rank_as_stable_as_the_best():
    spread = np.array([0.0, 0.04, 0.0, 0.0])
    curve = RankCurve("agreement", (2, 3, 4, 5), np.array([0.9, 0.95, 0.941, 0.93]), spread)
    assert largest_as_stable(curve, 16) == 4  # 0.04 / sqrt(16) = 0.01
    assert largest_as_stable(curve, 4) == 5
    same = RankCurve("agreement", (2, 3), np.array([0.9, 0.9 - 0.9 * CLOSE]), np.zeros(2))
    assert largest_as_stable(same, 4) == 3
    less = RankCurve("agreement", (2, 3), np.array([0.9, 0.9 - 1.1 * CLOSE]), np.zeros(2))
    assert largest_as_stable(less, 4) == 2


def test_limits_of_a_problem(rng):
    X = rng.random((9, 7))
    problem = rank_problem(as_data_matrix(X), 2, None, None)
    assert (problem.k_max, problem.side, len(problem.singular_values)) == (3, 7, 4)
    np.testing.assert_allclose(problem.singular_values, np.linalg.svd(X)[1][:4])
    assert problem.limit_words() == "k_max=3 (the default)"
    assert rank_problem(as_data_matrix(X), 2, 99, None).k_max == 6
    assert rank_problem(as_data_matrix(X), 5, None, None).k_max == 5
    assert rank_problem(as_data_matrix(X), 2, None, [3, 5]).within() == [3, 5]
    low = rng.random((9, 2)) @ rng.random((2, 7))
    problem = rank_problem(as_data_matrix(low), 2, 5, None)
    assert (problem.last, problem.numerical_rank) == (2, 2)
    assert problem.limit_words() == "k_max=2 (the numerical rank)"
    assert estimate_rank(np.zeros((4, 4))).reason.startswith("X is zero")
    assert estimate_rank(rng.random((5, 2))).rank == 1
    assert "fewer than k_min=4" in estimate_rank(low, k_min=4).reason
    assert estimate_rank(low, k_min=4).rank == 2


def test_two_estimates_that_agree_are_followed():
    def estimate(rank, curve=None):
        curves = (
            ()
            if curve is None
            else (
                RankCurve(
                    "singular-value ratio",
                    tuple(range(2, 2 + len(curve))),
                    np.array(curve),
                    np.zeros(len(curve)),
                ),
            )
        )
        return RankResult(rank, {}, "so.", "x", np.ones(3), 3, 2, 9, curves)

    flat = [1.2, 1.3, 1.25, 1.2]
    names = ("singular-value-ratio", "cross-validation", "stability")

    def chosen(*ranks, curve=flat, **options):
        found = {name: estimate(rank, curve) for name, rank in zip(names, ranks, strict=True)}
        return recommend(found, **options)

    assert chosen(3, 3, 3)[0] == 3
    assert chosen(3, 3, 3)[1].startswith("all agree")
    assert chosen(3, 4, 9)[0] == 4
    assert chosen(9, 4, 5)[0] == 4
    assert chosen(3, 9, 3)[0] == 9  # the ratio does not stand out
    assert chosen(3, 9, 3, curve=[1.01, 1.4, 1.01, 1.01, 1.3])[0] == 3
    assert chosen(2, 5, 9)[0] == 5
    assert "They differ" in chosen(2, 5, 9)[1]
    assert chosen(2, 5, 9, curve=[9.0, 1.1, 1.1])[0] == 2
    assert chosen(2, 5, 2, curve=[9.0, 1.1, 1.1], incomplete=True)[0] == 5
    assert recommend({"stability": estimate(4, flat)})[0] == 4


@pytest.mark.parametrize("rank", [2, 4, 9])
def test_the_chosen_candidate_is_marked(rank):
    curve = RankCurve("error", (2, 4), [0.5, 0.25], [0.1, 0.2], "smaller")
    html = RankResult(rank, {}, "so", "x", np.ones(2), 2, 2, 9, (curve,))._repr_html_()
    plain = RankResult(rank, {}, "so", "x", np.ones(2), 2, 2, 9)._repr_html_()
    assert "error" not in plain
    assert "error" in html
    bold = re.findall(r"font-weight:bold[^>]*>(\d+)<", html)
    assert bold == ([str(rank)] if rank in (2, 4) else [])
