"""Scores of factorizations, by any library: plain arrays in, numbers out."""

from __future__ import annotations

from nonneg.metrics.angles import mean_removed_angles, mean_removed_spectral_angle, spectral_angles
from nonneg.metrics.clustering import (
    clustering_accuracy,
    dice_coefficient,
    normalized_mutual_information,
    pair_dice,
    purity,
)
from nonneg.metrics.matching import Matching, match_components
from nonneg.metrics.mixing import Mixing, mixing
from nonneg.metrics.networks import conductance, overlapping_modularity
from nonneg.metrics.ranking import RankMatching, averaged_rank_correlation, match_memberships
from nonneg.metrics.reconstruction import beta_divergence, relative_error
from nonneg.metrics.selection import anchors_found, relative_approximation, success_rate
from nonneg.metrics.separation import SeparationScores, separation_scores
from nonneg.metrics.sinusoids import SinusoidFit, atoms_per_frequency, fit_sinusoids
from nonneg.metrics.topics import (
    cv_coherence,
    npmi_coherence,
    shared_words,
    similarity_count,
    top_words,
    topic_diversity,
    umass_coherence,
)

__all__ = [
    "Matching",
    "Mixing",
    "RankMatching",
    "SeparationScores",
    "SinusoidFit",
    "anchors_found",
    "atoms_per_frequency",
    "averaged_rank_correlation",
    "beta_divergence",
    "clustering_accuracy",
    "conductance",
    "cv_coherence",
    "dice_coefficient",
    "fit_sinusoids",
    "match_components",
    "match_memberships",
    "mean_removed_angles",
    "mean_removed_spectral_angle",
    "mixing",
    "normalized_mutual_information",
    "npmi_coherence",
    "overlapping_modularity",
    "pair_dice",
    "purity",
    "relative_approximation",
    "relative_error",
    "separation_scores",
    "shared_words",
    "similarity_count",
    "spectral_angles",
    "success_rate",
    "top_words",
    "topic_diversity",
    "umass_coherence",
]
