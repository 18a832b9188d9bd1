"""The one loop of all iterative methods: history, stopping, clock, progress, callback, checkpoint."""

from __future__ import annotations

from nonneg.iteration.checkpoint import Checkpoint as Checkpoint
from nonneg.iteration.history import History as History
from nonneg.iteration.loop import Run as Run
from nonneg.iteration.loop import iterate as iterate
from nonneg.iteration.progress import Progress as Progress
from nonneg.iteration.stopping import RelativeDecrease as RelativeDecrease
from nonneg.iteration.stopping import RelativeMeasure as RelativeMeasure
from nonneg.iteration.stopping import SlowDecrease as SlowDecrease
from nonneg.iteration.stopping import StopReason as StopReason
from nonneg.iteration.stopping import least_squares_rule as least_squares_rule
