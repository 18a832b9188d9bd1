"""How many components: estimates of the rank."""

from __future__ import annotations

from nonneg.rank_selection.comparison import RankComparison, compare_ranks
from nonneg.rank_selection.estimate import estimate_rank
from nonneg.rank_selection.result import RankCurve, RankResult

__all__ = ["RankComparison", "RankCurve", "RankResult", "compare_ranks", "estimate_rank"]
