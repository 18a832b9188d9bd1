"""The one loop of all iterative methods: history, stopping, clock, progress, callback, checkpoint."""

from __future__ import annotations

from nonneg.iteration.checkpoint import Checkpoint
from nonneg.iteration.history import History
from nonneg.iteration.loop import Run, iterate
from nonneg.iteration.progress import Progress
from nonneg.iteration.stopping import (
    RelativeDecrease,
    RelativeMeasure,
    SlowDecrease,
    StopReason,
    least_squares_rule,
)

__all__ = [
    "Checkpoint",
    "History",
    "Progress",
    "RelativeDecrease",
    "RelativeMeasure",
    "Run",
    "SlowDecrease",
    "StopReason",
    "iterate",
    "least_squares_rule",
]
