"""Transforms learned with the factorization: TL-NMF, joint diagonalization, and the two-stage JD+NMF.

This family works on frames of signals, not on a matrix X: its data are the covariances of the frames
(`FrameCovariances`), and its iterations do not go through the Gram matrices of a `DataMatrix` as those of the
other families do. An iteration updates the factors of the variances (`kernels.majorization_equalization`) and
rotates the transform by a quasi-Newton step over orthogonal matrices (`rotations`).

How a call runs: `learn` and `joint_diagonalization` check the parameters; `initialization` draws the
restarts, a batch that is the first axis of all arrays; `reduction` leaves out directions that no frame has;
`loop` runs the batch and chooses what makes an iteration: the array code of `steps`, compiled kernels for
small problems; `restarts` keeps the best, and `certificate` says what is known about it.
`selection` learns from a part of the frames and lets the others choose between learned and fixed transforms.
"""

from __future__ import annotations

from nonneg.transforms.covariances import FrameCovariances as FrameCovariances
from nonneg.transforms.covariances import covariances_of as covariances_of
from nonneg.transforms.covariances import frame_covariances as frame_covariances
from nonneg.transforms.joint_diagonalization import joint_diagonalize as joint_diagonalize
from nonneg.transforms.learn import learn_transform as learn_transform
from nonneg.transforms.loop import LoopOptions as LoopOptions
from nonneg.transforms.options import TransformOptions as TransformOptions
from nonneg.transforms.restarts import CrossInitResult as CrossInitResult
from nonneg.transforms.restarts import cross_init as cross_init
from nonneg.transforms.result import RestartSummary as RestartSummary
from nonneg.transforms.result import TransformResult as TransformResult
