"""Directions in one pass are those of the array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.skew_directions import serves, skew_direction
from nonneg.transforms.rotations import newton_direction, skew_part
from nonneg.transforms.rotations.group import norm_bound
from nonneg.transforms.rotations.quasi_newton import symmetric_curvature


@pytest.mark.parametrize("m", [24, 37])
@pytest.mark.parametrize(("less", "least"), [(0.0, 0.0), (1.5, 0.2)])
def test_one_pass_is_the_array_code(m: int, less: float, least: float) -> None:
    rng = np.random.default_rng(m)
    gradient, products = rng.standard_normal((1, m, m)), rng.random((1, m, m)) - 0.1
    products[0, 3, 4] = np.nan
    assert serves(gradient, products)
    skew = skew_part(gradient)
    expected = newton_direction(skew, symmetric_curvature(products, less, least))
    direction, slope, norm, bound = skew_direction(gradient, products, less, least)
    assert np.allclose(direction, expected, rtol=1e-14, atol=0)
    assert np.array_equal(direction, -np.swapaxes(direction, 1, 2))
    assert direction[0, 3, 4] == 0.0
    assert np.allclose(slope, np.sum(skew * expected), rtol=1e-12)
    assert np.allclose(norm, np.linalg.norm(skew), rtol=1e-13)
    assert np.isclose(bound, norm_bound(expected), rtol=1e-13)


def test_what_is_taken() -> None:
    A = np.zeros((1, 24, 24))
    assert serves(A, A)
    assert not serves(A, A.astype(np.float32))
    assert not serves(A[:, :9, :9], A)
