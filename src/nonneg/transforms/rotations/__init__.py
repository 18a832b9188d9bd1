"""Orthogonal matrices: rotations, closest and random ones, and a quasi-Newton descent over them."""

from __future__ import annotations

from nonneg.transforms.rotations.group import (
    closest_orthogonal,
    exponential,
    orthogonality_error,
    polar,
    random_orthogonal,
    skew_part,
)
from nonneg.transforms.rotations.quasi_newton import (
    RotationObjective,
    RotationStep,
    newton_direction,
    rotation_step,
)

__all__ = [
    "RotationObjective",
    "RotationStep",
    "closest_orthogonal",
    "exponential",
    "newton_direction",
    "orthogonality_error",
    "polar",
    "random_orthogonal",
    "rotation_step",
    "skew_part",
]
