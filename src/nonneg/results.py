"""What functions return and estimators store: results, histories and certificates.

Users meet these classes as return values and attributes; this is where they can be imported from, for type
hints and `isinstance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg._lazy import lazy_names

if TYPE_CHECKING:
    from nonneg.certificates.certificate import Certificate, Statement, Verdict
    from nonneg.cones.rank_one import ConeResult
    from nonneg.consensus.result import RankConsensus, RestartTable
    from nonneg.estimators.errors import ErrorEstimate
    from nonneg.iteration import History, Progress, StopReason
    from nonneg.purification.initialization import InitQuality
    from nonneg.purification.purify import PurificationResult
    from nonneg.rank_selection.comparison import RankComparison
    from nonneg.rank_selection.result import RankCurve, RankResult
    from nonneg.separable.result import SelectionResult
    from nonneg.solvers.result import FactorizationResult
    from nonneg.transforms.result import RestartSummary, TransformResult
    from nonneg.transforms.selection import TransformChoice

__all__ = [
    "Certificate",
    "ConeResult",
    "ErrorEstimate",
    "FactorizationResult",
    "History",
    "InitQuality",
    "Progress",
    "PurificationResult",
    "RankComparison",
    "RankConsensus",
    "RankCurve",
    "RankResult",
    "RestartSummary",
    "RestartTable",
    "SelectionResult",
    "Statement",
    "StopReason",
    "TransformChoice",
    "TransformResult",
    "Verdict",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Certificate": "nonneg.certificates.certificate",
        "ConeResult": "nonneg.cones.rank_one",
        "ErrorEstimate": "nonneg.estimators.errors",
        "FactorizationResult": "nonneg.solvers.result",
        "History": "nonneg.iteration",
        "InitQuality": "nonneg.purification.initialization",
        "Progress": "nonneg.iteration",
        "PurificationResult": "nonneg.purification.purify",
        "RankComparison": "nonneg.rank_selection.comparison",
        "RankConsensus": "nonneg.consensus.result",
        "RankCurve": "nonneg.rank_selection.result",
        "RankResult": "nonneg.rank_selection.result",
        "RestartSummary": "nonneg.transforms.result",
        "RestartTable": "nonneg.consensus.result",
        "SelectionResult": "nonneg.separable.result",
        "Statement": "nonneg.certificates.certificate",
        "StopReason": "nonneg.iteration",
        "TransformChoice": "nonneg.transforms.selection",
        "TransformResult": "nonneg.transforms.result",
        "Verdict": "nonneg.certificates.certificate",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
