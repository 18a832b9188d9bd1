"""Statements about the cones of clusters and streams, and the error bounds that follow (Liu & Tan)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.certificates.bounds import lower, upper
from nonneg.certificates.certificate import Statement, Verdict, verdict_of
from nonneg.cones.geometry.bounds import (
    cluster_bound,
    corrected_size_angles,
    error_about_axes,
    expected_error,
    largest_angle_bound,
)
from nonneg.cones.geometry.separation import ConeSeparation, cone_separation, largest_angles_in_orthant
from nonneg.cones.geometry.size_angle import SizeAngles


def cone_statements(cones: SizeAngles, error: float, rounding: float) -> list[Statement]:
    """Return the bounds and predictions that follow from the cones, each with the measured error."""
    # `rounding` is by how much that may exceed a bound, as a share of the norm of the data.
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731.
    filled = cones.counts > 0
    axes, angles, counts = cones.axes[filled], cones.angles[filled], cones.counts[filled]
    squared_norms = cones.squared_norms[filled]
    separation = cone_separation(axes, angles)
    statements = [
        _size_angles(angles, cones.lower_angles[filled]),
        _cluster_bound(angles, squared_norms, cones.outside, error, rounding),
        _largest_angle_bound(angles, error, rounding),
        _geometric_assumption(separation),
        _exact_clustering_bound(separation, angles, error, rounding),
    ]
    estimates = corrected_size_angles(cones.initial_angles[filled], counts)
    value = expected_error(estimates, squared_norms)
    contained = _cones_in_orthant(axes, angles)
    return [
        *statements,
        contained,
        _expected_error(value, estimates, counts, squared_norms, error),
        _limiting_error(value, contained, error),
    ]


def _size_angles(angles: FloatArray, lower: FloatArray) -> Statement:
    gap = float(np.max(angles - lower, initial=0.0))
    largest = float(angles.max(initial=0.0))
    smallest = float(angles.min(initial=largest))
    cones = f"cones around the {len(angles)} clusters have size angles of {angle_text(smallest)} to"
    if len(angles) == 1:
        cones = "cone around the samples has a size angle of"
    cones += f" {angle_text(largest)}"
    sentence = f"The smallest {cones}, within {upper(gap, 1)} radians of the smallest possible."
    quantities = {
        "smallest": smallest,
        "mean": float(angles.mean()) if len(angles) else 0.0,
        "largest": largest,
        "largest_gap": gap,
        "clusters": len(angles),
    }
    return Statement("size-angles", sentence, largest, None, Verdict.HOLDS, quantities)


def _cluster_bound(
    angles: FloatArray, squared_norms: FloatArray, outside: FloatArray, error: float, rounding: float
) -> Statement:
    bound = cluster_bound(angles, squared_norms)
    holds = error <= bound + rounding
    about_axes = error_about_axes(squared_norms, outside)
    quantities = {"relative_error": error, "bound": bound, "error_about_axes": about_axes}
    sentence = (
        f"The relative error {error:.4g} is {_compared(error, bound, rounding)}, which bounds the error of "
        "the best direction of each cluster (Theorem 4, equation 12), for any clustering."
    )
    if not holds:
        sentence += " The factors are worse than the best directions of the clusters."
    return Statement("cluster-bound", sentence, error, bound, verdict_of(holds), quantities)


def _largest_angle_bound(angles: FloatArray, error: float, rounding: float) -> Statement:
    bound = largest_angle_bound(angles)
    holds = error <= bound + rounding
    sentence = (
        f"The relative error {error:.4g} is {_compared(error, bound, rounding)}, the sine of the largest "
        "size angle (Theorem 4, equation 8)."
    )
    quantities = {"relative_error": error, "bound": bound}
    return Statement("largest-angle-bound", sentence, error, bound, verdict_of(holds), quantities)


def _geometric_assumption(separation: ConeSeparation) -> Statement:
    quantities = {
        "smallest_between": separation.smallest_between,
        "required": separation.required,
        "widest_within": separation.widest_within,
        "narrowest_gap": separation.narrowest_gap,
        "clusters_are_exact": separation.clusters_are_exact,
    }
    if not separation.pairs:
        sentence = "There is only one cone, so there is nothing to separate it from."
    else:
        if separation.holds or separation.clusters_are_exact:
            sentence = "Greedy clustering from any first sample returns these clusters."
        else:
            sentence = "Greedy clustering may depend on its first sample: other clusters may be as good."
        sentence += (
            f" The axes of the cones are at least {angle_text(separation.smallest_between, lower)} apart; "
            f"above {angle_text(separation.required)} no others are possible (the paper's Lemma 1)."
        )
    return Statement(
        "geometric-assumption",
        sentence,
        separation.smallest_between,
        separation.required,
        verdict_of(separation.holds),
        quantities,
    )


def _exact_clustering_bound(
    separation: ConeSeparation, angles: FloatArray, error: float, rounding: float
) -> Statement:
    bound = largest_angle_bound(angles)
    quantities = {"relative_error": error, "bound": bound, "assumption_holds": separation.holds}
    if not separation.holds:
        sentence = (
            f"Theorem 5 promises a relative error of at most {upper(bound)} from any first point where the "
            "geometric assumption (2) holds; for these cones it does not."
        )
        verdict = Verdict.NOT_VERIFIABLE
    else:
        holds = error <= bound + rounding
        verdict = verdict_of(holds)
        sentence = (
            "The geometric assumption (2) holds, so greedy clustering and one direction per cluster have "
            f"a relative error of at most {upper(bound)} from any first point (Theorem 5); it is {error:.4g}"
            + (", up to rounding." if bound < error <= bound + rounding else ".")
        )
    return Statement("exact-clustering-bound", sentence, error, bound, verdict, quantities)


def _expected_error(
    value: float, estimates: FloatArray, counts: Any, squared_norms: FloatArray, error: float
) -> Statement:
    lengths = squared_norms / np.maximum(counts, 1)
    quantities = {
        "relative_error": error,
        "predicted": value,
        "ratio": error / value if value > 0 else None,
        "mean_estimated_angle": float(estimates.mean()) if len(estimates) else 0.0,
        "smallest_mean_squared_length": float(lengths.min(initial=math.inf)),
        "largest_mean_squared_length": float(lengths.max(initial=0.0)),
    }
    sentence = (
        "If the points were drawn from cones as in Theorem 6, with the size angles, lengths and shares of "
        f"these clusters, the relative error would be about {value:.4g}; measured: {error:.4g}. This is a "
        "prediction, not a bound: where the points come from cannot be verified."
    )
    return Statement("expected-error", sentence, error, value, Verdict.NOT_VERIFIABLE, quantities)


def _cones_in_orthant(axes: FloatArray, angles: FloatArray) -> Statement:
    room = largest_angles_in_orthant(axes) - angles
    inside = int(np.sum(room >= 0))
    tightest = float(np.min(room, initial=math.inf))
    if inside == len(angles):
        sentence = f"All {inside} cones lie in the nonnegative orthant (Lemma 10)."
    else:
        sentence = (
            f"{len(angles) - inside} of {len(angles)} cones reach out of the nonnegative orthant (Lemma 10), "
            f"by up to {angle_text(-tightest)}; the points themselves need not."
        )
    quantities = {"cones_in_orthant": inside, "cones": len(angles), "smallest_room": tightest}
    return Statement(
        "cones-in-orthant", sentence, tightest, 0.0, verdict_of(inside == len(angles)), quantities
    )


def _limiting_error(value: float, contained: Statement, error: float) -> Statement:
    quantities = {"relative_error": error, "limit": value, "cones_in_orthant": contained.holds}
    if contained.holds:
        sentence = (
            "All cones lie in the nonnegative orthant: for points drawn from them as in Theorem 6 the "
            f"relative error tends to {value:.4g} with their number (Theorem 8); measured: {error:.4g}."
        )
    else:
        sentence = (
            f"Not all cones lie in the nonnegative orthant, so Theorem 6's value {value:.4g} need not "
            "be the limit for many points (Theorem 8): moving points into the orthant lowers the error."
        )
    return Statement("limiting-error", sentence, error, value, Verdict.NOT_VERIFIABLE, quantities)


def _compared(error: float, bound: float, rounding: float) -> str:
    if error > bound + rounding:
        return f"above {lower(bound)}"
    return f"{'at most' if error <= bound else 'up to rounding at most'} {upper(bound)}"


def angle_text(radians: float, written: Callable[[float, int], str] = upper) -> str:
    """Write an angle in radians and degrees: as an upper bound, or as `written` says."""
    return f"{written(radians, 4)} radians ({written(math.degrees(radians), 3)} degrees)"
