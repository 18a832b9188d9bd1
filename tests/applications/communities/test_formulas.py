"""Parts of the community methods against plain definitions, at the ends of their ranges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.graphs import connected_graph

from nonneg.applications.communities import candidates, certificate, eigenvectors, two_sided
from nonneg.applications.communities.comparison import compare_labels
from nonneg.applications.communities.eigenvectors import Eigenpairs, leading_eigenvectors
from nonneg.applications.communities.graph import Graph
from nonneg.applications.communities.methods import Search
from nonneg.applications.communities.recovery import (
    Memberships,
    clipped_fraction,
    coordinates,
    fill_unreached,
    recover,
)
from nonneg.applications.communities.spoc import as_selection
from nonneg.exceptions import InvalidDataError, ShapeError


def test_a_directed_graph_has_a_row_for_sending_and_one_for_receiving():
    A = np.array([[0.0, 2.0, 0, 0], [0, 0, 3.0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    graph = Graph(sp.csr_array(A), directed=True)
    found = two_sided.joined(graph)
    assert found.nodes.tolist() == [0, 1, 1, 2]
    assert (found.n_first, found.unit) == (2, 1.0)
    table = np.array([[2.0, 0.0], [0.0, 3.0]])
    np.testing.assert_array_equal(
        found.adjacency.toarray(), np.block([[np.zeros((2, 2)), table], [table.T, np.zeros((2, 2))]])
    )
    memberships = np.array([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5], [0.0, 1.0]])
    sides = two_sided.split(graph, found, memberships)
    nan = [np.nan, np.nan]
    np.testing.assert_array_equal(sides.sending, [[1.0, 0.0], [0.25, 0.75], nan, nan])
    np.testing.assert_array_equal(sides.receiving, [nan, [0.5, 0.5], [0.0, 1.0], nan])
    # Node 1 sends 3 and receives 2.
    mean = (3 * np.array([0.25, 0.75]) + 2 * np.array([0.5, 0.5])) / 5
    np.testing.assert_allclose(sides.both, [[1.0, 0.0], mean, [0.0, 1.0], nan])
    assert two_sided.split(graph, found, memberships.astype(np.float32)).both.dtype == np.float32
    light = Graph(sp.csr_array(0.01 * A), directed=True)
    np.testing.assert_allclose(two_sided.split(light, found, memberships).both, sides.both)


def test_the_first_side_of_a_bipartite_graph_comes_first():
    path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    whole = np.zeros((6, 6))
    whole[:5, :5] = path
    graph = Graph(sp.csr_array(whole), sides=np.array([0, 1, 0, 1, 0, 0]))
    found = two_sided.joined(graph, 2)
    assert (found.nodes.tolist(), found.n_first) == ([0, 2, 4, 1, 3], 3)
    np.testing.assert_array_equal(found.adjacency.toarray(), whole[np.ix_(found.nodes, found.nodes)])
    # A side of two nodes has no three communities: the sides are ignored.
    found = two_sided.joined(graph, 3)
    assert (found.nodes.tolist(), found.n_first) == ([0, 1, 2, 3, 4], None)
    np.testing.assert_array_equal(found.adjacency.toarray(), path)
    whole = two_sided.joined(Graph(sp.csr_array(path), sides=np.array([0, 1, 0, 1, 0])))  # no node alone
    np.testing.assert_array_equal(whole.adjacency.toarray(), path[np.ix_(whole.nodes, whole.nodes)])
    star = np.zeros((3, 3))
    star[0, 1:] = star[1:, 0] = 1.0
    assert two_sided.joined(Graph(sp.csr_array(star), sides=np.array([0, 1, 1]))).n_first == 1
    plain = two_sided.joined(Graph(sp.csr_array(path)))
    assert (plain.nodes.tolist(), plain.n_first) == ([0, 1, 2, 3, 4], None)


@pytest.mark.parametrize(
    ("largest", "scaled"), [(3.0, False), (1e59, False), (1e-59, False), (1e61, True), (1e-61, True)]
)
def test_huge_and_tiny_weights_are_divided_by_a_power_of_two(largest, scaled):
    A = sp.csr_array(np.array([[0.0, largest], [largest / 3, 0.0]]))
    found, unit = two_sided._in_range(A)
    assert (unit != 1.0) == scaled
    assert np.frexp(unit)[0] == 0.5
    np.testing.assert_array_equal((found * unit).toarray(), A.toarray())
    assert not scaled or 0.5 <= found.max() < 1.0


def test_the_order_of_eigenvalues():
    values = np.array([-5.0, -4.1, -1.0, 0.5, 4.0, 5.0])
    spread = np.full((9, 6), 1 / 3)
    for spectrum, expected in (
        ("algebraic", [5.0, 4.0, 0.5, -1.0, -4.1, -5.0]), ("magnitude", [5.0, -5.0, -4.1, 4.0, -1.0, 0.5]),
        ("auto", [5.0, -5.0, 4.0, -4.1, -1.0, 0.5]),  # -4.1 is not clearly larger than 4
    ):  # fmt: skip
        assert values[eigenvectors._leading_first(values, spread, spectrum)].tolist() == expected
    hub = spread.copy()
    hub[0, 0] = 0.51  # more than a quarter of the squares: one node
    order = eigenvectors._leading_first(values, hub, "auto")
    assert values[order].tolist() == [5.0, 4.0, -4.1, -1.0, 0.5, -5.0]
    assert eigenvectors._leading_first(np.zeros(2), np.eye(2), "magnitude").tolist() == [0, 1]


def test_a_bipartite_graph_cut_between_twins_is_noticed():
    for values, cut in (
        ([3.0, -3.0, -2.0], False), ([-3.0], True), ([3.0], False), ([-3.0, 3.0], False),
        ([2.0, -2.0, -1.0], False), ([-1.0, 2.0, -2.0], True), ([3.0, -3.0, 1.0, -1.0, -0.5], True),
        ([-1.0, -2.0], False),
    ):  # fmt: skip
        expected = cut or values in ([3.0, -3.0, -2.0], [2.0, -2.0, -1.0])
        assert eigenvectors._cuts_a_pair(np.array(values)) == expected


@pytest.mark.parametrize("k", [1, 2, 6, 10, 11, 12])
def test_eigenvectors_satisfy_their_equation(k, rng, monkeypatch):
    A = connected_graph(12, rng)
    values = np.linalg.eigvalsh(A.toarray())
    order = np.argsort(-np.abs(values))
    for nodes in (600, 12, 0):
        monkeypatch.setattr(eigenvectors, "DENSE_NODES", nodes)
        found = leading_eigenvectors(A, k)
        np.testing.assert_allclose(found.values, values[order[:k]], atol=1e-10)
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-10)
        gaps = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
        assert found.residual == pytest.approx(gaps.max() / np.abs(found.values).max())
        known = (nodes or k >= 11) and k < 12
        assert (found.next_value is None) == (not known)
        if known:
            assert found.next_value == pytest.approx(values[order[k]])


@pytest.mark.parametrize("spectrum", ["auto", "magnitude", "algebraic"])
def test_iterations_find_what_the_whole_matrix_has(spectrum, rng, monkeypatch):
    groups = np.arange(45) % 3
    A = np.where(groups[:, None] == groups, 0.0, 1.0) + 0.05 * rng.random(
        (45, 45)
    )  # groups that avoid themselves
    A = sp.csr_array(A + A.T)
    whole = leading_eigenvectors(A, 3, spectrum=spectrum)
    monkeypatch.setattr(eigenvectors, "DENSE_NODES", 0)
    found = leading_eigenvectors(A, 3, spectrum=spectrum)
    np.testing.assert_allclose(found.values, whole.values)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, whole.vectors @ whole.vectors.T, atol=1e-9)
    assert (found.values < 0).sum() == (0 if spectrum == "algebraic" else 2)
    small = leading_eigenvectors(sp.csr_array(A * 1e-3), 3, spectrum=spectrum)
    np.testing.assert_allclose(small.values, 1e-3 * whole.values)
    monkeypatch.setattr(eigenvectors, "MAX_RESTARTS", 1)
    noise = connected_graph(200, rng, 0.05)
    with pytest.raises(
        InvalidDataError, match=r"Only \d of 4 leading eigenvectors could be found in \d+ prod"
    ):
        leading_eigenvectors(noise, 4, spectrum=spectrum)


def test_products_are_counted(rng, capsys):
    A = connected_graph(7, rng)
    for verbose in (0, 1):
        counter = eigenvectors._Counter(A, verbose)
        for n_products in (1, 2, 3):
            vector = rng.random(7)
            np.testing.assert_allclose(counter(vector), A @ vector)
            assert counter.n_products == n_products
        np.testing.assert_array_equal(counter._rows(2, 5).toarray(), A.toarray()[2:5])
        counter.close()
        said = capsys.readouterr().err
        assert ("eigenvectors: 3 products in all" in said) == (verbose == 1)
        if verbose:
            assert 0.0 <= float(said.split(", ")[1].removesuffix(" s\n")) < 60.0


def test_memberships_are_coordinates_between_the_corners():
    corners = np.array([[2.0, 0.0], [0.0, 4.0]])
    wanted = np.array([[1.0, 0.0], [0.25, 0.75], [0.5, -0.1], [0.0, 0.0], [-1.0, -1.0], [1e-13, 1.0]])
    np.testing.assert_allclose(coordinates(wanted @ corners, corners), wanted)
    found = recover(wanted @ corners, corners)
    np.testing.assert_allclose(
        found.values, [[1.0, 0.0], [0.25, 0.75], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    )
    assert found.values[5, 0] == 0.0  # rounding
    assert found.reached.tolist() == [True, True, True, False, False, True]
    assert found.clipped == pytest.approx(2.1 / 5.6)
    simplex = recover(wanted @ corners, corners, "simplex")
    np.testing.assert_allclose(simplex.values.sum(axis=1), 1.0)
    np.testing.assert_allclose(simplex.values[:2], wanted[:2], atol=1e-9)
    assert simplex.reached.tolist() == [True, True, True, False, True, True]
    assert simplex.clipped == found.clipped
    assert clipped_fraction(np.array([[1.0, -1.0], [2.0, 0.0]])) == 0.25
    assert clipped_fraction(np.zeros((2, 2))) == 0.0
    with pytest.raises(InvalidDataError, match="linearly dependent"):
        coordinates(wanted, np.zeros((2, 2)))


def test_nodes_that_are_not_reached_get_what_the_rule_says():
    found = Memberships(np.array([[1.0, 0.0], [0.5, 0.5], [0.3, 0.3]]), np.array([True, True, False]), 0.0)
    for rule, usual, expected in (
        ("mean", None, [0.75, 0.25]), ("uniform", "mean", [0.5, 0.5]), ("zero", None, [0.0, 0.0]),
        ("nan", None, [np.nan, np.nan]), ("auto", "mean", [0.75, 0.25]), ("auto", None, [0.3, 0.3]),
        ("auto", "zero", [0.0, 0.0]),
    ):  # fmt: skip
        filled = fill_unreached(found, rule, usual)
        np.testing.assert_allclose(filled, [[1.0, 0.0], [0.5, 0.5], expected])
        assert filled is not found.values
    whole = found._replace(reached=np.ones(3, dtype=bool))
    np.testing.assert_array_equal(fill_unreached(whole, "nan"), found.values)


def search(method="spa", values=(3.0, 2.0), next_value=1.0, residual=1e-12, clipped=0.0, kept=None, n_seen=5):
    pairs = Eigenpairs(np.array(values), np.eye(5)[:, :2], residual, next_value)
    memberships = Memberships(np.full((5, 2), 0.5), np.ones(5, dtype=bool), clipped)
    return Search(method, pairs, as_selection(np.array([0, 1]), method), memberships, np.eye(2), kept, n_seen)


@pytest.mark.parametrize(
    ("changes", "name", "number", "holds"),
    [
        ({}, "eigenvectors", 1e-12, True), ({"residual": 1e-8}, "eigenvectors", 1e-8, False),
        ({}, "spectral-gap", 0.5, True), ({"next_value": -1.0}, "spectral-gap", 0.5, True),
        ({"next_value": 2.0}, "spectral-gap", 0.0, False),
        ({"next_value": -3.0}, "spectral-gap", -0.5, False),
        ({"values": (3.0, -2.0), "next_value": 1.5}, "spectral-gap", 0.25, True),
        ({}, "inside-cone", 0.0, True), ({"clipped": 0.1}, "inside-cone", 0.1, False),
        ({"kept": np.arange(4), "n_seen": 3}, "candidates", 0.75, False),
    ],
)  # fmt: skip
def test_what_is_said_of_a_search(changes, name, number, holds):
    found = certificate.community_certificate(search(**changes), 5, 0, 0)
    assert found[name].number == pytest.approx(number)
    assert found[name].holds == holds
    assert "reached-nodes" in found
    if name == "spectral-gap":
        assert ("it may be noise" in found[name].sentence) == (number < 0)
        assert (
            f"eigenvalue that was used ({changes.get('values', (3.0, 2.0))[-1]:.4g})" in found[name].sentence
        )


def test_which_statements_belong_to_a_search():
    def names(**changes):
        return set(certificate.community_certificate(search(**changes), 5, 0, 0).names)

    plain = {"eigenvectors", "spectral-gap", "reached-nodes", "inside-cone"}
    assert names() == plain == names(kept=np.arange(5))
    assert names(next_value=None) == plain - {"spectral-gap"}
    assert names(kept=np.arange(6)) == plain | {"candidates"}
    assert names(method="symnmf") == {"reached-nodes"}
    for method, what in (("symnmf", "The communities reach"), ("spa", "The eigenvectors reach")):
        said = certificate.community_certificate(search(method=method), 5, 0, 0)["reached-nodes"]
        assert said.sentence.startswith(what)
    quantities = certificate.community_certificate(search(kept=np.arange(6)), 5, 0, 0)
    assert quantities["candidates"].quantities == {"candidates": 5, "kept": 6}
    assert quantities["eigenvectors"].quantities == {"largest_value": 3.0, "last_value": 2.0}
    for lost, isolated, holds in ((0, 0, True), (2, 0, False), (0, 1, False), (2, 1, False)):
        said = certificate.community_certificate(search(), 10, lost, isolated)["reached-nodes"]
        assert (said.number, said.holds) == ((lost + isolated) / 10, holds)
        assert f"reach {10 - lost - isolated} of 10 nodes; {lost} have no" in said.sentence
        assert f"and {isolated} have no edges" in said.sentence
        assert said.quantities == {"unreached": lost, "isolated": isolated}


def test_candidates_are_outer_nodes_and_an_even_sample(rng):
    vectors = rng.standard_normal((400, 3))
    kept = np.arange(50, 400)
    assert candidates.candidate_nodes(vectors, kept, 350) is kept
    chosen = candidates.candidate_nodes(vectors, kept, 349)
    assert len(chosen) == 349
    chosen = candidates.candidate_nodes(vectors, kept, 100)
    assert len(np.unique(chosen)) == 100
    assert (np.diff(chosen) > 0).all()
    assert chosen.min() >= 50
    outer = kept[candidates._outer(vectors[kept], 50)]
    assert 4 < len(outer) <= 50
    assert set(outer) <= set(chosen)
    # The longest and the shortest of the others, and every few between them.
    order = kept[np.argsort(-np.linalg.norm(vectors[kept], axis=1))]
    others = order[~np.isin(order, outer)]
    at = np.flatnonzero(np.isin(others, chosen))
    assert (at[0], at[-1], len(at)) == (0, len(others) - 1, 100 - len(outer))
    assert np.ptp(np.diff(at)) <= 1


def test_outer_nodes_are_the_farthest_in_some_direction(rng):
    corners = 10.0 * np.concatenate([np.eye(2), -np.eye(2)])
    points = np.concatenate([rng.uniform(-1.0, 1.0, (60, 2)), corners])
    assert sorted(candidates._outer(points, 4)) == [60, 61, 62, 63]
    # Two of each direction: inner points only after the corners.
    found = candidates._outer(points, 4 * candidates.N_DIRECTIONS)
    assert set(found[:4]) == {60, 61, 62, 63}
    assert len(found) > 4
    assert sorted(candidates._outer(points, 2 * candidates.N_DIRECTIONS)) == [60, 61, 62, 63]  # one of each
    assert len(candidates._outer(points[:2], 9)) == 2


def test_energy_keeps_the_longest_rows():
    vectors = np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 2.0]])  # squares 9, 1, 0, 4
    assert sorted(candidates.energetic_nodes(vectors, 1.0).tolist()) == [0, 1, 3]  # zeros hold nothing
    assert sorted(candidates.energetic_nodes(vectors, 0.9).tolist()) == [0, 3]  # 13 of 14
    assert sorted(candidates.energetic_nodes(vectors, 0.95).tolist()) == [0, 1, 3]
    assert candidates.energetic_nodes(vectors, 0.5).tolist() == [0]


def test_labels_are_compared_where_both_are_known():
    found = np.array([0, 0, 1, 1, -1, 1])
    labels = ["b", "b", "a", None, "a", "b"]
    compared = compare_labels(found, 3, list("uvwxyz"), labels)
    assert compared.labels == ("b", "a")  # the most frequent first
    assert compared.counts == ((2, 1, 0), (0, 1, 0))
    assert compared.n_left_out == 2
    assert compared.accuracy == pytest.approx(3 / 4)
    assert 0 < compared.nmi < 1
    by_name = {"u": "b", "v": "b", "w": "a", "x": "", "y": "a", "z": "b"}
    assert compare_labels(found, 3, list("uvwxyz"), by_name) == compared
    by_name["x"] = float("nan")
    assert compare_labels(found, 3, list("uvwxyz"), by_name) == compared
    assert compared.as_dict()["n_left_out"] == 2
    assert compare_labels(found[:3], 2, list("uvw"), [1, 1, 0]).nmi == pytest.approx(1.0)
    with pytest.raises(ShapeError, match="labels has 2 entries for 6 nodes"):
        compare_labels(found, 3, list("uvwxyz"), ["a", "b"])
    with pytest.raises(InvalidDataError, match="No node has both"):
        compare_labels(found, 3, list("uvwxyz"), ["", None, "", "", "a", ""])
