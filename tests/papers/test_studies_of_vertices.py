"""The study of communities: its quick setting, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.studies import communities
from reproduction.studies.communities_graphs import FAMILIES
from tests.papers.quick_runs import quick_records, verdicts


@pytest.mark.slow
def test_communities_have_every_method_on_a_small_graph():
    records = quick_records("studies/communities")
    assert {record["method"] for record in records if "method" in record} == set(communities.METHODS)
    assert all(record["src"] > 0.6 for record in records if "method" in record)
    assert all(set(record["scores"]) == set(communities.PROPOSED) for record in records if "chosen" in record)


@pytest.mark.parametrize(("default", "met"), [(0.78, True), (0.76, False)])
def test_the_default_must_be_near_its_best_candidate(default, met):
    scores = {"auto": default, "nmf": 0.8, "regularized-spa": 0.5}
    made = [
        {"family": family, "graph": graph, "draw": 0, "method": name, "src": score}
        | ({"chosen": "nmf", "scores": {"nmf": 0.2, "regularized-spa": 0.1}} if name == "auto" else {})
        for family, graphs in FAMILIES.items()
        for graph in graphs
        for name, score in scores.items()
    ]
    claims = verdicts("studies/communities", made)
    assert {verdict.met for claim, verdict in claims.items() if "its candidates" in claim} == {met}
