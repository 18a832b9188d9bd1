"""Scores of overlapping communities, by the graph and against known ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from nonneg.datasets.real import networkx_graph
from nonneg.exceptions import InvalidDataError, NegativeDataError, ShapeError
from nonneg.metrics import conductance, omega_index, overlapping_modularity, overlapping_nmi


def test_a_partition_has_newmans_modularity_and_the_usual_conductance():
    networkx = pytest.importorskip("networkx")
    club = networkx_graph("karate")
    graph = networkx.karate_club_graph()
    shares = np.eye(2)[club.y]
    groups = [set(np.flatnonzero(club.y == at)) for at in (0, 1)]
    expected = networkx.community.modularity(graph, groups, weight=None)
    assert overlapping_modularity(club.X, shares) == pytest.approx(expected)
    cuts = [networkx.conductance(graph, group) for group in groups]
    np.testing.assert_allclose(conductance(club.X, shares), cuts)


def brute_force(A, shares, weight, expected_weight):
    total = A.sum()
    sent, received = A.sum(axis=1), A.sum(axis=0)
    return sum(
        (weight(i, j, c) * A[i, j] - expected_weight(i, j, c) * sent[i] * received[j] / total) / total
        for c in range(shares.shape[1])
        for i in range(len(A))
        for j in range(len(A))
    )


def test_modularity_is_that_of_the_paper_also_with_directions():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 3, size=(7, 7)).astype(float)
    shares = rng.dirichlet([0.5, 0.5, 0.5], size=7)
    product = brute_force(A, shares, *2 * (lambda i, j, c: shares[i, c] * shares[j, c],))
    assert overlapping_modularity(A, shares) == pytest.approx(product)


def test_senders_and_receivers_make_a_community():
    ring = np.kron(np.roll(np.eye(3), 1, axis=1), np.ones((4, 4)))  # group 0 sends to 1, 1 to 2, 2 to 0
    sending = np.repeat(np.eye(3), 4, axis=0)
    receiving = np.roll(sending, 4, axis=0)
    assert overlapping_modularity(ring, sending, receiving=receiving) == pytest.approx(2 / 3)
    assert overlapping_modularity(ring, sending) == pytest.approx(-1 / 3)


def test_odd_communities_and_weights():
    path = sp.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    shares = np.array([[1, 0.0, 0], [1, 0, 0], [np.nan] * 3, [1, 0, 0]])
    found = conductance(path, shares)
    assert found[0] == pytest.approx(1.0)
    assert np.isnan(found[1:]).all()
    whole = conductance(path, np.ones((4, 1)))
    assert np.isnan(whole).all()
    halves = np.repeat(np.eye(2), 2, axis=0)
    for scale in (1e-300, 1e307):
        assert overlapping_modularity(path * scale, halves) == pytest.approx(
            overlapping_modularity(path, halves)
        )
        np.testing.assert_allclose(conductance(path * scale, halves), 1 / 3)
    with pytest.raises(ShapeError, match="got"):
        conductance(path, np.ones(4))
    with pytest.raises(NegativeDataError, match="at least 0"):
        overlapping_modularity(-path, halves)
    with pytest.raises(InvalidDataError, match="at least one edge"):
        overlapping_modularity(np.zeros((2, 2)), np.ones((2, 1)))


def test_one_negative_number_is_enough_and_stored_zeros_are_none():
    A = sp.csr_array(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]))
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    stored = sp.csr_array((np.append(A.data, 0.0), np.append(A.indices, 2), [0, 2, 4, 7]), shape=(3, 3))
    assert overlapping_modularity(stored, shares) == pytest.approx(overlapping_modularity(A, shares))
    wrong = A.copy()
    wrong.data[2] = -1.0
    for case in ((wrong, shares), (A, shares - [[0.0, 0.0], [0.0, 0.0], [0.5, 0.0]])):
        with pytest.raises(NegativeDataError):
            overlapping_modularity(*case)


@pytest.mark.parametrize(
    ("shape", "shares"), [((2, 3), (2, 1)), ((3, 2), (3, 1)), ((3, 3), (2, 1)), ((3, 3), (3, 1, 1))]
)
def test_shapes_that_do_not_fit_are_refused(shape, shares):
    with pytest.raises(
        ShapeError, match=r"adjacency matrix of shape|`memberships` as an array of numbers of shape"
    ):
        conductance(np.ones(shape), np.ones(shares))


def test_infinite_weights_are_refused():
    with pytest.raises(InvalidDataError, match="finite weights"):
        conductance([[0.0, np.inf], [1.0, 0.0]], np.ones((2, 1)))


def test_conductance_counts_both_directions():
    A = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 3.0]])
    # At nodes 0 and 1: 2 + 2 within and 1 out; at node 2: 1 out and 3 + 3 within.
    np.testing.assert_allclose(conductance(A, [[1, 0], [1, 0], [0, 1]]), 1 / 5)


def pairs_of(cover, n):
    """Return how many communities every pair of nodes shares."""
    return np.array([[sum(i in c and j in c for c in cover) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("seed", range(5))
def test_the_omega_index_counts_pairs_that_share_as_many_communities(seed):
    rng = np.random.default_rng(seed)
    first, second = (
        [rng.choice(12, rng.integers(2, 7), replace=False) for _ in range(rng.integers(1, 5))] for _ in "ab"
    )
    nodes = sorted({int(node) for community in (*first, *second) for node in community})
    upper = np.triu_indices(len(nodes), 1)
    counts = [
        pairs_of([{nodes.index(int(node)) for node in c} for c in cover], len(nodes))[upper]
        for cover in (first, second)
    ]
    chance = sum(np.mean(counts[0] == at) * np.mean(counts[1] == at) for at in range(6))
    expected = (np.mean(counts[0] == counts[1]) - chance) / (1 - chance)
    assert omega_index(first, second) == pytest.approx(expected)


def test_the_omega_index_of_partitions_is_the_adjusted_rand_index(rng):
    labels = rng.integers(3, size=40), rng.integers(4, size=40)
    covers = [[np.flatnonzero(one == at) for at in range(4)] for one in labels]
    assert omega_index(*covers) == pytest.approx(adjusted_rand_score(*labels))


def test_the_mutual_information_of_overlapping_communities_by_hand():
    # Nodes a b c d; {a, b} and {c, d} against {a, b, c} and {d}, in bits, with h(p) = -p log p.
    def h(*counts):
        return -sum(count / 4 * np.log2(count / 4) for count in counts if count)

    # {a, b} given {a, b, c}: 2 in both, none in the first alone, 1 in the second alone, 1 in neither.
    near = h(2, 1, 1) - h(3, 1)
    given = 2 * near  # {c, d} given {d} has the same counts, with in and out exchanged
    reverse = h(2, 1, 1) - h(2, 2)
    first, second = 2 * h(2, 2), 2 * h(3, 1)
    expected = 0.5 * (first - given + second - 2 * reverse) / max(first, second)
    found = overlapping_nmi([["a", "b"], ["c", "d"]], [["a", "b", "c"], ["d"]])
    assert found == pytest.approx(expected)


def test_communities_that_say_nothing_of_each_other_have_no_information():
    assert overlapping_nmi([[0, 1], [2, 3]], [[0, 2], [1, 3]]) == pytest.approx(0.0)
    assert overlapping_nmi([[0, 1, 2], [2, 3]], [[3, 2], [1, 0, 2]]) == pytest.approx(1.0)
    # What is said by a complement does not count: nobody meant the same by them.
    assert overlapping_nmi([[0, 1, 2], [3, 4, 5, 6, 7]], [[3, 4, 5, 6, 7]]) < 0.6
    for score in (overlapping_nmi, omega_index):
        with pytest.raises(InvalidDataError, match="communities on both sides"):
            score([[1, 2]], [])


def test_scores_of_overlapping_communities_are_those_of_cdlib():
    # cdlib 0.4.1: overlapping_normalized_mutual_information_MGH and omega.
    first = [[0, 1, 2, 3, 4], [4, 5, 6, 7], [7, 8, 9, 0]]
    second = [[0, 1, 2, 3], [3, 4, 5, 6, 7], [8, 9]]
    assert overlapping_nmi(first, second) == pytest.approx(0.5241172595198454, abs=1e-9)
    assert omega_index(first, second) == pytest.approx(0.5084409136047665, abs=1e-9)
