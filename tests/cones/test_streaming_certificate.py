"""Sentences and verdicts about the cones of a stream."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.cones.certificate import stream_statements
from nonneg.results import Verdict

AXES = np.eye(3)[:2]


def statements(**changes):
    facts = {
        "centroids": AXES,
        "radii": [0.1, 0.2],
        "squared_norms": [3.0, 1.0],
        "explained": [2.97, 0.99],
        "largest_merge_angle": 0.25,
        "n_cones": 2,
    }
    return {statement.name: statement for statement in stream_statements(**facts | changes)}


def test_error_is_what_the_directions_leave():
    error = statements()["streamed-error"]
    assert error.number == pytest.approx(np.sqrt(0.04 / 4))
    assert error.holds
    assert statements(squared_norms=[0, 0], explained=[0, 0])["streamed-error"].number == 0


def test_radius_and_what_no_clustering_can_beat():
    radius = statements()["streamed-radius"]
    assert radius.number == pytest.approx(0.2)
    assert "within 0.2001 radians" in radius.sentence  # a bound is rounded up
    assert "no 2 clusters of these samples all have a diameter below 0.25 radians" in radius.sentence
    assert "diameter" not in statements(largest_merge_angle=0.0)["streamed-radius"].sentence


def test_separation_needs_room():
    separation = statements()["streamed-separation"]
    assert separation.verdict is Verdict.HOLDS
    assert separation.number == pytest.approx(np.pi / 2 - 0.3)
    assert separation.threshold == pytest.approx(0.4)
    wide = statements(radii=[0.4, 0.5])["streamed-separation"]
    assert wide.verdict is Verdict.NOT_VERIFIABLE
    assert "another order" in wide.sentence


def test_one_cone():
    one = statements(
        centroids=AXES[:1],
        radii=[0.3],
        squared_norms=[1.0],
        explained=[0.9],
        n_cones=4,
        largest_merge_angle=0.0,
    )
    assert one["streamed-separation"].holds
    assert one["streamed-radius"].quantities["cones_seen"] == 1
