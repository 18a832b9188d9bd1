"""Circular cones around clusters: smallest ones, how far apart they are, what they bound and predict."""

from __future__ import annotations

from nonneg.cones.geometry.bounds import (
    cluster_bound,
    corrected_size_angles,
    error_about_axes,
    expected_error,
    largest_angle_bound,
    mean_squared_cosine,
    mean_squared_sine,
)
from nonneg.cones.geometry.separation import (
    ConeSeparation,
    angles_between,
    cone_separation,
    cones_in_orthant,
    largest_angles_in_orthant,
)
from nonneg.cones.geometry.size_angle import SizeAngles, SmallestCone, size_angles, smallest_cone
from nonneg.cones.geometry.spectrum import (
    ConeSpectrum,
    RatioCondition,
    largest_epsilon,
    predicted_spectrum,
    ratio_condition,
    second_moments,
)

__all__ = [
    "ConeSeparation",
    "ConeSpectrum",
    "RatioCondition",
    "SizeAngles",
    "SmallestCone",
    "angles_between",
    "cluster_bound",
    "cone_separation",
    "cones_in_orthant",
    "corrected_size_angles",
    "error_about_axes",
    "expected_error",
    "largest_angle_bound",
    "largest_angles_in_orthant",
    "largest_epsilon",
    "mean_squared_cosine",
    "mean_squared_sine",
    "predicted_spectrum",
    "ratio_condition",
    "second_moments",
    "size_angles",
    "smallest_cone",
]
