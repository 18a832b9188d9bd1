"""Sums of inverses are inverse roots to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.transforms.rotations.inverse_root import LARGEST_RATIO, inverse_root_nodes


@pytest.mark.parametrize(
    ("largest", "most"), [(1.0, 3), (1.7, 8), (30.0, 14), (4e4, 28), (LARGEST_RATIO, 45)]
)
def test_numbers(largest: float, most: int) -> None:
    shifts, scales = inverse_root_nodes(largest, 1e-16)
    assert len(shifts) == len(scales) <= most
    assert min(shifts.min(), scales.min()) > 0
    x = np.geomspace(1.0, largest, 301)
    found = (scales / (x[:, None] + shifts)).sum(axis=1)
    assert np.abs(found * np.sqrt(x) - 1.0).max() < 2e-13
