"""Results, histories and certificates: returned by functions, stored by estimators.

Users meet these classes as return values and attributes; this is where they can be imported from, for type
hints and `isinstance`.
"""

from __future__ import annotations

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
