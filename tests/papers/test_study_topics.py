"""The quick setting of the study of topics, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.experiment import flat_records
from reproduction.registry import find_experiment
from reproduction.studies.topics import CHOOSING, METHODS, PEERS, PLANTED, REPORTING, SLOW
from tests.papers.quick_runs import artifacts, verdicts

NAME = "studies/topics"


@pytest.mark.slow
def test_the_default_beats_the_peers_on_planted_topics():
    study = find_experiment(NAME)
    # Latent Dirichlet allocation takes longer than all others together.
    wanted = [s for s in study.trials(quick=True) if "lda" not in s["method"]]
    records = flat_records([{"setting": setting, "records": study.run(setting)} for setting in wanted])
    scores = {record["method"]: record for record in records}
    assert scores["default"]["nmi"] > scores["published"]["nmi"] > 0.8
    assert scores["default"]["nmi"] > scores["sklearn-nmf"]["nmi"]
    means, by_collection = artifacts(NAME, records, Table)
    assert len(means.rows) == len(by_collection.rows) == len(wanted)
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [None] * 5


def test_sets_that_choose_and_sets_that_report_are_apart():
    trials = find_experiment(NAME).trials(quick=False)
    drawn = {group: {(s["collection"], s["draw"]) for s in trials if s["group"] == group} for group in
             ("choosing", "reporting")}  # fmt: skip
    assert not drawn["choosing"] & drawn["reporting"]
    assert not set(CHOOSING) & set(REPORTING)
    # Peers are compared on what reports alone.
    assert {s["group"] for s in trials if s["method"] in PEERS} == {"reporting"}


@pytest.mark.parametrize(("ours", "smallest", "met"), [(0.8, 2.0, True), (0.4, 0.2, False)])
def test_verdicts(ours, smallest, met):
    records = [
        {
            "group": "reporting", "collection": name, "draw": draw, "method": method, "classes": 5,
            "nmi": ours if method == "default" else 0.5, "accuracy": 0.5, "npmi": 0.1, "c_v": 0.5,
            "diversity": 1.0, "below": 0, "seconds": 1.0,
            "smallest": smallest if method == "default" else 0.04,
        }
        for name, draws in REPORTING.items()
        for draw in draws
        for method in METHODS
        if name != PLANTED or method not in SLOW
    ]  # fmt: skip
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [met, met, met, met, True]
    # Without all draws nothing is decided.
    some = [record for record in records if record["collection"] == "bbc"]
    assert [verdict.met for verdict in verdicts(NAME, some).values()] == [None] * 5
