"""Statements about anchors that do not depend on the method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.separable.recovery_bounds import bound_statement
from nonneg.separable.result import SelectionResult
from nonneg.separable.vertices import vertices_of


def with_statements(found: SelectionResult, points: DataMatrix) -> SelectionResult:
    """Add the statements that the method itself has not made."""
    more: list[Statement] = []
    if found.row_maxima is not None and "anchor-margin" not in found.certificate:
        more.append(margin_statement(found.row_maxima, found.anchors))
    elif found.best_left is not None and found.scores is not None and len(found.scores):
        more.append(residual_statement(float(found.scores[0]), float(found.scores[-1]), found.best_left))
    vertices = to_float64(vertices_of(points, found))
    if "conditioning" not in found.certificate:
        more.append(span_statement(vertices))
    bound = bound_statement(found, vertices, points)
    if bound is not None:
        more.append(bound)
    return replace(found, certificate=found.certificate.with_statements(more)) if more else found


def margin_statement(row_maxima: Any, anchors: Any, *, apart: bool = False) -> Statement:
    """State by how much the anchors stand out: the K-th largest row maximum minus the next."""
    # Anchors that were selected to lie apart may leave out larger maxima: those of near-duplicates.
    maxima = np.asarray(row_maxima)
    selected = np.zeros(len(maxima), dtype=bool)
    selected[np.asarray(anchors)] = True
    last = float(maxima[selected].min())
    after = float(maxima[~selected].max(initial=0.0))
    sentence = (
        f"The smallest row maximum of an anchor is {last:.4g}, the largest of another sample {after:.4g}: a "
        f"margin of {last - after:.4g}."
    )
    verdict = Verdict.HOLDS if last > after else Verdict.FAILS
    if apart and last <= after:
        verdict = Verdict.NOT_VERIFIABLE
        sentence += " Samples with larger row maxima lie close to the hull of the anchors."
    return Statement("anchor-margin", sentence, last - after, 0.0, verdict, {"last": last, "next": after})


def span_statement(anchors: FloatArray) -> Statement:
    """State how far every anchor is from the affine span of the others, a lower bound of kappa(W)."""
    longest = float(np.max(np.linalg.norm(anchors, axis=1)))
    distance = span_distance(anchors)
    sentence = (
        f"Every anchor is at least {distance:.4g} away from the affine span of the others, which bounds "
        f"kappa(W) from below; the largest norm of an anchor is {longest:.4g}."
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
    # Without the singular vector of the shift, the columns of the pseudo-inverse have the inverse distances.
    left, values, _ = np.linalg.svd(shifted, full_matrices=False)
    kept = values[: k - 1]
    if not kept[-1] > 1e-14 * kept[0]:
        return 0.0
    return float(1.0 / np.sqrt(np.max(np.sum((left[:, : k - 1] / kept) ** 2, axis=1))))


def residual_statement(first: float, last: float, left: float) -> Statement:
    """State the largest residual that the anchors of a greedy method leave."""
    share = left / first if first > 0 else 0.0
    sentence = (
        f"The largest residual that the anchors leave is {left:.4g}, {share:.3g} times the largest before "
        f"the first anchor; that of the last anchor was {last:.4g} when it was selected."
    )
    verdict = Verdict.HOLDS if share <= 1e-6 else Verdict.FAILS
    quantities = {"first_score": first, "last_score": last, "left": left}
    return Statement("largest-residual", sentence, share, 1e-6, verdict, quantities)
