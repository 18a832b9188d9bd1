"""Quick settings of the theorems of Nguyen, Fu & Wu: steps that enter anchors, row maxima, warm starts."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.merit.theorems import N_DRAWS
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "merit/theorems"


@pytest.fixture(scope="module")
def records():
    return quick_records(NAME)


def test_without_noise_no_step_leaves_the_anchors_before_the_optimum(records):
    clean = [record for record in records if record["snr"] is None]
    assert len(clean) == 2
    for record in clean:
        assert record["outside before"] == 0 < record["smallest gap"]
        assert record["steps"] <= 60 * 120 - 59 * record["at optimum"]
        assert record["all found"] is True
        assert record["outside after"] >= 0


def test_theorem_2_where_it_applies(records):
    noisy = [record for record in records if record["snr"] == 100]
    applies = [record for record in noisy if record["applies"]]
    for record in applies:
        assert record["outside before"] == 0
        assert record["mixture error"] <= record["bound"]
    _, table = artifacts(NAME, records, Table)
    assert table.rows[0]["applies"] == f"{len(applies)} of 2"


def test_claims_are_judged_by_all_draws(records):
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [None] * 5
    clean = {"snr": None, "steps": 10, "outside before": 0, "smallest gap": 1e-3, "outside after": 1}
    clean |= {"at optimum": 2, "all outside": 2, "all found": True}
    noisy = {"snr": 100, "applies": True, "nu": 0.1, "eta": 0.1, "outside before": 0, "mixture error": 0.1}
    noisy |= {"bound": 0.2, "all found": True}
    many = [clean | {"draw": draw} for draw in range(N_DRAWS)]
    assert [verdict.met for verdict in verdicts(NAME, [*many, noisy]).values()] == [True] * 5
    wrong = [row | {"outside after": 0} for row in many]
    wrong += [clean | {"outside before": 1, "smallest gap": 0.0, "outside after": 0}]
    wrong += [noisy | {"outside before": 1, "mixture error": 0.3}]
    assert [verdict.met for verdict in verdicts(NAME, wrong).values()] == [False] * 5


def test_theorems_3_and_4_and_proposition_1_with_the_true_model():
    records = quick_records("merit/identifiability")
    assert len(records) == 4
    for record in records:
        assert record["holds"] is record["separates"] is True
        assert record["others"] <= record["upper"] < record["lower"] < record["anchors"]
        assert record["outside"] == record["constant rows"] == 0
        assert record["difference"] >= 1.0 - 1e-6
    assert sum(record["iterates"] for record in records) > 0
    # With 2 delta inside the root, the unit of the data decides what the theorem promises.
    noisy = [record for record in records if record["snr"] is not None]
    assert all(record["printed lower"] < record["lower"] for record in noisy)
    assert all(record["printed lower, large unit"] > record["lower"] for record in noisy)
    assert [verdict.met for verdict in verdicts("merit/identifiability", records).values()] == [None] * 3
    wrong = [record | {"holds": False, "outside": 1, "difference": 0.5} for record in records] * 40
    assert [verdict.met for verdict in verdicts("merit/identifiability", wrong).values()] == [False] * 3
