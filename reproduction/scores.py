"""Scores that only the tables and figures of the papers use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from nonneg._typing import FloatArray, IntArray
from nonneg.metrics import relative_error, spectral_angles


def dice_coefficient(y_true: Any, y_pred: Any) -> float:
    """Return the mean over classes of the Dice coefficient with the best cluster, as cr1-nmf's tables do."""
    table = contingency_matrix(y_true, y_pred)
    overlap = 2.0 * table / (table.sum(axis=1, keepdims=True) + table.sum(axis=0, keepdims=True))
    return float(overlap.max(axis=1).mean())


def pair_dice(y_true: Any, y_pred: Any) -> float:
    """Return the Dice coefficient of the sample pairs within classes and those within clusters."""
    (_, clusters_alone), (classes_alone, both) = pair_confusion_matrix(y_true, y_pred).astype(float)
    either = 2.0 * both + clusters_alone + classes_alone
    return 1.0 if either == 0.0 else float(2.0 * both / either)


def mean_removed_spectral_angle(true: Any, found: Any) -> float:
    """Return the mean-removed spectral angle (Gillis & Luce, 2018) over the best pairs, from 0 to 100."""
    # The mean of its own entries is subtracted from each component; angles are in units of pi / 100.
    first, second = (np.asarray(rows, dtype=np.float64) for rows in (true, found))
    angles = spectral_angles(*(rows - rows.mean(axis=1, keepdims=True) for rows in (first, second))) / 1.8
    return float(angles[linear_sum_assignment(angles)].mean())


def success_rate(trials: Iterable[tuple[Any, Any]]) -> float:
    """Return the fraction of trials in which exactly the true anchors were found."""
    pairs = [(set(np.ravel(true).tolist()), set(np.ravel(found).tolist())) for true, found in trials]
    return float(np.mean([true == found for true, found in pairs]))


def relative_approximation(X: Any, W: Any, H: Any) -> float:
    """Return ``1 - ||X - W H|| / ||X||``, the relative approximation error (RAE) of Gillis & Luce (2018)."""
    return 1.0 - relative_error(X, W, H)


class RankMatching(NamedTuple):
    """The columns that match true communities, -1 where none is left, and Spearman's correlations."""

    permutation: IntArray
    correlations: FloatArray


def match_memberships(true: FloatArray, found: FloatArray) -> RankMatching:
    """Return the matching of communities with the largest sum of rank correlations, without nodes of NaN."""
    known = np.isfinite(true).all(axis=1) & np.isfinite(found).all(axis=1)
    ranks = [rankdata(table[known], axis=0) for table in (true, found)]
    unit = [table - table.mean(axis=0) for table in ranks]
    unit = [table / np.maximum(np.linalg.norm(table, axis=0), np.finfo(np.float64).tiny) for table in unit]
    correlations = unit[0].T @ unit[1]
    rows, columns = linear_sum_assignment(correlations, maximize=True)
    permutation, best = np.full(true.shape[1], -1, dtype=np.intp), np.zeros(true.shape[1])
    permutation[rows], best[rows] = columns, np.clip(correlations[rows, columns], -1.0, 1.0)
    return RankMatching(permutation, best)


def atoms_per_frequency(frequencies: Any, targets: Any, *, within: float = 0.5) -> IntArray:
    """Count the atoms within a distance of each target frequency."""
    apart = np.abs(np.ravel(frequencies)[None, :] - np.ravel(targets)[:, None])
    return np.count_nonzero(apart <= within, axis=1)
