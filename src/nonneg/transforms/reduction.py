"""Dimension reduction: frames in the subspace that they span, without empty virtual realizations.

What is minimized depends on a transform Phi only through P = Phi B, where the columns of B span the frames: a
matrix with orthonormal columns, fewer than rows. How the transform acts on the orthogonal complement is
chosen at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import is_numpy_array

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.transforms import LONGEST
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.rotations.group import closest_orthogonal
from nonneg.transforms.state import TransformState, transformed_frames

# Directions with singular values below this share of the largest are rounding: some 5000 units in the last
# place of float64, ten of float32.
NEGLIGIBLE_DIRECTION = 1e-12
NEGLIGIBLE_SINGLE = 1e-6
# Directions and rows are left out where that saves at least this share of them: less would not pay for the
# change of coordinates.
WORTH = 0.1


@dataclass(frozen=True)
class ReducedFrames:
    """Virtual realizations in coordinates of the space that they span."""

    rows: FloatArray  # their coordinates; those of a frame stand together
    offsets: IntArray  # the first row of each frame
    counts: IntArray  # rows of each frame
    basis: FloatArray  # the directions, orthonormal
    complement: FloatArray  # orthonormal directions that no frame has
    full: FrameCovariances  # what they were made of

    @property
    def row_ranges(self) -> tuple[IntArray, IntArray]:
        """First row and number of rows of each frame."""
        return self.offsets, self.counts

    @property
    def virtual(self) -> Array:
        """The virtual realizations they were made of."""
        return self.full.virtual

    @property
    def n_frames(self) -> int:
        """The number of frames."""
        return self.full.n_frames

    @property
    def frame_length(self) -> int:
        """Samples per frame."""
        return self.full.frame_length


Frames = FrameCovariances | ReducedFrames
"""Input of the iterations."""


def reduced_frames(data: FrameCovariances) -> Frames:
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
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    complement = np.ascontiguousarray(directions[p:].T)
    return ReducedFrames(rows @ basis if p < m else rows, offsets, counts, basis, complement, data)


def reduced_state(state: TransformState, data: Frames) -> TransformState:
    """Bring initial states into the same coordinates."""
    if isinstance(data, FrameCovariances):
        return state
    transform = state.transform @ data.basis
    return replace(state, transform=transform, frames=transformed_frames(data, transform))


def completed_transform(P: Array, data: Frames) -> Array:
    """Complete a transform of the subspace to one of all frames."""
    if isinstance(data, FrameCovariances):
        return P
    p = P.shape[1]
    if p == data.frame_length:
        return P @ data.basis.T
    missing = np.linalg.svd(P)[0][:, p:]
    # Any orthogonal matrix could stand between these bases, of which nothing fixes the vectors.
    between = closest_orthogonal(missing.T @ data.complement)
    return P @ data.basis.T + missing @ between @ data.complement.T
