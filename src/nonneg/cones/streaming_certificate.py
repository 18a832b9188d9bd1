"""What can be said of the cones of a stream, whose points are gone: bounds that were kept up as they came."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg.certificates.certificate import Statement, Verdict
from nonneg.cones.geometry import cone_separation


def stream_statements(
    *,
    centroids: Any,
    radii: Any,
    squared_norms: Any,
    explained: Any,
    widest_join: float,
    n_cones: int,
) -> list[Statement]:
    """Return what is known of the clusters and directions of a stream."""
    norms = np.asarray(squared_norms, dtype=np.float64)
    radii = np.asarray(radii, dtype=np.float64)
    return [
        _error(norms, np.asarray(explained, dtype=np.float64)),
        _radius(radii, float(widest_join), n_cones),
        _separation(np.asarray(centroids, dtype=np.float64), radii),
    ]


def _error(norms: Any, explained: Any) -> Statement:
    total = float(norms.sum())
    error = math.sqrt(max(total - float(explained.sum()), 0.0) / total) if total > 0 else 0.0
    sentence = (
        f"The relative error of the samples seen, each on the direction of the cone it was put into, is at "
        f"most {error:.4g}."
    )
    quantities = {"squared_norm": total, "explained": float(explained.sum())}
    return Statement("streamed-error", sentence, error, None, Verdict.HOLDS, quantities)


def _radius(radii: Any, widest_join: float, n_cones: int) -> Statement:
    largest = float(radii.max(initial=0.0))
    sentence = f"Every sample seen lies within {_angle(largest)} of the centroid of the cone it was put into"
    if widest_join > 0:
        sentence += (
            f"; no {n_cones} clusters of these samples all have a diameter below {_angle(widest_join)}, "
            f"so that no {n_cones} cones all have size angles below half of that."
        )
    else:
        sentence += "."
    quantities = {"widest_join": widest_join, "cones_seen": len(radii), "cones": n_cones}
    return Statement("streamed-radius", sentence, largest, None, Verdict.HOLDS, quantities)


def _separation(centroids: Any, radii: Any) -> Statement:
    found = cone_separation(centroids, radii)
    quantities = {"widest_within": found.widest_within, "narrowest_gap": found.narrowest_gap}
    if len(radii) < 2:
        sentence = "There is at most one cone, and nothing to tell it apart from."
        return Statement("streamed-separation", sentence, None, None, Verdict.HOLDS, quantities)
    if found.clusters_are_exact:
        sentence = (
            f"Samples of one cone are within {_angle(found.widest_within)} of one another, and those of "
            f"different cones at least {_angle(found.narrowest_gap)} apart: any order of the stream gives "
            "these clusters, and so does greedy clustering from any first sample."
        )
        verdict = Verdict.HOLDS
    else:
        sentence = (
            "The radii that were kept do not show that samples of one cone are nearer to one another than to "
            "those of other cones: another order of the stream may give other clusters."
        )
        verdict = Verdict.NOT_VERIFIABLE
    return Statement(
        "streamed-separation", sentence, found.narrowest_gap, found.widest_within, verdict, quantities
    )


def _angle(radians: float) -> str:
    return f"{radians:.4g} radians ({math.degrees(radians):.3g} degrees)"
