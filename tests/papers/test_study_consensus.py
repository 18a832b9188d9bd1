"""The quick setting of the study of consensus NMF: what it measures, and that few draws decide nothing."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table, Verdict
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records

NAME = "studies/consensus"


@pytest.fixture(scope="module")
def records():
    return quick_records(NAME)


@pytest.mark.slow
def test_planted_rank_programs_and_signatures_are_found(records):
    found = {record["part"]: record for record in records}
    assert found["rank"]["found"] == found["rank"]["k"]
    assert found["programs"]["consensus"] == 1.0
    assert found["signatures"]["precision"] == found["signatures"]["recall"] == 1.0
    assert len(artifacts(NAME, records, Table)) == 4


@pytest.mark.slow
def test_few_draws_decide_nothing(records):
    assert all(verdict.met is None for verdict in artifacts(NAME, records, Verdict))


def test_draws_that_report_did_not_choose():
    settings = find_experiment(NAME).trials(quick=False)
    ranks = [each for each in settings if each["part"] == "rank"]
    claimed = [each for each in ranks if each["group"] == "reporting" and each["depth"] == 500]
    assert len(claimed) == 50
    assert {each["group"] for each in ranks} == {"choosing", "reporting"}
