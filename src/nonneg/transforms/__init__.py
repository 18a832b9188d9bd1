"""Transforms learnt with the factorization: TL-NMF, joint diagonalization, and the two-stage JD+NMF."""

from __future__ import annotations

from nonneg.transforms.batches import LoopOptions
from nonneg.transforms.covariances import FrameCovariances, covariances_of, frame_covariances
from nonneg.transforms.diagonalize import joint_diagonalize
from nonneg.transforms.learn import learn_transform
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.restarts import MultiStart, multi_start
from nonneg.transforms.result import StartsSummary, TransformResult

__all__ = [
    "FrameCovariances",
    "LoopOptions",
    "MultiStart",
    "StartsSummary",
    "TransformOptions",
    "TransformResult",
    "covariances_of",
    "frame_covariances",
    "joint_diagonalize",
    "learn_transform",
    "multi_start",
]
