"""The quick setting of the study of trees, seed words and streams, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.studies.topic_tools import DEFAULT, FREE, MINI, TREE
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/topic-tools"


@pytest.mark.slow
def test_seed_words_name_topics_and_streams_give_the_topics_of_one_fit():
    records = quick_records(NAME)
    found = {(record["part"], record["candidate"]): record for record in records}
    assert found["seeds", DEFAULT]["accuracy"] > 0.9
    assert "initialization only" in {candidate for part, candidate in found if part == "seeds"}
    assert found["stream", "partial_fit"]["cosine"] > 0.99
    assert found["stream", "partial_fit"]["accuracy"] >= found["stream", MINI]["accuracy"]
    assert found["tree", TREE]["nmi"] >= found["tree", "average, Hellinger"]["nmi"] > 0.5
    assert len(artifacts(NAME, records, Table)) == 5
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [None] * 7


@pytest.mark.parametrize(("ours", "met"), [(0.8, True), (0.4, False)])
def test_verdicts(ours, met):
    common = {"group": "reporting", "collection": "bbc", "draw": 0}
    records = [
        common
        | {
            "part": part,
            "candidate": name,
            "nmi": value,
            "accuracy": value,
            "f1": value,
            "s": 1.0,
            "cosine": 1.0,
        }
        for part, name, value in [
            ("tree", TREE, ours),
            ("tree", "average, Hellinger", 0.5),
            ("seeds", DEFAULT, ours),
            ("seeds", FREE, 0.5),
            ("seeds", "initialization only", 0.5),
            ("stream", "one fit", 0.5),
            ("stream", "partial_fit", ours),
            ("stream", MINI, 0.5),
        ]
    ]
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [met] * 7
