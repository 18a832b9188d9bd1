"""The quick setting of the study of robust anchors: averages are closer to the truth than samples."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records

NAME = "studies/robust-anchors"


@pytest.fixture(scope="module")
def records():
    return quick_records(NAME)


@pytest.mark.slow
def test_averages_are_closer_than_samples(records):
    errors = {record["method"]: record["error"] for record in records if record["part"] == "points"}
    assert errors["smoothed-spa"] < 0.5 * errors["spa"]
    angles = {record["method"]: max(record["angles"]) for record in records if record["part"] == "scenes"}
    assert angles["smoothed-spa"] < 2.0
    assert angles["snpa"] > 10.0  # a corrupt pixel


@pytest.mark.slow
def test_the_tables_name_the_worst_case_of_every_method(records):
    worst = next(table for table in artifacts(NAME, records, Table) if "at worst" in table.caption)
    assert worst.rows[0]["ratio"] == 1.0
    assert {row["method"] for row in worst.rows} >= {"spa", "smoothed-spa", "pp-spa"}


def test_draws_that_report_are_those_below_fifty():
    settings = find_experiment(NAME).trials(quick=False)
    assert {setting.get("first_draw", 0) + setting.get("n_draws", 1) for setting in settings} <= set(
        range(51)
    )
