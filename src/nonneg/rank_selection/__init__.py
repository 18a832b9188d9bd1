"""How many components: estimates of the rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg._lazy import lazy_names

if TYPE_CHECKING:
    from nonneg.rank_selection.comparison import RankComparison, compare_ranks
    from nonneg.rank_selection.estimate import estimate_rank
    from nonneg.rank_selection.result import RankCurve, RankResult

__all__ = ["RankComparison", "RankCurve", "RankResult", "compare_ranks", "estimate_rank"]

__getattr__ = lazy_names(
    __name__,
    {
        "RankComparison": "nonneg.rank_selection.comparison",
        "RankCurve": "nonneg.rank_selection.result",
        "RankResult": "nonneg.rank_selection.result",
        "compare_ranks": "nonneg.rank_selection.comparison",
        "estimate_rank": "nonneg.rank_selection.estimate",
    },
)
