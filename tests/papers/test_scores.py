"""Scores of the papers' tables, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.scores import (
    atoms_per_frequency,
    dice_coefficient,
    match_memberships,
    mean_removed_spectral_angle,
    pair_dice,
    relative_approximation,
    success_rate,
)


def test_scores_worked_by_hand():
    # Classes a with p: 6/7; b with q: 4/6; c with r: 2/3. Pairs in both: 4; in classes: 7; in clusters: 9.
    assert dice_coefficient(list("aaabbbcc"), list("ppppqqqr")) == pytest.approx((6 / 7 + 4 / 6 + 2 / 3) / 3)
    assert pair_dice(list("aaabbbcc"), list("ppppqqqr")) == pytest.approx(2 * 4 / (7 + 9))
    x = np.array([[1.0, 2.0, 3.0]])
    assert mean_removed_spectral_angle(x, -x) == pytest.approx(100)
    assert mean_removed_spectral_angle(x, [[1.0, -2.0, 1.0]]) == pytest.approx(50)
    assert success_rate([([1, 2, 3], [3, 1, 2]), ([1, 2, 3], [1, 2]), ([7], np.array([7]))]) == pytest.approx(
        2 / 3
    )
    assert relative_approximation(np.diag([3.0, 4.0]), [[1.0], [0.0]], [[3.0, 0.0]]) == pytest.approx(1 / 5)
    counts = atoms_per_frequency([440.2, 439.6, 466.0, np.nan, 880.6], [440, 466.16, 880, 932.32])
    assert counts.tolist() == [2, 1, 0, 0]
    true = np.array([[1.0, 0.0], [0.7, 0.3], [0.2, 0.8], [np.nan, np.nan]])
    matching = match_memberships(true, true[:, ::-1])
    assert matching.permutation.tolist() == [1, 0]
    np.testing.assert_allclose(matching.correlations, 1.0)
