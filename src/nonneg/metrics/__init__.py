"""Scores of factorizations, by any library: plain arrays in, numbers out."""

from __future__ import annotations

from nonneg.metrics.clustering import clustering_accuracy, normalized_mutual_information, purity
from nonneg.metrics.factors import (
    Matching,
    anchors_found,
    match_components,
    relative_error,
    spectral_angles,
)
from nonneg.metrics.mixing import Mixing, mixing
from nonneg.metrics.networks import (
    averaged_rank_correlation,
    conductance,
    omega_index,
    overlapping_modularity,
    overlapping_nmi,
)
from nonneg.metrics.separation import SeparationScores, separation_scores
from nonneg.metrics.topics import (
    cv_coherence,
    npmi_coherence,
    top_words,
    topic_diversity,
    umass_coherence,
)

__all__ = [
    "Matching",
    "Mixing",
    "SeparationScores",
    "anchors_found",
    "averaged_rank_correlation",
    "clustering_accuracy",
    "conductance",
    "cv_coherence",
    "match_components",
    "mixing",
    "normalized_mutual_information",
    "npmi_coherence",
    "omega_index",
    "overlapping_modularity",
    "overlapping_nmi",
    "purity",
    "relative_error",
    "separation_scores",
    "spectral_angles",
    "top_words",
    "topic_diversity",
    "umass_coherence",
]
