"""SymNMF, GeoNMF and the search for pure nodes, step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications.communities import symnmf
from nonneg.applications.communities.eigenvectors import Eigenpairs, leading_eigenvectors
from nonneg.applications.communities.geonmf import GeoNMFOptions, _corners, _nearly_pure, geonmf
from nonneg.applications.communities.methods import (
    METHODS,
    Problem,
    Search,
    SearchOptions,
    _in_rows_of,
    _likelihood,
    _spread,
    checked_params,
)
from nonneg.applications.communities.recovery import (
    Memberships,
)
from nonneg.applications.communities.spoc import as_selection
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnsupportedError


def symmetric(n, rng, p=0.5):
    A = np.triu(rng.integers(1, 5, (n, n)) * (rng.random((n, n)) < p), 1).astype(float)
    A[np.arange(n - 1), np.arange(1, n)] += 1.0
    return sp.csr_array(A + A.T)


def search(method="spa", values=(3.0, 2.0), next_value=1.0, residual=1e-12, clipped=0.0, kept=None, n_seen=5):
    pairs = Eigenpairs(np.array(values), np.eye(5)[:, :2], residual, next_value)
    memberships = Memberships(np.full((5, 2), 0.5), np.ones(5, dtype=bool), clipped)
    return Search(method, pairs, as_selection(np.array([0, 1]), method), memberships, np.eye(2), kept, n_seen)


@pytest.mark.parametrize("n_first", [None, 5])
def test_a_step_of_symnmf_lowers_its_loss(n_first, rng):
    A = symmetric(12, rng).toarray()
    if n_first is not None:
        A[:n_first, :n_first] = A[n_first:, n_first:] = 0.0
        A[:n_first, n_first:] += 0.5
        A[n_first:, :n_first] += 0.5
    S = symnmf.normalized_adjacency(sp.csr_array(A), 0.25)
    half_norm = 0.5 * float(np.sum(S.toarray() ** 2))
    H = rng.random((12, 3))
    sides = (slice(0, n_first), slice(n_first, 12))

    def loss(factor):
        if n_first is None:
            return 0.5 * np.sum((S.toarray() - factor @ factor.T) ** 2)
        return np.sum((S.toarray()[:n_first, n_first:] - factor[:n_first] @ factor[n_first:].T) ** 2)

    step = (
        symnmf._symmetric_step(S, half_norm)
        if n_first is None
        else symnmf._two_sided_step(S, half_norm, sides)
    )
    state = symnmf._Factors(H, H, S @ H)
    for _ in range(3):
        before = loss(state.H)
        state, said = step(state)
        assert said["loss"] == pytest.approx(loss(state.H))
        assert said["loss"] < before
        np.testing.assert_allclose(state.cross, S @ state.H, atol=1e-12)
        assert state.H.min() >= 0
        if n_first is not None:
            first, second = (np.linalg.norm(state.H[side], axis=0) for side in sides)
            np.testing.assert_allclose(first, second)


@pytest.mark.parametrize(
    ("factor", "wanted"),
    [(1.0, "holds"), (0.97, "holds"), (0.0, "fails")],
)
def test_the_error_of_symnmf_is_compared_with_the_best_possible(factor, wanted, rng):
    values = np.array([2.0, 1.0, 0.8, -0.5])
    S = sp.csr_array(np.diag(values))
    pairs = Eigenpairs(values[:2], np.eye(4)[:, :2], 0.0, 0.8)
    H = factor * np.sqrt(np.diag(np.maximum(values, 0)))[:, :2]
    square = np.sum(values**2)
    found = symnmf._error_statement(H, S, pairs, square / 2, None)
    error = np.sqrt(np.sum((np.diag(values) - H @ H.T) ** 2) / square)
    bound = np.sqrt((0.8**2 + 0.5**2) / square)
    assert found.quantities["relative_error"] == pytest.approx(error)
    assert found.quantities["lower_bound"] == pytest.approx(bound)
    assert found.number == pytest.approx(error / bound)
    assert found.holds == (wanted == "holds")
    # Residuals widen the bound; values below zero explain nothing.
    wide = symnmf._error_statement(H, S, pairs._replace(residual=0.01), square / 2, None)
    explained = 2.02**2 + 1.02**2
    assert wide.quantities["lower_bound"] == pytest.approx(np.sqrt((square - explained) / square))
    below = symnmf._error_statement(H, S, pairs._replace(values=np.array([2.0, -0.5])), square / 2, None)
    assert below.quantities["lower_bound"] == pytest.approx(np.sqrt((square - 4.0) / square))


def test_nothing_is_claimed_where_the_bound_says_nothing():
    S = sp.csr_array(np.diag([2.0, 1.0]))
    exact = np.sqrt(np.diag([2.0, 1.0]))
    pairs = Eigenpairs(np.array([2.0, 1.0]), np.eye(2), 0.0, None)
    found = symnmf._error_statement(exact, S, pairs, 2.5, None)  # all is explained
    assert (found.number, found.holds) == (None, False)
    assert "no positive semidefinite matrix of rank 2 has one below 0" in found.sentence
    wrong = pairs._replace(values=np.array([1.0, 0.5]))  # not the leading values: the bound is too large
    found = symnmf._error_statement(exact, S, wrong, 2.5, None)
    assert (found.number, found.holds) == (None, False)
    assert "the bound is wrong" in found.sentence


def test_a_result_of_symnmf_is_in_the_scale_of_the_matrix(rng):
    S = symnmf.normalized_adjacency(symmetric(12, rng), 0.25)
    pairs = leading_eigenvectors(S, 2, spectrum="algebraic")
    start = rng.dirichlet(np.ones(2), 12)
    found = symnmf.symnmf(S, pairs, start, threshold=0.3, max_iter=1, tol=0.0)
    assert found.n_iter == 1
    # The first loss is that of the start, scaled as well as possible.
    H = start * np.sqrt(np.asarray(S.sum(axis=1)))[:, None]
    dense = S.toarray()
    scale = np.sum(dense * (H @ H.T)) / np.sum((H @ H.T) ** 2)
    assert found.history.loss[-1] <= 0.5 * np.sum((dense - scale * H @ H.T) ** 2)
    W = found.factor
    whole = W / W.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.whole.values, whole)
    cut = np.where((whole < 0.3) & (whole < whole.max(axis=1, keepdims=True)), 0.0, whole)
    np.testing.assert_allclose(found.memberships.values, cut / cut.sum(axis=1, keepdims=True))
    zero = symnmf.symnmf(S, pairs, np.zeros((12, 2)), threshold=0.1, max_iter=1)
    assert np.isfinite(zero.factor).all()


def test_pure_nodes_belong_most_and_are_different():
    memberships = np.array([[0.9, 0.1], [0.901, 0.099], [0.2, 0.8], [0.0, 0.0]])
    factor = np.array([[5.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    assert symnmf._pure_nodes(memberships, factor).tolist() == [0, 2]  # nearly equal: the stronger
    same = np.array([[1.0, 1.0], [0.5, 0.5]])
    assert symnmf._pure_nodes(same, same).tolist() == [0, 1]


@pytest.mark.parametrize(
    "wrong",
    [{"slack": 0.0}, {"slack": 0.96}, {"quantile": 0.0}, {"quantile": 1.01}, {"n_init": 0}],
)
def test_options_of_geonmf_have_a_range(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        GeoNMFOptions(**wrong)
    assert GeoNMFOptions(slack=0.95, quantile=1.0, n_init=1).quantile == 1.0


def test_a_corner_is_the_weakest_node_above_the_quantile(rng):
    points = np.concatenate([rng.normal(0.0, 0.01, (10, 2)), rng.normal(5.0, 0.01, (10, 2))])
    strengths = np.concatenate([np.arange(10.0), np.arange(10.0)[::-1]])
    # MATLAB's quantile of ten values at 0.65 is the seventh smallest.
    assert _corners(points, strengths, 2, 0.65, 3, 0).tolist() == [6, 13]
    assert _corners(points, strengths, 2, 1.0, 3, 0).tolist() == [9, 10]
    assert _corners(points, strengths, 2, 0.04, 3, 0).tolist() == [0, 19]
    assert _corners(np.repeat(points[:2], 5, axis=0), strengths[:10], 3, 0.9, 1, 0) is None
    lengths = np.array([1.0, 0.5, 0.09])
    slack, near = _nearly_pure(lengths, 0.5, 1)
    assert (slack, near.tolist()) == (0.5, [0])  # the half is not above it
    slack, near = _nearly_pure(lengths, 0.9, 3)
    assert near.tolist() == [0, 1, 2]
    assert slack == pytest.approx(0.925)
    slack, near = _nearly_pure(np.array([1.0, 0.0]), 0.9, 2)
    assert (len(near), slack) == (1, pytest.approx(0.95))


def test_geonmf_reports_its_last_round():
    A = sp.csr_array(sp.block_diag([np.ones((5, 5))] * 3))
    pairs = leading_eigenvectors(A, 3, spectrum="algebraic")
    found = geonmf(pairs.values, pairs.vectors, A.sum(axis=1), rng=0)
    # All nodes have the same length: all are pure at once.
    assert (found.n_rounds, found.n_nearly_pure) == (1, 15)
    assert found.condition == pytest.approx(1.0)
    assert (np.diff(found.pure) > 0).all()
    assert found.memberships.clipped == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found.memberships.values.sum(axis=1), 1.0)
    lost = np.vstack([pairs.vectors, np.zeros((1, 3))])
    found = geonmf(pairs.values, lost, np.append(A.sum(axis=1), 1.0), rng=0)
    assert found.memberships.reached.tolist() == [True] * 15 + [False]
    assert not found.memberships.values[15].any()
    with pytest.raises(InvalidParameterError, match="needs 3 eigenvalues above 0"):
        geonmf(np.array([3.0, 1.0, 0.0]), pairs.vectors, A.sum(axis=1))
    with pytest.raises(InvalidDataError, match="fewer than 3 clusters"):
        geonmf(pairs.values, np.full((15, 3), 0.2), A.sum(axis=1), rng=0)


def test_eigenvectors_are_computed_once_for_each_spectrum(rng):
    A = symmetric(10, rng)
    problem = Problem(A, 2)
    assert problem.pairs("auto") is problem.pairs("auto")
    assert set(problem.found) == {"auto"}
    problem.pairs("algebraic")
    assert set(problem.found) == {"auto", "algebraic"}
    np.testing.assert_allclose(problem.degrees, A.sum(axis=1))
    sides = Problem(A, 2, n_first=4)
    sides.pairs("magnitude")
    assert set(sides.found) == {"algebraic"}  # the others mirror them
    given = Problem(A, 2, spectrum="magnitude")
    given.pairs("algebraic")
    assert set(given.found) == {"magnitude"}


def test_a_search_among_some_nodes_is_told_of_all(rng):
    vectors, rows = rng.random((8, 3)), np.array([1, 4, 6, 7])
    found = replace(as_selection(np.array([0, 2]), "spa"), row_maxima=np.array([0.4, 0.3, 0.2, 0.1]))
    whole = _in_rows_of(found, rows, vectors)
    assert whole.anchors.tolist() == [1, 6]
    np.testing.assert_array_equal(whole.row_maxima, [0, 0.4, 0, 0, 0.3, 0, 0.2, 0.1])
    assert _in_rows_of(as_selection(np.array([3]), "spa"), rows, vectors).row_maxima is None
    members = replace(found, members=(np.array([0, 1]), np.array([2])), components=np.zeros((2, 3)))
    whole = _in_rows_of(members, rows, vectors)
    assert [group.tolist() for group in whole.members] == [[1, 4], [6]]
    np.testing.assert_allclose(whole.components, [vectors[[1, 4]].mean(axis=0), vectors[6]])
    # Of near twins with large row maxima one is taken.
    points = np.array([[1.0, 0.0], [0.999, 0.0], [0.0, 0.5]])
    chosen = _spread(replace(found, row_maxima=np.array([0.9, 0.8, 0.5])), points, 2)
    assert chosen.anchors.tolist() == [0, 2]
    np.testing.assert_array_equal(chosen.scores, [0.9, 0.5])


def test_nodes_that_are_not_reached_may_belong_anywhere(rng):
    A = symmetric(9, rng)
    values = rng.dirichlet(np.ones(2), 9)
    reached = np.arange(9) < 7
    known = np.where(reached[:, None], values, 0.5)
    found = _likelihood(Problem(A, 2), Memberships(values, reached, 0.0))
    assert found == _likelihood(Problem(A, 2), Memberships(known, np.ones(9, dtype=bool), 0.0))
    assert found != _likelihood(Problem(A, 2), Memberships(values, np.ones(9, dtype=bool), 0.0))


def test_parameters_of_a_method_are_checked():
    assert checked_params("merit", {"lam": 0.1}, "spread", {"tol": None, "max_iter": 3}) == {
        "lam": 0.1,
        "max_iter": 3,
    }
    assert checked_params("spa", None, "row-maxima", {"tol": None}) == {}
    with pytest.raises(UnsupportedError, match="choice='spread'"):
        checked_params("spa", None, "spread", {})
    with pytest.raises(UnsupportedError, match="tol"):
        checked_params("spa", None, "row-maxima", {"tol": 0.1})
    assert SearchOptions().energy == 0.99
    assert METHODS["merit"].convex
    assert not METHODS["spa"].convex
    assert [
        search(method=name).unreached(rule)
        for name in ("spa", "spoc")
        for rule in ("least-squares", "simplex")
    ] == ["mean", None, None, None]
