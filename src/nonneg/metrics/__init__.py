"""Scores of factorizations, by any library: plain arrays in, numbers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg.metrics.clustering import clustering_accuracy as clustering_accuracy
from nonneg.metrics.clustering import normalized_mutual_information as normalized_mutual_information
from nonneg.metrics.clustering import purity as purity
from nonneg.metrics.factors import Matching as Matching
from nonneg.metrics.factors import anchors_found as anchors_found
from nonneg.metrics.factors import match_components as match_components
from nonneg.metrics.factors import relative_error as relative_error
from nonneg.metrics.factors import spectral_angles as spectral_angles
from nonneg.metrics.mixing import Mixing as Mixing
from nonneg.metrics.mixing import mixing as mixing
from nonneg.metrics.networks import averaged_rank_correlation as averaged_rank_correlation
from nonneg.metrics.networks import conductance as conductance
from nonneg.metrics.networks import omega_index as omega_index
from nonneg.metrics.networks import overlapping_modularity as overlapping_modularity
from nonneg.metrics.networks import overlapping_nmi as overlapping_nmi
from nonneg.metrics.separation import SeparationScores as SeparationScores
from nonneg.metrics.separation import separation_scores as separation_scores
from nonneg.metrics.topics import cv_coherence as cv_coherence
from nonneg.metrics.topics import npmi_coherence as npmi_coherence
from nonneg.metrics.topics import top_words as top_words
from nonneg.metrics.topics import topic_diversity as topic_diversity
from nonneg.metrics.topics import umass_coherence as umass_coherence

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__ = [*sorted(name for name, value in globals().items() if callable(value))]  # noqa: PLE0604
