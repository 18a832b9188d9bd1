"""The quick setting of Table I of Liu & Tan (2017): who reaches the error, and when."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.grouping import grouped
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "cr1/table-1"


@pytest.fixture(scope="module")
def records():
    return quick_records(NAME)


def test_every_run_says_how_it_ended(records):
    for (_, _), group in grouped(records, "n", "draw").items():
        by_name = {record["algorithm"]: record for record in group}
        assert set(by_name) == {"cr1", "mult", "nnlsb", "hals", "default", "default, nndsvda"}
        target = by_name["cr1"]["error"]
        for record in group:
            assert record["outcome"] in {"reached", "time limit", "stalled"}
            assert (record["error"] <= target) == (record["outcome"] == "reached")
            assert record["seconds"] > 0


def test_the_default_solver_reaches_the_error(records):
    assert {r["outcome"] for r in records if r["algorithm"] == "default, nndsvda"} == {"reached"}


def test_a_run_without_success_is_no_time():
    def record(name, seconds, outcome="reached", draw=0):
        return {"n": 10_000, "draw": draw, "algorithm": name, "seconds": seconds, "outcome": outcome}

    records = [record("cr1", 2.0), record("hals", 30.0), record("mult", 100.0, "time limit")]
    records += [record("cr1", 2.0, draw=1), record("hals", 10.0, "stalled", draw=1)]
    times, ratios = artifacts(NAME, records, Table)
    assert times.rows[0]["hals"].value == 30.0
    assert times.rows[0]["hals"].remark == "(1 of 2 reached it)"
    assert times.rows[0]["mult"].value is None
    assert times.rows[0]["mult"].published == 85.92
    assert (ratios.rows[0]["hals"].sign, ratios.rows[0]["hals"].value) == (">", 10.0)
    assert ratios.rows[0]["mult"].published == pytest.approx(46.4, abs=0.1)
    hals, nnlsb, mult = verdicts(NAME, records).values()
    assert (hals.met, nnlsb.met, mult.met) == (True, None, True)
