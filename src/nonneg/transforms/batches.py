"""Batches of starts: how their loops are told to run, and how they ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._typing import BoolArray, FloatArray, IntArray
from nonneg.iteration import Progress, Run, StopReason
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.runs import GradientsSmall, LossesSettled, last_values, run_batch

STOPPED = (StopReason.INTERRUPTED, StopReason.CALLBACK)
"""Reasons for which no further part of a run is begun."""


@dataclass(frozen=True)
class LoopOptions:
    """What the loop of every part is told.

    Attributes
    ----------
    max_iter : int
        At most so many iterations.
    tol : float
        For losses: the least decrease an entry in ten iterations.
    gradient_tol : float
        For joint diagonalization: the norm of the skew gradient.
    drop : int or None
        Iterations between two looks for hopeless starts.
    callback : callable or None
        True stops.
    verbose : int
        1 shows a line.
    checkpoint : str or path or None
        A folder.
    """

    max_iter: int
    tol: float = 0.0
    gradient_tol: float = 0.0
    drop: int | None = None
    callback: Callable[[Progress], bool | None] | None = None
    verbose: int = 0
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        checked_verbose(self.verbose)
        checked_checkpoint(self.checkpoint)

    def run(self, method: str, state: Any, data: Any, options: TransformOptions, name: str) -> Run[Any]:
        """Run one part.

        Parameters
        ----------
        method : str
            "tl", "jd" or "factors".
        state : TransformState or FactorState
            The starts.
        data : FrameCovariances or array
            What is fitted.
        options : TransformOptions
            How an iteration is made.
        name : str
            Of the part.

        Returns
        -------
        Run
            Its end.
        """
        if method == "jd":
            stop: Any = GradientsSmall(self.gradient_tol)
        else:
            entries = (
                data.shape[1] * data.shape[2] if method == "factors" else data.n_frames * data.frame_length
            )
            stop = LossesSettled(self.tol, entries)
        return run_batch(
            method,
            state,
            data,
            options,
            max_iter=self.max_iter,
            stop=stop,
            drop=None if method == "factors" else self.drop,
            callback=self.callback,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            name=name,
        )


@dataclass(frozen=True)
class Batch:
    """The end of a batch of starts."""

    run: Run[Any]  # of the loop
    n_lanes: int  # how many starts there were
    losses: FloatArray  # what was minimised, at the end of each start

    @property
    def best(self) -> int:
        """The start with the least loss among those that were not given up."""
        kept = np.full(self.n_lanes, np.inf)
        lanes = self.run.state.lanes
        kept[lanes] = np.where(np.isnan(self.losses[lanes]), np.inf, self.losses[lanes])
        return int(lanes[0]) if not np.isfinite(kept).any() else int(np.argmin(kept))

    @property
    def dropped(self) -> BoolArray:
        """Which starts were given up."""
        found = np.ones(self.n_lanes, dtype=np.bool_)
        found[self.run.state.lanes] = False
        return found

    @property
    def place(self) -> int:
        """Where the best start is in the batch that is left."""
        return int(np.flatnonzero(self.run.state.lanes == self.best)[0])

    @property
    def n_iter(self) -> IntArray:
        """Iterations of each start."""
        return last_values(self.run.history, "loss", self.n_lanes)[1].astype(np.int64)


def ended(run: Run[Any], n_lanes: int) -> Batch:
    """Sum up a batch."""
    return Batch(run, n_lanes, last_values(run.history, "loss", n_lanes)[0])
