"""The study of tables: its quick setting, and what it calls independent of the unit."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.artifacts import Table
from reproduction.studies.tables import DRAWS, METHODS, OURS, PEERS, THEIRS, UNITS, _claims, generated
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/tables"


@pytest.mark.slow
def test_the_quick_setting_runs_every_method_in_every_unit():
    records = quick_records(NAME)
    assert {record["method"] for record in records} == set(METHODS)
    ours = [record for record in records if record["method"] == OURS and record["set"] == "wine"]
    assert [record["unit"] for record in ours] == list(UNITS)
    assert max(record["error"] for record in ours) < 1.001 * min(record["error"] for record in ours)
    assert len({record["n_iter"] for record in ours}) == 1
    assert {record["method"] for record in records if record.get("absent")} <= set(PEERS)
    assert len(artifacts(NAME, records, Table)) == 4
    # Few sets decide nothing.
    assert {verdict.met for verdict in verdicts(NAME, records).values()} == {None}


def test_draws_are_equal_in_every_run_and_differ_from_each_other():
    for kind in DRAWS.values():
        X, k = generated(kind, 3)
        np.testing.assert_array_equal(X, generated(kind, 3)[0])
        assert X.shape == (300, 30)
        assert 3 <= k <= 8
        assert not np.array_equal(X, generated(kind, 4)[0])


def test_claims_see_a_unit_that_matters_and_an_error_that_is_larger():
    def record(method, unit, error):
        return {"set": "a", "method": method, "unit": unit, "error": error, "draw": 0, "seed": 0}

    fine = [record(method, unit, 0.1) for method in (OURS, THEIRS) for unit in UNITS]
    assert [verdict.met for verdict in _claims("t", fine, complete=True)] == [True, True]
    wrong = [*fine[1:], record(OURS, 1.0, 0.2)]
    assert [verdict.met for verdict in _claims("t", wrong, complete=True)] == [False, False]
    assert [verdict.met for verdict in _claims("t", wrong, complete=False)] == [None, None]
