"""The multiplicative update: its exponent, and the equation that it solves."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.solvers.mu import descent_exponent, update_ratio


@pytest.mark.parametrize(
    ("beta", "exponent"), [(-1.0, 1 / 3), (0.0, 0.5), (1.0, 1.0), (2.0, 1.0), (3.0, 0.5)]
)
def test_exponent_of_guaranteed_descent(beta, exponent):
    assert descent_exponent(beta) == pytest.approx(exponent)


@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.5, 1.0, 1.3, 1.9, 2.0, 2.5, 4.0])
@pytest.mark.parametrize("l1", [0.0, 0.4])
@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_the_update_is_the_root_of_its_equation(beta, l1, l2, rng):
    factor, ratio, power = (rng.random((6, 3)) + 0.1 for _ in range(3))
    u = update_ratio(factor, ratio, power, l1=l1, l2=l2, beta=beta)
    if beta >= 2:  # the penalty joins the denominator
        left = (power + l1 + l2 * factor) * u ** (1.0 if beta == 2 else beta - 1.0)
    else:
        a, b = (1.0, 2.0 - beta) if beta >= 1 else (2.0 - beta, 1.0)
        left = (power + l1) * u**a + l2 * factor * u ** (a + b)
    np.testing.assert_allclose(left, ratio, rtol=1e-6)


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_entries_without_data_become_zero_and_nothing_stays_nothing(beta, l2):
    factor, ratio, power = (
        np.array([[1.0, 1.0, 0.0]]),
        np.array([[0.0, 0.0, 1.0]]),
        np.array([[1.0, 0.0, 1.0]]),
    )
    u = update_ratio(factor, ratio, power, l1=0.0, l2=l2, beta=beta)
    assert np.isfinite(u).all()
    np.testing.assert_allclose((factor * u)[0], 0.0, atol=1e-12)
