"""Series of retractions for one problem and for several at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nonneg.transforms.rotations.retractions import Powers


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("columns", [2, 6])
def test_series_of_powers(batch, columns, rng):
    E = rng.standard_normal((batch, 6, 6))
    E = 0.2 * (E - np.swapaxes(E, 1, 2))
    P = rng.standard_normal((batch, 6, columns))
    weight = lambda j: 1.0 / math.factorial(j)  # noqa: E731
    powers = Powers(E, P, float(np.linalg.norm(E[0], 2)), weight)
    t = rng.uniform(0.2, 1.0, (batch, 1, 1))
    for n_terms in (1, 2, 4, 7):
        term, total, speed = P.copy(), P.copy(), np.zeros_like(P)
        for j in range(1, n_terms + 1):
            speed = speed + weight(j) * j * t ** (j - 1) * (E @ term)
            term = E @ term
            total = total + weight(j) * t**j * term
        np.testing.assert_allclose(powers.point(t, n_terms), total, atol=1e-12)
        np.testing.assert_allclose(powers.velocity(t, n_terms), speed, atol=1e-12)


def test_no_more_terms_are_made_than_matter(rng):
    E = rng.standard_normal((1, 6, 6))
    E = 1e-3 * (E - np.swapaxes(E, 1, 2))
    P = np.linalg.qr(rng.standard_normal((6, 6)))[0][None]
    weight = lambda j: 1.0 / math.factorial(j)  # noqa: E731
    powers = Powers(E, P, float(np.linalg.norm(E[0], 2)), weight)
    few = powers.n_terms(1.0, 20, 1e9)
    assert few < 8
    exact = Powers(E, P, 1.0, weight).point(np.ones((1, 1, 1)), 20)
    np.testing.assert_allclose(powers.point(np.ones((1, 1, 1)), few), exact, atol=1e-14)
    assert Powers(E, P, 1.0, weight).n_terms(1.0, 20, 1.0) is None  # products would cost more
    several = Powers(np.repeat(E, 2, axis=0), np.repeat(P, 2, axis=0), 1.0, weight)
    assert several.n_terms(1.0, 20, 1e9) == 20
