"""Scores of factorizations, also of foreign ones: plain arrays in, numbers out."""

from __future__ import annotations

from nonneg.metrics.clustering import (
    clustering_accuracy,
    dice_coefficient,
    normalized_mutual_information,
    pair_dice,
    purity,
)
from nonneg.metrics.matching import Matching, match_components
from nonneg.metrics.reconstruction import beta_divergence, relative_error

__all__ = [
    "Matching",
    "beta_divergence",
    "clustering_accuracy",
    "dice_coefficient",
    "match_components",
    "normalized_mutual_information",
    "pair_dice",
    "purity",
    "relative_error",
]
