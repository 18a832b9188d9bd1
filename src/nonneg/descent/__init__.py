"""Descent and search methods that know nothing of a family: what varies comes in as an argument."""

from __future__ import annotations

from nonneg.descent.greedy import GreedyRule, GreedySelection, greedy_selection

__all__ = ["GreedyRule", "GreedySelection", "greedy_selection"]
