"""The quick setting of the study of topics, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.studies.topics import AUTO, CANDIDATES, FAMILIES
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/topics"


@pytest.mark.slow
def test_the_quick_study():
    records = quick_records(NAME)
    scores = {record["candidate"]: record for record in records}
    assert set(scores) == {*CANDIDATES, AUTO}
    assert scores["default"]["nmi"] > 0.6
    assert len(artifacts(NAME, records, Table)) == 4
    assert {verdict.met for verdict in verdicts(NAME, records).values()} == {None}


@pytest.mark.parametrize(("nmi", "met"), [(0.5, True), (0.45, False)])
def test_verdicts(nmi, met):
    base = {"n_documents": 100, "classes": 5, "large_classes": 5, "n_topics": 5, "n_words": 50}
    records = [
        {**base, "collection": name, "candidate": candidate, "accuracy": 0.5, "npmi": 0.1, "smallest": 20}
        | {"nmi": nmi if candidate == "default" else 0.5}
        | {"range": [5, 6], "modularity": 0.4, "stands_out": True}
        for family in FAMILIES.values()
        for name in family
        for candidate in (*CANDIDATES, AUTO)
    ]
    found = verdicts(NAME, records).values()
    assert [verdict.met for verdict in found] == [met] * 2 + [True]
    some = [record for record in records if record["collection"] == "bbc"]
    assert {verdict.met for verdict in verdicts(NAME, some).values()} == {None}
