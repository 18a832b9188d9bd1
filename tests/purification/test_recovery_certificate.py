"""Statements about purification: verdicts at both sides of their thresholds."""

from __future__ import annotations

import math

import pytest

from nonneg.purification.certificate import (
    WeightConstants,
    balancing_statement,
    conditioning_statement,
    decode_statement,
    halves_statement,
    warm_start_statement,
    weights_statement,
)


def test_verdicts():
    assert warm_start_statement(0.05, "good", silent=0).holds
    assert not warm_start_statement(0.2, "usable", silent=0).holds
    assert not warm_start_statement(0.05, "silent", silent=2).holds
    assert decode_statement(0.01, 10).holds
    assert not decode_statement(0.2, 10).holds
    assert halves_statement(0.05, 0.01, 0.0).holds
    assert not halves_statement(0.5, 0.01, 0.0).holds
    assert str(halves_statement(math.nan, 0, 0).verdict) == "not verifiable"
    assert weights_statement(WeightConstants(3, 2, 3.9, 1), 20).holds
    assert not weights_statement(WeightConstants(3, 2, 4.1, 1), 20).holds
    assert weights_statement(WeightConstants(3, 0, 4.1, 1), 20).number == math.inf
    assert balancing_statement(-0.001, 0.1, 3).holds
    assert not balancing_statement(-0.05, 0.1, 3).holds


def test_the_unit_of_noise_is_the_theorems():
    statement = conditioning_statement(12.0, 20, 100)
    assert statement.quantities["noise_unit"] == pytest.approx(1 / 240)
    assert conditioning_statement(2.0, 20, 100).quantities["noise_unit"] == pytest.approx(1 / 100)
    assert str(statement.verdict) == "not verifiable"
