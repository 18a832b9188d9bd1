"""What a duality gap says."""

from __future__ import annotations

import math

from nonneg.certificates.certificate import Verdict
from nonneg.separable.merit.duality_gap import duality_gap_statement


def test_the_bound_is_stated():
    found = duality_gap_statement(10.0, 0.5)
    assert found.holds
    assert found.number == 0.5
    assert found.quantities["lower_bound"] == 9.5
    assert found.quantities["relative_gap"] == 0.05
    assert found.sentence == "The objective, 10, is at most 0.5 (5% of it) above the smallest possible."


def test_a_gap_that_was_asked_for():
    assert duality_gap_statement(10.0, 0.5, tol=1.0).holds
    missed = duality_gap_statement(10.0, 0.5, tol=0.1)
    assert missed.verdict is Verdict.FAILS
    assert missed.threshold == 0.1
    assert missed.sentence.endswith("A gap of 0.1 was asked for.")


def test_a_gap_of_nothing_and_one_that_is_not_known():
    assert duality_gap_statement(0.0, 0.0).holds
    unknown = duality_gap_statement(1.0, math.nan)
    assert unknown.verdict is Verdict.NOT_VERIFIABLE
    assert unknown.number is None
