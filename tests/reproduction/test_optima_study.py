"""The study of optima: its quick setting, and what it makes of records."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.studies.optima import DEFAULT, FIRST, METHODS, PEER, _claims, excesses, replay
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/optima"


@pytest.mark.slow
def test_the_quick_setting_runs_every_method_and_decides_nothing():
    records = quick_records(NAME)
    fits = [record for record in records if "value" in record]
    assert {record["method"] for record in fits} == set(METHODS)
    assert {record["loss"] for record in fits} == {"frobenius", "kullback-leibler"}
    assert sum("losses" in record for record in records) == 2 * 6
    assert len(artifacts(NAME, records, Table)) == 4
    assert {verdict.met for verdict in verdicts(NAME, records).values()} == {None}


def test_losses_are_compared_with_the_lowest_of_the_same_draw():
    def record(draw, method, value):
        return {"set": "wine", "loss": "frobenius", "draw": draw, "method": method, "value": value}

    records = [record(0, DEFAULT, 2.0), record(0, PEER, 1.0), record(1, DEFAULT, 10.0), record(1, PEER, 30.0)]
    assert list(excesses(records)[DEFAULT]) == [1.0, 0.0]
    assert list(excesses(records)[PEER]) == [0.0, 2.0]
    worse = [
        record(draw, method, 1.0 + 0.01 * (method in (DEFAULT, FIRST)))
        for draw in range(3)
        for method in METHODS
    ]
    assert [verdict.met for verdict in _claims("t", worse, complete=True)] == [False, False, True]
    assert "wine 3 of 3 draws" in _claims("t", worse, complete=True)[0].detail


def test_the_rule_is_replayed_on_recorded_losses():
    steady = [[5, 10.0], [10, 5.0], [20, 2.0], [30, 1.0]]
    stuck = [[5, 20.1], [10, 20.0], [20, 19.0], [40, 0.5]]
    kept, excess, work = replay([steady, stuck])
    assert not kept  # the plateau was the winner's
    assert excess == pytest.approx(1.0)
    assert work == pytest.approx(40 / 70)
    assert replay([steady, steady]) == (True, 0.0, 1.0)
