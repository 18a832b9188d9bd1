"""Modularity and conductance of overlapping communities."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.datasets.real import networkx_graph
from nonneg.exceptions import InvalidDataError, NegativeDataError, ShapeError
from nonneg.metrics import conductance, overlapping_modularity


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


def test_negative_weights_and_negative_memberships_are_refused_each():
    A, shares = np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((2, 1))
    for wrong in ((-A, shares), (A, -shares)):
        with pytest.raises(NegativeDataError):
            conductance(*wrong)


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
    with pytest.raises(ShapeError, match="adjacency matrix of shape"):
        conductance(np.ones(shape), np.ones(shares))


def test_infinite_weights_are_refused():
    with pytest.raises(InvalidDataError, match="finite weights"):
        conductance([[0.0, np.inf], [1.0, 0.0]], np.ones((2, 1)))


def test_conductance_counts_both_directions():
    A = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 3.0]])
    # At nodes 0 and 1: 2 + 2 within and 1 out; at node 2: 1 out and 3 + 3 within.
    np.testing.assert_allclose(conductance(A, [[1, 0], [1, 0], [0, 1]]), 1 / 5)
