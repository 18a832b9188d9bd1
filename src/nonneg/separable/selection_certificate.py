"""What can be said about anchors whatever method found them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nonneg.certificates.certificate import Statement, Verdict
from nonneg.certificates.recovery import conditioning_statement, hull_distance, margin_statement
from nonneg.data import DataMatrix
from nonneg.data.spectral import to_numpy
from nonneg.separable.result import SelectionResult


def with_statements(found: SelectionResult, points: DataMatrix) -> SelectionResult:
    """Add to the certificate what the method itself has not stated.

    Parameters
    ----------
    found : SelectionResult
        With anchors as rows of `points`.
    points : DataMatrix
        The points that the method saw.

    Returns
    -------
    SelectionResult
        With the statements "anchor-margin" or "points-left" and "conditioning".
    """
    more: list[Statement] = []
    if found.row_maxima is not None and "anchor-margin" not in found.certificate:
        more.append(margin_statement(found.row_maxima, found.anchors))
    elif found.best_left is not None and found.scores is not None and len(found.scores):
        more.append(left_statement(float(found.scores[0]), float(found.scores[-1]), found.best_left))
    if "conditioning" not in found.certificate:
        anchors = to_numpy(points.take_rows(found.anchors))
        longest = float(np.max(np.linalg.norm(anchors, axis=1)))
        more.append(conditioning_statement(hull_distance(anchors), longest))
    return replace(found, certificate=found.certificate.with_statements(more)) if more else found


def left_statement(first: float, last: float, left: float) -> Statement:
    """State what the picks of a greedy method leave unexplained.

    Parameters
    ----------
    first : float
        The score of the first pick: the largest distance before there were any.
    last : float
        The score of the last pick.
    left : float
        The largest distance of a point from what the picks explain.

    Returns
    -------
    Statement
        Holds if no point is left above rounding: then the data are separable with these anchors.
    """
    share = left / first if first > 0 else 0.0
    sentence = (
        f"The point that the anchors explain worst is {left:.4g} away, {share:.3g} times the largest "
        f"distance at the start; the last anchor was {last:.4g} away when it was picked."
    )
    verdict = Verdict.HOLDS if share <= 1e-6 else Verdict.FAILS
    quantities = {"first_score": first, "last_score": last, "left": left}
    return Statement("points-left", sentence, share, 1e-6, verdict, quantities)
