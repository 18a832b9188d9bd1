"""The study of initializations: times until an error, and the quick setting."""

from __future__ import annotations

import math

import pytest
from reproduction.artifacts import Table
from reproduction.studies.initialization import GRID, INITS, RECOMMENDED, Case, error_after, work_until
from reproduction.studies.initialization_choices import best_of, choice_table
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/initialization"


def record(init, errors, seconds=0.0, seed=0):
    return {
        "set": "digits", "solver": "hals", "init": init, "seed": seed, "init seconds": seconds,
        "iteration seconds": 0.5, "errors": errors,
    }  # fmt: skip


def test_time_until_an_error_counts_the_initialization_and_interpolates():
    run = record("cone", [0.8, 0.4, 0.2], seconds=1.0)
    assert work_until(run, 0.9, 0.5) == 3
    assert work_until(run, 0.4, 0.5) == 4
    assert work_until(run, 0.4 / math.sqrt(2), 0.5) == pytest.approx(4.5)
    assert work_until(run, 0.1, 0.5) == math.inf
    assert error_after(run, 4.5, 0.5) == pytest.approx(0.4 / math.sqrt(2))
    assert error_after(run, 2.5, 0.5) == math.inf


def test_a_case_knows_the_first_and_how_far_behind_the_others_are():
    case = Case([record("rand", [0.8, 0.4, 0.2]), record("cone", [0.4, 0.2, 0.2], seconds=0.25)], 1.0)
    assert case.error == 0.2
    assert case.first == "cone"
    assert case.ratio == {"rand": 3 / 2.5, "cone": 1.0}
    assert case.excess["rand"] == pytest.approx(math.sqrt(2))
    assert case.excess["cone"] == pytest.approx(1.0)


def test_the_best_of_several_pays_for_all_of_them():
    runs = {
        "cone": [record("cone", [0.4, 0.3, 0.3], seconds=0.25)],
        "random": [record("random", [0.8, value, value], seconds=0.1) for value in (0.2, 0.35)],
    }
    found = best_of(runs, ("cone", "random"), 2, GRID, 0.5)
    # The first draw goes on from random numbers, the second one from cones; two iterations are lost.
    assert [run["init"] for run in found[:2]] == ["random", "cone"]
    assert found[0]["init seconds"] == pytest.approx(0.25 + 0.1 + 2 * 0.5)
    assert [run["init"] for run in best_of(runs, ("cone", "random"), 1, GRID, 0.5)[:2]] == ["cone", "cone"]
    # Two seeds at a time: the better one is always there.
    assert {run["init"] for run in best_of(runs, ("cone", "random", "random"), 2, GRID, 0.5)} == {"random"}


def test_what_is_best_on_a_data_set_need_not_be_first_at_every_error():
    records = [record("rand", [0.5, 0.21, 0.2]), record("cone", [0.4, 0.3, 0.201])]
    cases = [Case(records, level) for level in (2.0, 1.05, 1.0)]
    *tried, known = choice_table("", cases, GRID, 1.02, work_until, error_after, best={}).rows
    assert not tried
    assert [case.first for case in cases] == ["cone", "rand", "rand"]
    assert known["near"] == 2


@pytest.mark.slow
def test_the_quick_setting_runs_every_initialization():
    records = quick_records(NAME)
    assert {record["init"] for record in records} == set(INITS)
    assert all(len(record["errors"]) == 5 for record in records)
    counts = [table for table in artifacts(NAME, records, Table) if "worst" in table.columns]
    assert len(counts) == 4
    assert all(sum(row["first"] for row in table.rows) == 3 for table in counts)
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [None] * 12
    assert RECOMMENDED in INITS
    assert GRID[:5] == (1, 2, 3, 4, 5)
