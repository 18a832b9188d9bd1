"""Windows of the constant-Q transform: where they begin and end, and that they cover every bin."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio.constant_q import ConstantQ


@pytest.mark.parametrize("length", [1024, 4096])
def test_windows_reach_from_the_neighbor_below_to_the_one_above(length):
    framing = ConstantQ(8000)
    lows, highs = framing._supports()
    centers = framing.frequencies
    assert (np.diff(centers) > 0).all()
    assert (lows[1:] <= centers[:-1]).all()
    assert (highs[:-1] >= centers[1:]).all()
    assert lows.min() >= 0.0
    assert highs.max() <= 4000.0
    grid = np.arange(length // 2 + 1) * (8000 / length)
    total = np.zeros(len(grid))
    for (first, window), low, high, center in zip(
        framing._windows(length), lows, highs, centers, strict=True
    ):
        places = np.arange(first, first + len(window))
        assert places[-1] < len(grid)
        inside = (grid > low) & (grid < high)
        # Every bin inside the support is in the window, and no more than one on either side of it.
        assert set(np.flatnonzero(inside)) <= set(places)
        assert places[0] == max(np.sum(grid <= low) - 1, 0)
        assert places[-1] == min(np.sum(grid <= high), len(grid) - 1)
        at = grid[places]
        left = np.ones(len(at)) if center == 0 else (at - low) / (center - low)
        right = np.ones(len(at)) if center >= 4000 else (high - at) / (high - center)
        inner = np.clip(np.where(at <= center, left, right), 0.0, 1.0)
        np.testing.assert_allclose(window, np.sin(0.5 * np.pi * inner) ** 2 + 1e-6)
        total[places] += window**2
    assert total.min() > 0.0
