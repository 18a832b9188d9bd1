"""Shares of trials and their sampling error."""

from __future__ import annotations

import pytest
from reproduction.merit.rates import Rate, agreement_verdict, rate_cell, rate_of, rate_verdict, success_rates


def test_intervals_are_those_of_clopper_and_pearson():
    # From the tables of the exact interval: 0 of 50 has 1 - 0.025 ** (1 / 50) as its upper end.
    low, high = Rate(0, 50).interval
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 50)))
    low, high = Rate(50, 50).interval
    assert (low, high) == (pytest.approx(0.025 ** (1 / 50)), 1.0)
    assert Rate(42, 50).interval == (pytest.approx(0.7089, abs=1e-4), pytest.approx(0.9283, abs=1e-4))


def test_shares_agree_unless_the_difference_is_improbable():
    assert Rate(49, 50).agrees_with(rate_of(0.98, 50))
    assert Rate(15, 50).agrees_with(rate_of(0.42, 50))
    assert not Rate(8, 50).agrees_with(rate_of(0.42, 50))
    assert Rate(45, 50).agrees_with(Rate(50, 50))
    assert not Rate(41, 50).agrees_with(Rate(50, 50))


def test_counts_by_group():
    records = [{"method": "a", "success": 1}, {"method": "a", "success": 0}, {"method": "b", "success": 1}]
    assert success_rates(records, "method") == {("a",): Rate(1, 2), ("b",): Rate(1, 1)}


def test_cells_carry_the_interval():
    cell = rate_cell(Rate(25, 50), 0.4)
    assert (cell.value, cell.published, cell.remark) == (0.5, 0.4, "[0.36, 0.64]")
    assert rate_cell(None, 0.4).value is None


def test_verdicts_need_enough_trials():
    assert rate_verdict("", [Rate(36, 50)], 0.7, 50).met is True
    assert rate_verdict("", [Rate(34, 50), Rate(50, 50)], 0.7, 50).met is False
    assert rate_verdict("", [Rate(10, 10)], 0.7, 50).met is None
    assert rate_verdict("", [Rate(50, 50), None], 0.7, 50).met is None
    assert rate_verdict("", [], 0.7, 50).met is None
    pairs = {"here": (Rate(50, 50), Rate(20, 20)), "there": (Rate(0, 50), Rate(20, 20))}
    verdict = agreement_verdict("", pairs, 50)
    assert (verdict.met, verdict.detail) == (False, "there: 0 of 50 against 20 of 20")
    assert agreement_verdict("", {"here": pairs["here"]}, 50).met is True
    assert agreement_verdict("", {"here": (None, Rate(1, 1))}, 50).met is None
