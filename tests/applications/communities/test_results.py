"""Communities for other programs: lists, networkx; and beside known labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications import MixedMembership
from nonneg.applications.communities import Graph
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError


@pytest.fixture(scope="module")
def model():
    """Two cliques of six that share a node, and a node alone."""
    A = sp.lil_array((12, 12))
    A[:6, :6] = A[5:11, 5:11] = 1.0
    A.setdiag(0.0)
    with pytest.warns(UserWarning, match="1 of 12 nodes have no edges"):
        return MixedMembership(2, method="nmf").fit(A.tocsr(), names=[f"n{at}" for at in range(12)])


def test_a_mixed_node_is_in_both_lists(model):
    groups = model.communities()
    assert sorted(map(len, groups)) == [6, 6]
    assert all("n5" in group for group in groups)
    assert not any("n11" in group for group in groups)


def test_networkx_carries_memberships_and_weights(model):
    pytest.importorskip("networkx")
    graph = model.to_networkx()
    assert list(graph) == model.node_names_
    assert graph.number_of_edges() == 30
    assert graph.nodes["n0"]["community"] == model.labels_[0]
    assert graph.nodes["n5"]["community_0"] == pytest.approx(0.5, abs=0.1)
    assert "community_0" not in graph.nodes["n11"]
    assert graph.edges["n0", "n1"]["weight"] == 1.0
    twins = MixedMembership(1, method="spa").fit(np.array([[0, 2], [0, 0]]), names=["a", "a"]).to_networkx()
    assert list(twins) == [0, 1]
    assert twins.is_directed()


def test_labels_are_compared_by_name_or_in_order(model):
    labels = ["x"] * 6 + ["y"] * 5 + [""]
    found = model.compare(labels)
    assert found["accuracy"] >= 10 / 11
    assert found["labels"] == ["x", "y"]
    assert np.sum(found["counts"]) == 11
    assert found["n_left_out"] == 1
    by_name = model.compare({f"n{at}": label for at, label in enumerate(labels)})
    assert by_name == found
    partly = model.compare({"n0": "x", "n8": "y", "n9": float("nan")})
    assert (partly["nmi"], partly["ari"], partly["n_left_out"]) == (1.0, 1.0, 10)
    with pytest.raises(ShapeError, match="2 entries for 12 nodes"):
        model.compare(["x", "y"])
    with pytest.raises(InvalidDataError, match="both a label and a community"):
        model.compare({"other": "x"})


@pytest.fixture
def by_hand():
    """A fitted model of five nodes, the last one alone."""
    A = np.array([[0.0, 1, 2, 0, 0], [1, 0, 0, 1, 0], [2, 0, 0, 4, 0], [0, 1, 4, 0, 0], [0, 0, 0, 0, 0]])
    model = MixedMembership(2)
    model.graph_ = Graph(sp.csr_array(A), tuple("abcde"))
    shares = np.array([[0.75, 0.25], [0.75, 0.25], [0.51, 0.49], [0.0, 1.0], [np.nan, np.nan]])
    model.memberships_, model.method_ = shares, "spa"
    model.sending_memberships_ = model.receiving_memberships_ = None
    model.pure_nodes_, model.isolated_nodes_, model.unreached_nodes_ = (
        np.array([1, 3]),
        np.array([4]),
        np.array([2]),
    )
    model._complete_loaded()
    return model


def test_lists_of_nodes_are_ordered_by_membership_and_degree(by_hand):
    assert by_hand.labels_.tolist() == [0, 0, 0, 1, -1]
    assert by_hand.n_communities_ == 2
    assert by_hand.top_nodes() == [
        [("a", 0.75), ("b", 0.75), ("c", 0.51)], [("d", 1.0), ("c", 0.49), ("a", 0.25), ("b", 0.25)]
    ]  # fmt: skip
    assert by_hand.top_nodes(1) == [[("a", 0.75)], [("d", 1.0)]]
    # The sums of squares are 0.625 and 0.5: 0.25 is less than half of the first, 0.49 more than half of 0.5.
    assert ["".join(group) for group in by_hand.communities()] == ["abc", "dc"]


def test_a_fit_passes_its_choices_on(rng):
    A = np.triu(rng.random((30, 30)) < 0.4, 1).astype(float)
    A = sp.csr_array(A + A.T)
    spa = MixedMembership(2, method="spa").fit(A.astype(np.float32))
    assert spa.memberships_.dtype == np.float32
    assert MixedMembership(2, method="spa").fit(A).memberships_.dtype == np.float64
    values = np.linalg.eigvalsh(A.toarray())
    np.testing.assert_allclose(spa.eigenvalues_, values[np.argsort(-abs(values))[:2]])
    assert spa.number_ is None
    assert spa.scores_ == {}
    assert spa.n_iter_ == 2
    np.testing.assert_allclose(np.linalg.norm(spa.eigenvectors_, axis=0), 1.0)
    with pytest.raises(InvalidParameterError, match="Raise energy"):
        MixedMembership(2, method="spa", energy=0.01).fit(A)
    told = []
    MixedMembership(2, method="merit", max_iter=2, tol=0.0, callback=lambda now: told.append(now.n_iter)).fit(
        A
    )
    assert max(told) == 2
    # Of a directed graph: left singular vectors, in the rows of the nodes that send.
    table = np.triu(A.toarray())[:-1]
    directed = MixedMembership(2, method="spa").fit(np.vstack([table, np.zeros((1, 30))]))
    sent = directed.eigenvectors_
    kept = np.linalg.svd(table, full_matrices=False)[0][:, :2]
    np.testing.assert_allclose(2.0 * sent[:-1] @ sent[:-1].T, kept @ kept.T, atol=1e-9)
    assert not sent[-1].any()
    # In the unit of the weights.
    larger = MixedMembership(2, method="spa").fit(A * 2.0**250)
    plain = MixedMembership(2, method="spa").fit(A)
    np.testing.assert_allclose(larger.eigenvalues_, plain.eigenvalues_ * 2.0**250)
    np.testing.assert_allclose(larger.connectivity_, plain.connectivity_ * 2.0**250)
    normalized = MixedMembership(2, method="nmf", max_iter=2).fit(A)
    assert normalized.eigenvalues_.max() < 1.0
    np.testing.assert_allclose(
        MixedMembership(2, method="nmf", max_iter=2).fit(A * 2.0**250).eigenvalues_,
        normalized.eigenvalues_,
    )
