"""SymNMF and the search for pure nodes, step by step."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.graphs import connected_graph

from nonneg.applications.communities import methods, symnmf
from nonneg.applications.communities.eigenvectors import Eigenpairs, leading_eigenvectors
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
from nonneg.applications.communities.recovery import Memberships
from nonneg.applications.communities.spoc import as_selection
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnsupportedError


def search(method="spa", values=(3.0, 2.0), next_value=1.0, residual=1e-12, clipped=0.0, kept=None, n_seen=5):
    pairs = Eigenpairs(np.array(values), np.eye(5)[:, :2], residual, next_value)
    memberships = Memberships(np.full((5, 2), 0.5), np.ones(5, dtype=bool), clipped)
    return Search(method, pairs, as_selection(np.array([0, 1]), method), memberships, np.eye(2), kept, n_seen)


@pytest.mark.parametrize("n_first", [None, 5])
def test_a_step_of_symnmf_lowers_its_loss(n_first, rng):
    A = connected_graph(12, rng).toarray()
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
    S = symnmf.normalized_adjacency(connected_graph(12, rng), 0.25)
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


def test_eigenvectors_are_computed_once_for_each_spectrum(rng):
    A = connected_graph(10, rng)
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
    A = connected_graph(9, rng)
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


def known_pairs(rng, n=40, k=2):
    """Rows of two eigenvectors: mixtures of two corners."""
    shares = rng.dirichlet(np.ones(k), n)
    shares[:k] = np.eye(k)
    vectors = shares @ np.array([[0.3, 0.1], [0.1, -0.3]])
    return Eigenpairs(np.array([3.0, 2.0]), vectors, 0.0, 1.0), shares


@pytest.mark.parametrize(
    ("name", "spectrum", "options"),
    [
        ("spa", "auto", {}),
        ("smoothed-spa", "auto", {"n_members": 2}),
        ("merit", "magnitude", {"lam": 5e-7, "tol": 0.25, "max_iter": 120}),
        ("merit-0", "magnitude", {"lam": 0.0, "tol": 0.25, "max_iter": 120}),
    ],
)
def test_methods_get_the_settings_of_their_authors(name, spectrum, options, rng, monkeypatch):
    pairs, shares = known_pairs(rng)
    problem = Problem(sp.csr_array(np.eye(40)), 2, found={spectrum: pairs})
    seen = []

    def select(points, k, **given):
        seen.append((points, given))
        return replace(as_selection(np.array([0, 1]), "spa"), row_maxima=np.full(len(points), 0.5))

    monkeypatch.setattr(methods, "select_anchors", select)
    search = METHODS[name].run(problem, SearchOptions(energy=1.0, rng=7, n_jobs=1))
    points, given = seen[0]
    np.testing.assert_array_equal(points, pairs.vectors)
    assert (given["method"], given["rng"], given["n_jobs"]) == (name.removesuffix("-0"), 7, 1)
    flat = given | given.get("method_params", {})
    assert {key: flat[key] for key in options} == options
    np.testing.assert_allclose(search.memberships.values, shares, atol=1e-10)
    np.testing.assert_allclose(search.connectivity, (pairs.vectors[:2] * pairs.values) @ pairs.vectors[:2].T)
    assert (search.n_seen, len(search.kept)) == (40, 40)


def test_convex_methods_look_at_some_nodes(rng, monkeypatch):
    pairs, _ = known_pairs(rng)
    problem = Problem(sp.csr_array(np.eye(40)), 2, found={"magnitude": pairs, "auto": pairs})
    seen = []

    def select(points, k, **given):
        seen.append(points)
        return replace(as_selection(np.array([0, 1]), "spa"), row_maxima=np.linspace(1.0, 0.5, len(points)))

    monkeypatch.setattr(methods, "select_anchors", select)
    monkeypatch.setattr(methods, "recover", lambda *given: None)
    monkeypatch.setattr(methods, "N_CANDIDATES", 12)
    for many, n_candidates, expected in ((40, None, 40), (39, None, 12), (40, 9, 9), (40, 40, 40)):
        monkeypatch.setattr(methods, "MANY_NODES", many)
        options = SearchOptions(energy=1.0, n_candidates=n_candidates)
        found = METHODS["merit"].run(problem, options)
        assert (len(seen[-1]), found.n_seen, len(found.kept)) == (expected, expected, 40)
        # The squared norm of all rows is their number of columns; that of a part is brought there.
        if expected < 40:
            assert np.sum(seen[-1] ** 2) == pytest.approx(2.0)
    METHODS["spa"].run(problem, SearchOptions(energy=1.0, n_candidates=9))
    assert len(seen[-1]) == 40  # one at a time among all
    with pytest.raises(InvalidParameterError, match="n_communities=2 is more than the 1 nodes among which"):
        METHODS["merit"].run(problem, SearchOptions(energy=1.0, n_candidates=1))
    METHODS["merit"].run(problem, SearchOptions(energy=1.0, n_candidates=2))
    before = len(seen)
    METHODS["merit"].run(problem, SearchOptions(energy=1.0, choice="spread"))
    assert len(seen) == before + 2  # a second search, among points times their row maxima
    np.testing.assert_allclose(seen[-1], seen[-2] * np.linspace(1.0, 0.5, 40)[:, None])


@pytest.mark.parametrize(
    ("k", "below", "chosen"),
    [(5, 0, ["symnmf"]), (5, 1, ["symnmf"]), (5, 2, ["symnmf", "smoothed-spa"]), (5, 3, ["smoothed-spa"]),
     (2, 1, ["smoothed-spa"]), (3, 1, ["symnmf", "smoothed-spa"]), (1, 1, ["symnmf"])],
)  # fmt: skip
def test_eigenvalues_below_zero_choose_the_method(k, below, chosen, rng, monkeypatch):
    A = connected_graph(9, rng)
    values = np.ones(k)
    values[:below] = -1.0
    ran, scores = [], {}

    def entry(name):
        def run(problem, options):
            ran.append(name)
            found = search(method=name)
            memberships = found.memberships._replace(clipped=scores[name])
            return replace(found, memberships=memberships, facts={"own": 1})

        return SimpleNamespace(run=run)

    monkeypatch.setattr(
        methods, "leading_eigenvectors", lambda *given, **options: Eigenpairs(values, None, 0.0, None)
    )
    monkeypatch.setattr(methods, "_likelihood", lambda problem, memberships: memberships.clipped)
    monkeypatch.setattr(methods, "METHODS", {name: entry(name) for name in ("symnmf", "smoothed-spa")})
    for better in ("symnmf", "smoothed-spa"):
        ran.clear()
        scores.update({"symnmf": 0.0, "smoothed-spa": 0.0} | {better: 1.0})
        found = methods._by_spectrum(Problem(A, k), SearchOptions())
        assert ran == chosen
        assert found.method == (better if len(chosen) > 1 else chosen[0])
        assert dict(found.facts) == {"own": 1, "n_below_zero": 0 if k == 1 else below}
    ran.clear()
    assert methods._by_spectrum(Problem(A, k, n_first=4), SearchOptions()).facts["n_below_zero"] == 0
    assert ran == ["symnmf"]


def test_symnmf_takes_the_start_that_explains_the_edges_better(rng, monkeypatch):
    A = connected_graph(14, rng)
    real, lost = methods._by_anchors, set()

    def by_anchors(name):
        def run(problem, options):
            assert (name, dict(options.params), options.recovery) == ("smoothed-spa", {}, "least-squares")
            kind = "plain" if problem.adjacency is A else "normalized"
            if kind in lost:
                raise InvalidDataError(f"{kind} failed")
            return real(name)(problem, options)

        return run

    monkeypatch.setattr(methods, "_by_anchors", by_anchors)
    options = SearchOptions(params={"max_iter": 3, "threshold": 0.2}, recovery="simplex")
    scores = {}
    for name, failing in (("both", set()), ("normalized", {"plain"}), ("plain", {"normalized"})):
        lost.clear()
        lost.update(failing)
        found = METHODS["symnmf"].run(Problem(A, 2), options)
        assert found.selection.n_iter <= 3
        scores[name] = found.memberships.values
    assert any(np.array_equal(scores["both"], scores[name]) for name in ("plain", "normalized"))
    lost.update({"plain", "normalized"})
    with pytest.raises(InvalidDataError, match="normalized failed"):
        METHODS["symnmf"].run(Problem(A, 2), options)


def test_symnmf_of_two_sides_fits_the_block_where_they_meet(rng):
    block = rng.random((5, 7))
    A = sp.csr_array(np.block([[np.zeros((5, 5)), block], [block.T, np.zeros((7, 7))]]))
    pairs = leading_eigenvectors(A, 2, spectrum="algebraic")
    found = symnmf.symnmf(
        A, pairs, rng.dirichlet(np.ones(2), 12), threshold=0.0, n_first=5, max_iter=4, tol=0.0
    )
    fit = found.factor[:5] @ found.factor[5:].T
    assert found.history.loss[-1] == pytest.approx(np.sum((block - fit) ** 2))
    error = np.sqrt(np.sum((block - fit) ** 2) / np.sum(block**2))
    assert found.certificate["symnmf-error"].quantities["relative_error"] == pytest.approx(error)
    best = np.sqrt(1.0 - np.sum(np.linalg.svd(block)[1][:2] ** 2) / np.sum(block**2))
    assert found.certificate["symnmf-error"].quantities["lower_bound"] == pytest.approx(best)
    # A row is compared with the largest one.
    far = symnmf._memberships(np.array([[1e20, 0.0], [1e3, 1e3], [1e9, 0.0]]), 0.1)
    assert far.reached.tolist() == [True, False, True]
