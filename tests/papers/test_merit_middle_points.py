"""The quick setting of Figures 2 and 3 of Nguyen, Fu & Wu: who finds the anchors among middle points."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Figure, Table
from reproduction.merit.rates import success_rates
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records, verdicts

FIGURE_2, FIGURE_3 = "merit/figure-2", "merit/figure-3"


@pytest.fixture(scope="module")
def records():
    return quick_records(FIGURE_2)


@pytest.mark.slow
def test_the_rates_are_those_of_the_authors_code(records):
    rates = {key: rate.value for key, rate in success_rates(records, "method", "snr").items()}
    assert rates == {
        ("merit", 8): 0.0, ("merit", 12): 1.0, ("merit", 20): 1.0,
        ("fast-gradient", 8): 0.0, ("fast-gradient", 12): 0.0, ("fast-gradient", 20): 1.0,
        ("spa", 8): 0.0, ("spa", 12): 0.0, ("spa", 20): 0.0,
        ("default", 8): 0.0, ("default", 12): 1.0, ("default", 20): 1.0,
    }  # fmt: skip
    assert all(record["n_iter"] == 100 for record in records if record["method"] == "merit")


@pytest.mark.slow
def test_found_anchors_are_exact_and_missed_ones_are_not(records):
    for record in records:
        assert (record["mrsa"] < 1e-4) == (record["success"] == 1) == (record["found"] == 1)
        assert 0 < record["rae"] < 1


@pytest.mark.slow
def test_few_draws_decide_nothing(records):
    for name in (FIGURE_2, FIGURE_3):
        assert {verdict.met for verdict in verdicts(name, records).values()} == {None}
        assert len(artifacts(name, records, Figure)) == len(artifacts(name, records, Table)) == 1


def test_the_full_setting_has_fifty_draws_of_every_ratio():
    experiment = find_experiment(FIGURE_2)
    draws = {}
    for setting in experiment.trials(quick=False):
        assert (setting["n"], setting["n_features"], setting["n_anchors"]) == (55, 50, 10)
        key = setting["snr"], setting["method"]
        draws.setdefault(key, set()).update(
            range(setting["first_draw"], setting["first_draw"] + setting["n_draws"])
        )
    assert set(draws) == {
        (snr, method) for snr in range(5, 21) for method in ("merit", "fast-gradient", "spa", "default")
    }
    assert all(seen == set(range(50)) for seen in draws.values())
    assert find_experiment(FIGURE_3).trials(quick=False) == experiment.trials(quick=False)


def made_up(rates, n=50):
    """Records with so many successes by method and ratio; MRSA is 0 for a success and 10 otherwise."""
    return [
        {"method": method, "snr": snr, "success": int(draw < share * n), "mrsa": 10.0 * (draw >= share * n)}
        | {"rae": 0.9}
        for (method, snr), share in rates.items()
        for draw in range(n)
    ]


def curve(name, thresholds):
    return {(name, snr): thresholds(snr) for snr in range(5, 21)}


def test_verdicts_of_figure_2_and_3_are_met_by_the_paper_s_curves_and_not_by_worse_ones():
    merit = curve("merit", lambda snr: 0.9 if snr == 10 else float(snr > 10))
    fast = curve("fast-gradient", lambda snr: 0.1 if snr in (14, 15) else float(snr > 15))
    spa = curve("spa", lambda snr: 0.04 if snr == 20 else 0.0)
    default = {("default", snr): share for (_, snr), share in merit.items()}
    records = made_up(merit | fast | spa | default)
    assert {verdict.met for verdict in verdicts(FIGURE_2, records).values()} == {True}
    behind = made_up(merit | fast | spa | default | {("default", 14): 0.5})
    *others, last = verdicts(FIGURE_2, behind).values()
    assert {verdict.met for verdict in others} == {True}
    assert (last.met, last.detail) == (False, "25 of 50 against 50 of 50 at 14")
    assert {verdict.met for verdict in verdicts(FIGURE_3, records).values()} == {True}
    assert [verdict.met for verdict in verdicts(FIGURE_3, behind).values()] == [True, True, True, False]
    worse = made_up(
        merit | {("merit", 10): 0.66, ("merit", 13): 0.98} | fast | {("fast-gradient", 20): 0.9} | spa
    )
    found = list(verdicts(FIGURE_2, worse).values())
    assert [verdict.met for verdict in found[:3]] == [False, False, False]
    assert found[0].detail == "33 of 50"
    assert [verdict.met for verdict in verdicts(FIGURE_3, worse).values()] == [True, False, False, None]
