"""Transforms learned with the factorization: TL-NMF, joint diagonalization, and the two-stage JD+NMF.

This family works on frames of signals, not on a matrix X: its data are the covariances of the frames
(`FrameCovariances`), and its iterations do not go through the Gram matrices of a `DataMatrix` as those of the
other families do. An iteration updates the factors of the variances (`kernels.majorization_equalization`) and
rotates the transform by a quasi-Newton step over orthogonal matrices (`rotations`).

How a call runs: `learn` and `joint_diagonalization` check the parameters; `initialization` draws the
restarts, a batch that is the first axis of all arrays; `reduction` leaves out directions that no frame has;
`loop` runs the batch; `dispatch` chooses what makes an iteration: the array code of `steps`, compiled kernels
for small problems; `restarts` keeps the best, and `certificate` says what is known about it.
`selection` learns from a part of the frames and lets the others choose between learned and fixed transforms.
"""

from __future__ import annotations

from nonneg.transforms.covariances import FrameCovariances, covariances_of, frame_covariances
from nonneg.transforms.joint_diagonalization import joint_diagonalize
from nonneg.transforms.learn import learn_transform
from nonneg.transforms.loop import LoopOptions
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.restarts import CrossInitResult, cross_init
from nonneg.transforms.result import RestartSummary, TransformResult

__all__ = [
    "CrossInitResult",
    "FrameCovariances",
    "LoopOptions",
    "RestartSummary",
    "TransformOptions",
    "TransformResult",
    "covariances_of",
    "cross_init",
    "frame_covariances",
    "joint_diagonalize",
    "learn_transform",
]
