"""Results, histories and certificates: returned by functions, stored by estimators.

Users meet these classes as return values and attributes; this is where they can be imported from, for type
hints and `isinstance`.
"""

from __future__ import annotations

from nonneg.certificates.certificate import Certificate as Certificate
from nonneg.certificates.certificate import Statement as Statement
from nonneg.certificates.certificate import Verdict as Verdict
from nonneg.cones.rank_one import ConeResult as ConeResult
from nonneg.consensus.result import RankConsensus as RankConsensus
from nonneg.consensus.result import RestartTable as RestartTable
from nonneg.estimators.errors import ErrorEstimate as ErrorEstimate
from nonneg.iteration import History as History
from nonneg.iteration import Progress as Progress
from nonneg.iteration import StopReason as StopReason
from nonneg.purification.initialization import InitQuality as InitQuality
from nonneg.purification.purify import PurificationResult as PurificationResult
from nonneg.rank_selection.comparison import RankComparison as RankComparison
from nonneg.rank_selection.result import RankCurve as RankCurve
from nonneg.rank_selection.result import RankResult as RankResult
from nonneg.separable.result import SelectionResult as SelectionResult
from nonneg.solvers.result import FactorizationResult as FactorizationResult
from nonneg.transforms.result import RestartSummary as RestartSummary
from nonneg.transforms.result import TransformResult as TransformResult
from nonneg.transforms.selection import TransformChoice as TransformChoice

__all__ = sorted(name for name, value in globals().items() if callable(value))  # noqa: PLE0605
