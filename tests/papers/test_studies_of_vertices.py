"""Quick settings of the studies of communities and of near-duplicates, and how their verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.studies import communities
from tests.papers.quick_runs import artifacts, quick_records, verdicts

from nonneg.applications import MixedMembership


def test_communities_has_every_candidate_on_a_small_graph():
    records = quick_records("studies/communities")
    found = {record["candidate"] for record in records if "candidate" in record}
    assert found == set(communities.CANDIDATES)
    assert all(record["src"] > 0.6 for record in records if "candidate" in record)
    overview, *_ = artifacts("studies/communities", records, Table)
    assert min(row["worst"] for row in overview.rows) == 0.0
    assert verdicts("studies/communities", records) == {}


def test_the_default_of_the_study_is_that_of_the_estimator():
    assert communities.CANDIDATES[communities.DEFAULT] == {"method": MixedMembership(2).method}


def planted_scores(default, others):
    measures = {"error": 0.3, "s": 1.0}
    return [
        {"group": "reporting", "graph": graph, "seed": seed, "candidate": name, "src": score, **measures}
        for graph in communities.REPORTING
        for seed in range(communities.N_REPORTING)
        for name, score in {communities.DEFAULT: default, "merit": others, "spa": 0.8}.items()
    ]


@pytest.mark.parametrize(("default", "met"), [(0.78, True), (0.76, False)])
def test_the_default_must_be_near_the_best_everywhere(default, met):
    records = planted_scores(default, 0.5)
    first, second = verdicts("studies/communities", records).values()
    assert (first.met, second.met) == (met, True)
    # With fewer draws nothing is decided.
    few, _ = verdicts("studies/communities", records[:-6]).values()
    assert few.met is None
