"""The quick setting of the study on the plausibility of purification: the better method is taken."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.registry import find_experiment
from reproduction.studies.purification_plausibility import REPORTING, planted
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/purification-plausibility"


@pytest.fixture(scope="module")
def records():
    return quick_records(NAME)


@pytest.mark.slow
def test_the_better_method_is_taken(records):
    sparse, proportions, digits = records
    assert not sparse["fell_back"]
    assert sparse["default"] == sparse["purification"] > sparse["nmf"]
    assert proportions["fell_back"]
    assert proportions["default"] > proportions["purification"]
    assert not digits["fell_back"]
    assert digits["default"] > digits["nmf"] + 0.1


@pytest.mark.slow
def test_tables_and_undecided_claims(records):
    tables = artifacts(NAME, records, Table)
    assert [len(table.rows) for table in tables] == [1, 2]
    assert tables[0].rows[0]["right"] == "1 of 1"
    # Three draws decide nothing.
    assert {verdict.met for verdict in verdicts(NAME, records).values()} == {None}


def made_up(*, kept: bool) -> list[dict]:
    """Records of the full setting in which purification is better and is kept or not."""
    found = {"purification": 0.9, "nmf": 0.8, "default": 0.9 if kept else 0.8, "fell_back": not kept}
    found |= dict.fromkeys(("warm_start", "mixing_on_halves", "weight_correlation", "noise_level"), 0.05)
    return [setting | found for setting in find_experiment(NAME).trials(False)]


def test_claims_hold_or_fail():
    assert {verdict.met for verdict in verdicts(NAME, made_up(kept=True)).values()} == {True}
    failed = verdicts(NAME, made_up(kept=False))
    # Nothing is lost to NMF, but nothing is won either.
    assert [verdict.met for verdict in failed.values()] == [False, True, True, False] * 2


def test_planted_data_are_those_of_their_setting():
    setting = next(given for given in find_experiment(NAME).trials(False) if given["set"] == REPORTING)
    X, H = planted(setting)
    assert X.shape == (1500, 80)
    assert H.shape == (12, 80)
    assert (planted(setting)[0] == X).all()
    smooth = planted(setting | {"features": "smooth", "noise": 0.0})
    assert smooth[0].min() >= 0
    assert 0.4 < (smooth[1] > 0).mean() <= 0.5
