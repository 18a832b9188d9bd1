"""What can be said about anchors whatever method found them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.separable.recovery_certificate import margin_statement
from nonneg.separable.result import SelectionResult


def with_statements(found: SelectionResult, points: DataMatrix) -> SelectionResult:
    """Add to the certificate what the method itself has not stated."""
    more: list[Statement] = []
    if found.row_maxima is not None and "anchor-margin" not in found.certificate:
        more.append(margin_statement(found.row_maxima, found.anchors))
    elif found.best_left is not None and found.scores is not None and len(found.scores):
        more.append(left_statement(float(found.scores[0]), float(found.scores[-1]), found.best_left))
    if "conditioning" not in found.certificate:
        more.append(span_statement(to_float64(points.take_rows(found.anchors))))
    return replace(found, certificate=found.certificate.with_statements(more)) if more else found


def span_statement(anchors: FloatArray) -> Statement:
    """State how far every anchor is from the others, without a least-squares problem for each."""
    longest = float(np.max(np.linalg.norm(anchors, axis=1)))
    distance = span_distance(anchors)
    sentence = (
        f"Every anchor is at least {distance:.4g} away from the affine span of the others, so that kappa(W) "
        f"is not below that; the longest anchor has the norm {longest:.4g}."
    )
    verdict = Verdict.HOLDS if distance > 1e-10 * longest else Verdict.FAILS
    return Statement(
        "conditioning", sentence, distance, 1e-10 * longest, verdict, {"longest_anchor": longest}
    )


def span_distance(points: FloatArray) -> float:
    """Return the smallest distance of a point from the affine span of the others."""
    points = np.asarray(points, dtype=np.float64)
    k, m = points.shape
    if k == 1:
        return float(np.linalg.norm(points[0]))
    if k > m + 1:
        return 0.0
    shifted = points - points.mean(axis=0)
    # Singular vectors without the one of the shift: the pseudo-inverse has the distances in its columns.
    left, values, _ = np.linalg.svd(shifted, full_matrices=False)
    kept = values[: k - 1]
    if not kept[-1] > 1e-14 * kept[0]:
        return 0.0
    return float(1.0 / np.sqrt(np.max(np.sum((left[:, : k - 1] / kept) ** 2, axis=1))))


def left_statement(first: float, last: float, left: float) -> Statement:
    """State what the picks of a greedy method leave unexplained."""
    share = left / first if first > 0 else 0.0
    sentence = (
        f"The point that the anchors explain worst is {left:.4g} away, {share:.3g} times the largest "
        f"distance at the start; the last anchor was {last:.4g} away when it was picked."
    )
    verdict = Verdict.HOLDS if share <= 1e-6 else Verdict.FAILS
    quantities = {"first_score": first, "last_score": last, "left": left}
    return Statement("largest-residual", sentence, share, 1e-6, verdict, quantities)
