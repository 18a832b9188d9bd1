"""The multiplicative update: its exponent."""

from __future__ import annotations

import pytest

from nonneg.solvers.majorizer import descent_exponent


@pytest.mark.parametrize(
    ("beta", "exponent"), [(-1.0, 1 / 3), (0.0, 0.5), (1.0, 1.0), (2.0, 1.0), (3.0, 0.5)]
)
def test_exponent_of_guaranteed_descent(beta, exponent):
    assert descent_exponent(beta) == pytest.approx(exponent)
