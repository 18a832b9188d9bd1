"""Frames as the iterations read them: in the directions that they span, without empty virtual realizations.

What is minimised depends on a transform Phi only through P = Phi B, where the columns of B span the frames: a
matrix with orthonormal columns, but fewer than rows. How the transform acts on directions that no frame has
is chosen at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from array_api_compat import is_numpy_array

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.transforms import LONGEST
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.rotations.group import closest_orthogonal
from nonneg.transforms.state import TransformState, transformed_frames

# Directions with singular values below this share of the largest are rounding.
NEGLIGIBLE_DIRECTION = 1e-12
NEGLIGIBLE_SINGLE = 1e-6
# Rounding to single precision is below a hundredth of that for directions below this share.
SINGLE_DIRECTION = 1e-7
# Directions and rows are left out where that saves at least this share of them.
WORTH = 0.1


@dataclass(frozen=True)
class WorkingFrames:
    """Virtual realizations in coordinates of the space that they span."""

    rows: FloatArray  # their coordinates; those of a frame stand together
    starts: IntArray  # the first row of each frame
    counts: IntArray  # rows of each frame
    basis: FloatArray  # the directions, orthonormal
    rest: FloatArray  # orthonormal directions that no frame has
    whole: FrameCovariances  # what they were made of

    @cached_property
    def largest_entry(self) -> float:
        """The largest size of an entry of the rows."""
        return float(np.abs(self.rows).max())

    @cached_property
    def n_double(self) -> int:
        """How many directions come before those that single precision is enough for."""
        sizes = np.linalg.norm(self.rows, axis=0)
        large = np.flatnonzero(sizes > SINGLE_DIRECTION * sizes.max())
        n_double = int(large[-1]) + 1 if len(large) else 0
        return n_double if n_double <= (1.0 - WORTH) * len(sizes) else len(sizes)

    @cached_property
    def leading_rows(self) -> FloatArray:
        """The first `n_double` coordinates of the rows."""
        return np.ascontiguousarray(self.rows[:, : self.n_double])

    @cached_property
    def trailing_rows(self) -> FloatArray:
        """The other ones of `single_rows`."""
        return np.ascontiguousarray(self.single_rows[:, self.n_double :])

    @cached_property
    def single_rows(self) -> FloatArray:
        """The rows in single precision, with entries up to 1."""
        return (self.rows / (self.largest_entry or 1.0)).astype(np.float32)

    @cached_property
    def single_sizes(self) -> FloatArray:
        """Sums of squares of these rows over every frame."""
        squares = np.einsum("ij,ij->i", self.single_rows, self.single_rows)
        found: FloatArray = np.add.reduceat(squares, self.starts)
        return found

    @property
    def virtual(self) -> Array:
        """The virtual realizations they were made of."""
        return self.whole.virtual

    @property
    def n_frames(self) -> int:
        """The number of frames."""
        return self.whole.n_frames

    @property
    def frame_length(self) -> int:
        """Samples a frame."""
        return self.whole.frame_length


Frames = FrameCovariances | WorkingFrames
"""What the iterations take."""


def working_frames(data: FrameCovariances) -> Frames:
    """Bring frames into the form that is cheapest to iterate on."""
    if not is_numpy_array(data.virtual) or data.frame_length <= LONGEST:
        return data
    rank, n, m = data.virtual.shape
    by_frame = np.ascontiguousarray(np.swapaxes(data.virtual, 0, 1)).reshape(n * rank, m)
    used = np.einsum("ij,ij->i", by_frame, by_frame) > 0
    counts = used.reshape(n, rank).sum(axis=1)
    # A silent frame keeps one row of zeros, so that every frame has its rows.
    silent = np.flatnonzero(counts == 0)
    used[silent * rank] = True
    counts[silent] = 1
    rows = by_frame[used]
    _, sizes, directions = np.linalg.svd(rows if len(rows) <= m else np.linalg.qr(rows, mode="r"))
    share = NEGLIGIBLE_SINGLE if rows.dtype == np.float32 else NEGLIGIBLE_DIRECTION
    p = int((sizes > share * sizes[0]).sum())
    if p > (1.0 - WORTH) * m:
        if len(rows) > (1.0 - WORTH) * rank * n:
            return data
        directions, p = np.eye(m, dtype=rows.dtype), m
    basis = np.ascontiguousarray(directions[:p].T)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    rest = np.ascontiguousarray(directions[p:].T)
    return WorkingFrames(rows @ basis if p < m else rows, starts, counts, basis, rest, data)


def working_state(state: TransformState, data: Frames) -> TransformState:
    """Bring starts into the same form."""
    if isinstance(data, FrameCovariances):
        return state
    transform = state.transform @ data.basis
    return replace(state, transform=transform, frames=transformed_frames(data, transform))


def whole_transform(P: Array, data: Frames) -> Array:
    """Complete a transform."""
    if isinstance(data, FrameCovariances):
        return P
    p = P.shape[1]
    if p == data.frame_length:
        return P @ data.basis.T
    complement = np.linalg.svd(P)[0][:, p:]
    # Any orthogonal matrix could stand between these bases, of which nothing fixes the vectors.
    between = closest_orthogonal(complement.T @ data.rest)
    return P @ data.basis.T + complement @ between @ data.rest.T
