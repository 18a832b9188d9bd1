"""Statements about the cones of clusters and streams, and the error bounds that follow (Liu & Tan)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.certificates.bounds import lower, upper
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.cones.geometry.bounds import (
    cluster_bound,
    corrected_size_angles,
    error_about_axes,
    expected_error,
    largest_angle_bound,
)
from nonneg.cones.geometry.farthest import ROUNDING as ANGLE_ROUNDING
from nonneg.cones.geometry.separation import ConeSeparation, cone_separation, largest_angles_in_orthant
from nonneg.exceptions import ShapeError

ROUNDING = 1e-8
"""By how much a measured error may exceed a bound, as a share of the norm of the data."""
STREAM_ROUNDING = 1e-13
"""Rounding error of the squared error of a stream, as a share of the squared norm."""


def cone_statements(
    *,
    axes: Any,
    angles: Any,
    squared_norms: Any,
    counts: Any,
    relative_error: float,
    lower_angles: Any = None,
    initial_angles: Any = None,
    outside: Any = None,
    rounding: float = ROUNDING,
) -> list[Statement]:
    """Return the bounds and predictions that follow from the cones, each with the measured error."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731.
    angles = np.asarray(angles, dtype=np.float64)
    filled = np.asarray(counts) > 0
    if not (np.shape(axes)[0] == len(angles) == len(filled) == len(np.asarray(squared_norms))):
        raise ShapeError(
            "Expected one axis, size angle, count and squared norm per cluster, got "
            f"{np.shape(axes)[0]}, {len(angles)}, {len(filled)} and {len(np.asarray(squared_norms))} of them."
        )
    axes = np.asarray(axes, dtype=np.float64)[filled]
    counts, squared_norms = np.asarray(counts)[filled], np.asarray(squared_norms, dtype=np.float64)[filled]
    lower = angles if lower_angles is None else np.asarray(lower_angles, dtype=np.float64)
    drawn = angles if initial_angles is None else np.asarray(initial_angles, dtype=np.float64)
    angles, lower, drawn = angles[filled], lower[filled], drawn[filled]
    error = float(relative_error)
    separation = cone_separation(axes, angles)
    statements = [
        _size_angles(angles, lower),
        _cluster_bound(angles, squared_norms, outside, error, rounding),
        _largest_angle_bound(angles, error, rounding),
        _geometric_assumption(separation),
        _exact_clustering_bound(separation, angles, error, rounding),
    ]
    estimates = corrected_size_angles(drawn, counts)
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
    sentence = (
        f"The smallest cones around the {len(angles)} clusters have size angles of {_angle(smallest)} to "
        f"{_angle(largest)}, each within {upper(gap, 1)} radians of the smallest possible."
    )
    quantities = {
        "smallest": smallest,
        "mean": float(angles.mean()) if len(angles) else 0.0,
        "largest": largest,
        "largest_gap": gap,
        "clusters": len(angles),
    }
    return Statement("size-angles", sentence, largest, None, Verdict.HOLDS, quantities)


def _cluster_bound(
    angles: FloatArray, squared_norms: FloatArray, outside: Any, error: float, rounding: float
) -> Statement:
    bound = cluster_bound(angles, squared_norms)
    holds = error <= bound + rounding
    quantities = {"relative_error": error, "bound": bound}
    if outside is not None:
        quantities["error_about_axes"] = error_about_axes(squared_norms, outside)
    sentence = (
        f"The relative error {error:.4g} is {_compared(error, bound, rounding)}, which bounds the error of "
        "the best direction of each cluster (Theorem 4, equation 12), for any clustering."
    )
    if not holds:
        sentence += " The factors are worse than the best directions of the clusters."
    return Statement("cluster-bound", sentence, error, bound, _verdict(holds), quantities)


def _largest_angle_bound(angles: FloatArray, error: float, rounding: float) -> Statement:
    bound = largest_angle_bound(angles)
    holds = error <= bound + rounding
    sentence = (
        f"The relative error {error:.4g} is {_compared(error, bound, rounding)}, the sine of the largest "
        "size angle (Theorem 4, equation 8)."
    )
    quantities = {"relative_error": error, "bound": bound}
    return Statement("largest-angle-bound", sentence, error, bound, _verdict(holds), quantities)


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
            f" The axes of the cones are at least {_angle(separation.smallest_between, lower)} apart; above "
            f"{_angle(separation.required)} no others are possible (the paper's Lemma 1)."
        )
    return Statement(
        "geometric-assumption",
        sentence,
        separation.smallest_between,
        separation.required,
        _verdict(separation.holds),
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
        verdict = _verdict(holds)
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
            f"by up to {_angle(-tightest)}; the points themselves need not."
        )
    quantities = {"cones_in_orthant": inside, "cones": len(angles), "smallest_room": tightest}
    return Statement("cones-in-orthant", sentence, tightest, 0.0, _verdict(inside == len(angles)), quantities)


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


def stream_statements(
    *,
    centroids: Any,
    radii: Any,
    squared_norms: Any,
    explained: Any,
    largest_merge_angle: float,
    n_cones: int,
) -> list[Statement]:
    """Return what is known of the clusters and directions of a stream."""
    norms = np.asarray(squared_norms, dtype=np.float64)
    radii = np.asarray(radii, dtype=np.float64) + ANGLE_ROUNDING
    return [
        _streamed_error(norms, np.asarray(explained, dtype=np.float64)),
        _streamed_radius(radii, float(largest_merge_angle), n_cones),
        _streamed_separation(np.asarray(centroids, dtype=np.float64), radii),
    ]


def _streamed_error(norms: Any, explained: Any) -> Statement:
    # A difference of two sums: an error below the root of their rounding is not seen in it.
    total = float(norms.sum())
    residual = max(total - float(explained.sum()), 0.0)
    error = math.sqrt(residual / total + STREAM_ROUNDING) if total > 0 else 0.0
    sentence = (
        f"The relative error of the samples seen, each on the direction of the cone it was assigned to, is "
        f"at most {upper(error)}."
    )
    quantities = {"squared_norm": total, "explained": float(explained.sum())}
    return Statement("streamed-error", sentence, error, None, Verdict.HOLDS, quantities)


def _streamed_radius(radii: Any, merge_angle: float, n_cones: int) -> Statement:
    largest = float(radii.max(initial=0.0))
    sentence = (
        f"Every sample seen lies within {_angle(largest)} of the centroid of the cone it was assigned to"
    )
    if merge_angle > 0:
        sentence += (
            f"; no {n_cones} clusters of these samples all have a diameter below "
            f"{_angle(merge_angle, lower)}, so no {n_cones} cones all have size angles below half of that."
        )
    else:
        sentence += "."
    quantities = {"largest_merge_angle": merge_angle, "cones_seen": len(radii), "cones": n_cones}
    return Statement("streamed-radius", sentence, largest, None, Verdict.HOLDS, quantities)


def _streamed_separation(centroids: Any, radii: Any) -> Statement:
    gaps = cone_separation(centroids, radii)
    quantities = {"widest_within": gaps.widest_within, "narrowest_gap": gaps.narrowest_gap}
    if len(radii) < 2:
        sentence = "There is at most one cone, so there is nothing to separate it from."
        return Statement("streamed-separation", sentence, None, None, Verdict.HOLDS, quantities)
    if gaps.clusters_are_exact:
        sentence = (
            f"Samples of one cone are within {_angle(gaps.widest_within)} of one another, and those "
            f"of different cones at least {_angle(gaps.narrowest_gap, lower)} apart: any order of the stream "
            "gives these clusters, and so does greedy clustering from any first sample."
        )
        verdict = Verdict.HOLDS
    else:
        sentence = (
            "The radii that were kept do not show that samples of one cone are nearer to one another than to "
            "those of other cones: another order of the stream may give other clusters."
        )
        verdict = Verdict.NOT_VERIFIABLE
    return Statement(
        "streamed-separation", sentence, gaps.narrowest_gap, gaps.widest_within, verdict, quantities
    )


def _compared(error: float, bound: float, rounding: float) -> str:
    if error > bound + rounding:
        return f"above {lower(bound)}"
    return f"{'at most' if error <= bound else 'up to rounding at most'} {upper(bound)}"


def _angle(radians: float, written: Callable[[float, int], str] = upper) -> str:
    return f"{written(radians, 4)} radians ({written(math.degrees(radians), 3)} degrees)"


def _verdict(holds: bool) -> Verdict:
    return Verdict.HOLDS if holds else Verdict.FAILS
