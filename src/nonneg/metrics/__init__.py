"""Scores of factorizations, also of foreign ones: plain arrays in, numbers out."""

from __future__ import annotations

from nonneg.metrics.matching import Matching, match_components
from nonneg.metrics.reconstruction import beta_divergence, relative_error

__all__ = ["Matching", "beta_divergence", "match_components", "relative_error"]
