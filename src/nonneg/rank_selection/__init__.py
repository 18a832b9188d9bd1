"""How many components: estimates of the rank."""

from __future__ import annotations

from nonneg.rank_selection.spectrum import RankResult, estimate_rank

__all__ = ["RankResult", "estimate_rank"]
