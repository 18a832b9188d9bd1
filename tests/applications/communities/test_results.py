"""Communities for other programs: lists, networkx, cdlib; and beside known labels."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications import MixedMembership
from nonneg.exceptions import InvalidDataError, InvalidParameterError, MissingDependencyError, ShapeError


@pytest.fixture(scope="module")
def model():
    """Two cliques of six that share a node, and a node alone."""
    A = sp.lil_array((12, 12))
    A[:6, :6] = A[5:11, 5:11] = 1.0
    A.setdiag(0.0)
    with pytest.warns(UserWarning, match="1 of 12 nodes have no edges"):
        return MixedMembership(2, method="symnmf").fit(A.tocsr(), names=[f"n{at}" for at in range(12)])


def test_a_mixed_node_is_in_both_lists(model):
    groups = model.communities()
    assert sorted(map(len, groups)) == [6, 6]
    assert all("n5" in group for group in groups)
    assert not any("n11" in group for group in groups)
    apart = model.communities(0.6)
    assert sorted(map(len, apart)) == [5, 6]
    with pytest.raises(InvalidParameterError, match="threshold"):
        model.communities(0.0)


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


def test_cdlib_gets_what_it_takes(model, monkeypatch):
    pytest.importorskip("networkx")
    # A stand-in with the signatures of cdlib 0.4, which is not installed here.
    fake = ModuleType("cdlib")

    class NodeClustering:
        def __init__(self, communities, graph, method_name="", method_parameters=None, overlap=False):
            self.communities, self.graph, self.overlap = communities, graph, overlap
            self.method_name = method_name

    class FuzzyNodeClustering(NodeClustering):
        def __init__(self, communities, node_allocation, graph, *rest, **more):
            super().__init__(communities, graph, *rest, **more)
            self.allocation_matrix = node_allocation

    fake.NodeClustering, fake.FuzzyNodeClustering = NodeClustering, FuzzyNodeClustering
    fake.__spec__ = type(sys.__spec__)("cdlib", None)
    monkeypatch.setitem(sys.modules, "cdlib", fake)
    fuzzy = model.to_cdlib()
    assert fuzzy.communities == model.communities()
    assert fuzzy.overlap
    assert fuzzy.method_name == "nonneg symnmf"
    assert sum(fuzzy.allocation_matrix["n5"].values()) == pytest.approx(1.0)
    assert set(fuzzy.graph) == set(model.node_names_)
    crisp = model.to_cdlib(threshold=0.6, fuzzy=False)
    assert not crisp.overlap
    monkeypatch.setitem(sys.modules, "cdlib", None)
    monkeypatch.setattr("nonneg.applications.communities.results.is_installed", lambda name: False)
    with pytest.raises(MissingDependencyError, match=r"pip install cdlib. communities\(\) returns the same"):
        model.to_cdlib()


def test_labels_are_compared_by_name_or_in_order(model):
    labels = ["x"] * 6 + ["y"] * 5 + [""]
    found = model.compare(labels)
    assert found.accuracy >= 10 / 11
    assert found.labels == ("x", "y")
    assert np.sum(found.counts) == 11
    assert found.n_left_out == 1
    by_name = model.compare({f"n{at}": label for at, label in enumerate(labels)})
    assert by_name == found
    partly = model.compare({"n0": "x", "n8": "y", "n9": float("nan")})
    assert (partly.nmi, partly.ari, partly.n_left_out) == (1.0, 1.0, 10)
    assert partly.as_dict()["labels"] == ("x", "y")
    with pytest.raises(ShapeError, match="2 entries for 12 nodes"):
        model.compare(["x", "y"])
    with pytest.raises(InvalidDataError, match="both a label and a community"):
        model.compare({"other": "x"})
