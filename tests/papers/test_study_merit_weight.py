"""The study of MERIT's default: the planted data, the quick setting, and claims that follow from records."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.artifacts import Verdict
from reproduction.studies.merit_weight import EXPERIMENT, N_DRAWS, summarize
from reproduction.studies.planted_anchors import KINDS, n_found, planted
from tests.papers.quick_runs import quick_records, verdicts

CASE = {"stage": "rates", "kind": "uniform", "n": 300, "m": 50, "k": 20, "snr": 10}
NAMES = ("x 1", "x 0.2", "x 5", "published", "spa", "snpa", "xray", "fast-anchor")


@pytest.mark.parametrize("kind", KINDS)
def test_planted_anchors_are_anchors(kind):
    points = planted(kind, 120, 12, 4, 15.0, 3)
    assert n_found(points, points.anchors) == 4
    assert n_found(points, points.anchors[:3]) == 3
    assert points.snr == pytest.approx(15.0, abs=0.5)
    np.testing.assert_allclose(points.W.sum(axis=1), 1.0)
    other = planted(kind, 120, 12, 4, 15.0, 3, stream=1)
    assert not np.array_equal(points.X, other.X)
    assert np.array_equal(points.X, planted(kind, 120, 12, 4, 15.0, 3).X)


def test_near_duplicates_count_as_their_anchor():
    points = planted("near-duplicates", 400, 12, 4, 15.0, 0)
    copies = np.flatnonzero(points.W.max(axis=1) > 0.95)
    assert len(copies) >= 40
    assert n_found(points, copies) == 4


@pytest.mark.slow
def test_the_quick_setting():
    found = verdicts(EXPERIMENT.name, quick_records(EXPERIMENT.name))
    assert {verdict.met for verdict in found.values()} == {None}


def records(n=N_DRAWS, **changes):
    plain = {**CASE, "stream": 1}
    found = [dict.fromkeys(NAMES, 20) | {k: v(draw) for k, v in changes.items()} for draw in range(n)]
    mine = [{k: v for k, v in some.items() if k.startswith("x ")} for some in found]
    others = [{k: v for k, v in some.items() if not k.startswith("x ")} for some in found]
    return [
        {**plain, "stage": stage, "draw": draw, **some[draw]}
        for stage, some in (("rates", mine), ("rivals", others))
        for draw in range(n)
    ]


def met(found, words):
    return next(a.met for a in summarize(found) if isinstance(a, Verdict) and words in a.claim)


def test_claims_about_numbers_of_anchors_follow_from_the_records():
    assert met(records(), "anchors as SPA")
    assert not met(records(**{"x 1": lambda draw: 19 + draw % 2}), "anchors as SPA")
    # Differences in both directions are sampling error.
    assert met(records(**{"x 1": lambda draw: 19 + draw % 2, "spa": lambda draw: 20 - draw % 2}), "as SPA")
    assert met(records(n=N_DRAWS - 1), "anchors as SPA") is None
