"""What pages of communities and sounds say, for records that are written by hand."""

from __future__ import annotations

import base64
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
from nonneg.applications.audio.methods import METHODS
from nonneg.report import community_page, separation_page, wording
from nonneg.report.graph_drawing import color

percent, number, seconds = wording.percent, wording.number, wording.seconds


@pytest.fixture(autouse=True)
def as_called(page_contexts):
    """Let drawings be the arguments they were called with, and pages their contexts."""


def test_labels_have_the_color_of_the_community_that_they_are_matched_with():
    labels = {
        "labels": ["x", "y", "z"],
        "counts": [[1, 9], [8, 2], [0, 1]],
        "drawn": ["y", "x", "", "z"],
        "name": "kind",
        "nmi": 0.12345,
        "ari": 0.5,
        "accuracy": 0.75,
        "n_left_out": 2,
    }
    assert community_page._rings(labels) == [color(0), color(1), "", color(2)]
    assert community_page._rings(None) is None
    found = community_page._labels(labels)
    assert found["rows"] == [
        {"label": "x", "cells": [(1, 11, False), (9, 100, True)]},
        {"label": "y", "cells": [(8, 89, True), (2, 22, False)]},
        {"label": "z", "cells": [(0, 0, False), (1, 11, False)]},
    ]
    assert [score for _, score in found["scores"]] == ["0.123", "0.500", percent(0.75)]
    assert community_page._labels(None) is None


def graph_model(**more):
    memberships = np.array([[0.95, 0.05], [0.5, 0.5], [np.nan, np.nan], [0.002, 0.998]])
    graph = SimpleNamespace(degrees=np.array([5.0, 1.0, 0.0, 3.0]), directed=False)
    facts = {"memberships_": memberships, "labels_": np.array([0, 0, -1, 1]), "node_names_": list("abcd")}
    return SimpleNamespace(graph_=graph, **facts, **more)


def test_nodes_are_listed_by_community_and_membership(monkeypatch):
    model = graph_model()
    assert community_page._listed(model) == [0, 1, 3, 2]
    assert community_page.mostly_one(model.memberships_) == 2
    assert community_page._node(model, 3, {3}) == {
        "name": "d",
        "pure": True,
        "degree": number(3.0),
        "parts": [(99.8, color(1))],
        "memberships": ["0.00", "1.00"],
    }
    assert community_page._node(model, 0, {3})["parts"] == [(95.0, color(0)), (5.0, color(1))]
    alone = community_page._node(model, 2, {3})
    assert (alone["parts"], alone["memberships"], alone["pure"]) == ([], ["–", "–"], False)  # noqa: RUF001
    monkeypatch.setattr(community_page, "N_LISTED", 2)
    assert community_page._listed(model) == [0, 3]


def test_the_table_of_nodes_has_six_decimals():
    model = graph_model(
        node_table=lambda: {"node": np.array(["a"]), "x": np.array([1 / 3]), "n": np.array([2])}
    )
    text = base64.b64decode(community_page._download(model).removeprefix("data:text/csv;base64,")).decode()
    assert text == "node,x,n\na,0.333333,2\n"
    np.testing.assert_array_equal(
        community_page._rounded(np.array([1.23456789, 2e9 + 0.125])), [1.234568, 2e9 + 0.125]
    )


COMMUNITIES = {
    "data": {"n_nodes": 10, "n_edges": 1, "source": "s", "n_isolated": 0, "list": [1]},
    "result": {
        "n_communities": 2,
        "n_mostly_one": 1,
        "method": "symnmf",
        "n_kept": 10,
        "seconds": 2.0,
        "n_unreached": 0,
    },
    "parameters": {"a": 0.123456789},
    "eigenvalues": [1.0, 0.1234567],
}


def communities(**changes):
    record = {name: dict(part) if isinstance(part, dict) else part for name, part in COMMUNITIES.items()}
    for place, value in changes.items():
        part, _, name = place.partition("__")
        record[part][name] = value
    return record


def test_words_about_communities():
    page = community_page
    assert page.community_sentence(COMMUNITIES) == (
        "2 communities in 10 nodes; 1 node has a membership above 90% in one of them."
    )
    assert page.community_sentence(communities(result__n_communities=1, result__n_mostly_one=2)) == (
        "1 community in 10 nodes; 2 nodes have a membership above 90% in one of them."
    )
    method = wording.method("symnmf")
    assert page.method_sentence(COMMUNITIES) == f"The method is {method}."
    both = page.method_sentence(communities(result__scores={"symnmf": 0.5, "regularized-spa": 0.25}))
    assert both.endswith("relative to a single community: SymNMF 0.5, regularized SPA 0.25.")
    start = f"10 nodes and 1 edge from s. Communities by {method}"
    end = f"; it took {seconds(2.0)} in all."
    assert page._outcome(COMMUNITIES) == start + end
    kept = page._outcome(communities(result__n_kept=8, data__n_isolated=1))
    assert kept.startswith(f"{start}, pure nodes among the 8 with the largest rows; it took")
    assert kept.endswith(" 1 nodes have no edges and no membership.")
    assert "pure nodes" not in page._outcome(communities(result__n_kept=9, data__n_isolated=1))
    assert " The graph is directed: " in page._outcome(communities(data__kind="directed"))
    assert page._outcome(communities(data__kind="bipartite")).endswith(
        "bipartite: communities span both sides."
    )
    assert page._outcome(communities(result__n_unreached=3)).endswith(
        " 3 nodes are not reached by the leading eigenvectors."
    )
    assert [name for name, _ in page._tiles(COMMUNITIES)] == ["communities", "nodes", "edges", "time"]
    assert page._tiles(communities(result__modularity=0.12345))[3] == ("modularity", "0.123")
    facts = dict(page._facts(COMMUNITIES))
    assert facts["Parameters"] == [("a", "0.12345679")]
    assert facts["Result"][-1] == ("eigenvalues", "1, 0.12346")
    assert len(facts["Data"]) == 4


def test_rows_of_communities_and_of_their_number():
    entry = {"community": 1, "pure_node": "a", "size": 2.25, "n_nodes": 3, "top": [("a", 0.995)]}
    found = community_page._community(entry | {"conductance": 0.456})
    assert found == {
        "community": 1,
        "color": color(1),
        "pure": "a",
        "size": "2.2",
        "conductance": "0.46",
        "n_nodes": "3",
        "top": [("a", round(99.5))],
    }
    assert community_page._community(entry)["conductance"] == "–"  # noqa: RUF001
    chosen = {
        "candidates": [1, 2],
        "curves": {"eigengap": [0.5, 0.1]},
        "estimates": {"eigengap": 1},
        "reason": "r",
        "n_communities": 2,
    }
    curve = (
        "candidate_curve",
        ([1, 2], [0.5, 0.1], [0.0, 0.0], 1, "gap of the eigenvalues"),
        {"what": "communities"},
    )
    assert community_page._number(chosen) == {
        "reason": "r",
        "k": 2,
        "estimates": [("eigengap", 1)],
        "curves": [curve],
    }


def test_words_about_sounds():
    page, result = separation_page, {"method": "transform", "n_components": 3, "n_sources": 2}
    for name, words in (
        ("dct", "the cosine transform, which explains held-out frames best (a learned one does not pay off)"),
        ("learned", "a learned transform, which explains held-out frames best"),
    ):
        chosen = result | {"transform_choice": {"name": name}}
        assert page._chosen_transform(chosen).startswith(words)
        assert page._is_fixed(chosen) == (name == "dct")
    assert page._chosen_transform(result) == "a chosen transform"
    assert page._is_fixed({"method": "dct"})
    assert not page._is_fixed({"method": "tl"})
    sources = [{"name": "a", "components": [1, 3]}, {"name": "b", "components": [2]}]
    record = {"sources": sources, "result": result}
    assert page._component_names(record) == ["1 (a)", "2 (b)", "3 (a)"]
    record = {
        "sources": [sources[1] | {"components": [1]}, sources[0] | {"components": [2]}],
        "result": result | {"n_components": 2},
    }
    assert page._component_names(record) == ["b", "a"]
    assert page._atom_row(
        {"atom": 3, "power_share": 0.5, "frequency": 440.06, "residual_share": 0.25, "source": "a"}
    ) == {"atom": "3", "power": percent(0.5), "frequency": "440.1", "residual": percent(0.25), "source": "a"}
    assert (page._heading("oboe I"), page._heading("")) == ("Oboe I", "")
    data = {"seconds": 1.0, "rate": 8000, "files": ["a.wav"]}
    run = {"n_frames": 9, "frame_length": 64, "n_iter": 2, "seconds": 1.0, "stop_reason": {"sentence": "r"}}
    for method in METHODS:
        assert "Separated in" in page._outcome({"data": data, "result": run | {"method": method}})
