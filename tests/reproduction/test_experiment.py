"""Settings and records as plain data."""

from __future__ import annotations

import json
import math

import pytest
from reproduction.experiment import flat_records, setting_key
from reproduction.grouping import grouped, mean_and_spread
from reproduction.published_values import PAPERS, published_values
from reproduction.registry import TITLES, find_experiment

from nonneg.exceptions import UnknownNameError


def test_a_setting_is_the_same_after_a_file():
    setting = {"seed": 3, "alpha": 0.1 + 0.2, "sizes": [1, 2]}
    back = dict(reversed(json.loads(json.dumps(setting)).items()))
    assert setting_key(back) == setting_key(setting)
    assert setting_key(setting | {"seed": 4}) != setting_key(setting)


def test_records_carry_their_setting():
    lines = [{"setting": {"seed": 1}, "records": [{"n": 10, "error": 0.5}, {"n": 20, "error": 0.25}]}]
    assert flat_records(lines) == [{"seed": 1, "n": 10, "error": 0.5}, {"seed": 1, "n": 20, "error": 0.25}]


def test_groups_keep_the_order_of_appearance():
    records = [{"n": 2, "v": 1}, {"n": 1, "v": 2}, {"n": 2, "v": 3}, {"v": 4}]
    found = grouped(records, "n")
    assert list(found) == [(2,), (1,), (None,)]
    assert [record["v"] for record in found[(2,)]] == [1, 3]


def test_mean_and_spread_by_hand():
    assert mean_and_spread([1.0, None, 3.0]) == (2.0, math.sqrt(2.0))
    assert mean_and_spread([5.0]) == (5.0, None)
    assert mean_and_spread([None]) == (None, None)


@pytest.mark.parametrize("paper", PAPERS)
def test_printed_numbers_are_fresh_copies(paper):
    first = published_values(paper)
    first.clear()
    assert "paper" in published_values(paper)


def test_an_unknown_paper_is_named():
    with pytest.raises(UnknownNameError, match="cr1_nmf"):
        published_values("cr1-nmf")


def test_the_printed_running_times_are_those_of_the_paper():
    table = published_values("cr1_nmf")["table_1_running_times_s"]
    assert table["mean"][-1] == [10000, 1.85, 85.92, 27.84, 17.39]


@pytest.mark.parametrize("name", TITLES)
def test_every_name_leads_to_its_experiment(name):
    experiment = find_experiment(name)
    assert (experiment.name, experiment.title) == (name, TITLES[name])
    for quick in (True, False):
        keys = [setting_key(setting) for setting in experiment.trials(quick)]
        # Some experiments list only what the data sets at hand allow.
        assert keys or experiment.missing_data_sets(quick)
        assert len(set(keys)) == len(keys)
