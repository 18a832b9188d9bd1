"""Sentences and verdicts about the cones of a stream."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.cones.streaming import ConeStream, stream_statements
from nonneg.results import Verdict

AXES = np.eye(3)[:2]


def statements(*, explained=(2.97, 0.99), n_cones=2, **changes):
    stream = ConeStream.empty(n_cones, 3)
    facts = {"centroids": AXES, "radii": [0.1, 0.2], "squared_norms": [3.0, 1.0], "largest_merge_angle": 0.25}
    facts |= changes
    stream.n_found, stream.largest_merge_angle = len(facts["radii"]), facts.pop("largest_merge_angle")
    for name, values in facts.items():
        getattr(stream, name)[: len(values)] = values
    return {statement.name: statement for statement in stream_statements(stream, np.asarray(explained))}


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
