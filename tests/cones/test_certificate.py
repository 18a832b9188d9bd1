from __future__ import annotations

import re

import numpy as np
import pytest

from nonneg.cones.certificate import cone_statements
from nonneg.cones.geometry.bounds import cluster_bound
from nonneg.cones.geometry.size_angle import SizeAngles
from nonneg.cones.rank_one import cone_rank_one
from nonneg.results import Certificate

NAMES = (
    "size-angles",
    "cluster-bound",
    "largest-angle-bound",
    "geometric-assumption",
    "exact-clustering-bound",
    "cones-in-orthant",
    "expected-error",
    "limiting-error",
)


def plane(*polar):
    return np.stack([np.cos(polar), np.sin(polar)], axis=1)


def certificate(angles, polar, error=0.05, rounding=1e-8, **more):
    """Statements about cones in the plane with their axes at the given polar angles."""
    k = len(angles)
    cones = dict.fromkeys(("angles", "lower_angles", "initial_angles"), angles) | {"axes": plane(*polar)}
    cones |= {"squared_norms": np.ones(k), "counts": np.full(k, 10), "outside": np.zeros(k)} | more
    cones = SizeAngles(**{name: np.array(value) for name, value in cones.items()}, boundary=())
    return Certificate(tuple(cone_statements(cones, error, rounding)))


def test_well_separated_cones_hold_all_that_can_be_verified():
    found = certificate([0.1, 0.12], [0.4, 1.2])
    assert found.names == NAMES
    verdicts = [str(statement.verdict) for statement in found]
    assert verdicts == ["holds"] * 6 + ["not verifiable"] * 2
    assert found["size-angles"].number == pytest.approx(0.12)
    assumption = found["geometric-assumption"]
    assert (assumption.number, assumption.threshold) == pytest.approx((0.8, 0.46))
    assert "from any first sample returns these clusters" in assumption.sentence
    assert found["cluster-bound"].threshold == pytest.approx(cluster_bound([0.1, 0.12], [1, 1]))
    assert found["exact-clustering-bound"].threshold == pytest.approx(np.sin(0.12))


def test_cones_near_to_one_another_leave_theorem_5_open():
    found = certificate([0.1, 0.12], [0.4, 0.7])
    assert str(found["geometric-assumption"].verdict) == "fails"
    assert str(found["exact-clustering-bound"].verdict) == "not verifiable"
    assert "may depend on its first sample" in found["geometric-assumption"].sentence
    assert found["cluster-bound"].holds
    assert found["largest-angle-bound"].holds


@pytest.mark.covering(1)
@pytest.mark.parametrize("excess", [-1e-3, -1e-9, -1e-15, 0.0, 1e-15, 1e-12, 1e-9, 1e-3])
@pytest.mark.parametrize("widths", [(0.1, 0.1, 0.1), (0.15, 0.02, 0.15), (0.1, 0.0, 0.05)])
def test_what_the_assumption_promises_holds_for_points_built_against_it(widths, excess):
    """Points at the ends of cones whose axes are as near as Lemma 1 allows, or nearer by a rounding error."""
    first, second = sorted(widths)[-1:-3:-1]
    step = 3 * first + second + excess
    polar = [at * step + end * width for at, width in enumerate(widths) for end in (-1.0, 0.0, 1.0)]
    X = plane(*(np.array(polar) + first))
    results = [cone_rank_one(X, 3, first=at) for at in range(9)]
    partitions = {frozenset(frozenset(np.flatnonzero(r.labels == k)) for k in range(3)) for r in results}
    if any(result.certificate["geometric-assumption"].holds for result in results):
        assert len(partitions) == 1
    for result in results:
        assert result.relative_error <= result.certificate["cluster-bound"].threshold + 1e-12


def test_clusters_that_are_exact_without_the_assumption_are_said_to_be():
    found = certificate([0.01, 0.01, 0.2], [0.0, 0.55, 1.5])["geometric-assumption"]
    assert str(found.verdict) == "fails"
    assert "from any first sample returns these clusters" in found.sentence
    assert found.quantities["clusters_are_exact"] is True


def test_an_error_above_the_bounds_fails_them():
    found = certificate([0.1, 0.12], [0.4, 1.2], error=0.2)
    for name in ("cluster-bound", "largest-angle-bound", "exact-clustering-bound"):
        assert str(found[name].verdict) == "fails"
    assert "worse than the best directions of the clusters" in found["cluster-bound"].sentence


def test_rounding_is_forgiven_as_far_as_asked():
    assert certificate([0.0], [0.4], error=1e-9)["cluster-bound"].holds
    assert not certificate([0.0], [0.4], error=1e-9, rounding=1e-10)["cluster-bound"].holds


def test_cones_that_reach_out_of_the_orthant_are_counted():
    found = certificate([0.1, 0.12], [0.4, 1.5])
    assert str(found["cones-in-orthant"].verdict) == "fails"
    assert found["cones-in-orthant"].quantities["cones_in_orthant"] == 1
    assert found["cones-in-orthant"].number == pytest.approx(np.pi / 2 - 1.5 - 0.12)
    assert "need not be the limit" in found["limiting-error"].sentence
    assert "tends to" in certificate([0.1, 0.12], [0.4, 1.2])["limiting-error"].sentence


def test_the_prediction_is_the_one_for_the_estimated_cones():
    found = certificate([0.1, 0.12], [0.4, 1.2], initial_angles=[0.15, 0.15])["expected-error"]
    angle = 0.15 * 11 / 10
    assert found.threshold == pytest.approx(np.sqrt(0.5 - np.sin(2 * angle) / (4 * angle)))
    assert found.quantities["mean_estimated_angle"] == pytest.approx(angle)
    assert found.quantities["ratio"] == pytest.approx(0.05 / found.threshold)


def test_one_cluster_and_clusters_without_points():
    assert "nothing to separate it from" in certificate([0.1], [0.4])["geometric-assumption"].sentence
    padded = certificate([0.1, 0.0, 0.12], [0.4, 0.5, 1.2], counts=[10, 0, 10], squared_norms=[1.0, 0.0, 1.0])
    plain = certificate([0.1, 0.12], [0.4, 1.2])
    assert padded.as_dict() == plain.as_dict()


def test_clusters_of_one_point_count():
    alone = certificate([0.1, 0.0], [0.4, 1.2], counts=[10, 1])
    assert alone["size-angles"].quantities["clusters"] == 2
    assert alone["cones-in-orthant"].quantities["cones"] == 2
    assert alone["geometric-assumption"].number == pytest.approx(0.8)


def test_an_error_within_rounding_is_said_to_be():
    bound = np.sin(0.2)
    for error, rounding, words in (
        (0.15, 0.0, "at most"),
        (0.25, 0.2, "up to rounding at most"),
        (0.5, 0.1, "above"),
        (0.2, 0.0, "above"),
    ):
        found = certificate([0.2, 0.2], [0.2, 1.3], error=error, rounding=rounding)["largest-angle-bound"]
        printed = float(re.search(rf"is {words} ([\d.]+),", found.sentence)[1])
        assert printed == pytest.approx(bound, rel=1e-3)
        assert printed <= bound if words == "above" else printed >= bound
        assert found.holds is bool(error <= bound + rounding)
    exact = certificate([0.2, 0.2], [0.2, 1.3], error=np.sin(0.2), rounding=0.0)
    assert exact["largest-angle-bound"].holds
    assert exact["exact-clustering-bound"].holds
    assert "up to rounding" not in exact["exact-clustering-bound"].sentence
    near = certificate([0.2, 0.2], [0.2, 1.3], error=0.25, rounding=0.2)
    assert near["exact-clustering-bound"].sentence.endswith("it is 0.25, up to rounding.")


def test_a_cone_that_touches_the_border_lies_in_the_orthant():
    found = certificate([0.25, 0.25], [0.25, np.pi / 2 - 0.5])["cones-in-orthant"]
    assert found.quantities["cones_in_orthant"] >= 1
    out = certificate([0.3, 0.25], [0.25, 1.0])["cones-in-orthant"]
    assert out.quantities == {
        "cones_in_orthant": 1,
        "cones": 2,
        "smallest_room": pytest.approx(-0.05),
    }
    assert out.sentence.startswith("1 of 2 cones reach out")
    assert "by up to 0.05 radians" in out.sentence


def test_one_feature_has_no_ratio_of_errors():
    """The ratio of two zeros was NaN in a statement that a program reads."""
    found = cone_rank_one(np.array([[1.0], [2.0], [3.0]]), 1).certificate["expected-error"]
    assert found.quantities["ratio"] is None
    assert all(value is None or np.isfinite(value) for value in found.quantities.values())


def test_two_points_have_the_smallest_cone_between_them():
    # Its size angle is half the angle between the points: no cone around both has a smaller one.
    near, far = plane(0.3, 0.5), plane(1.1, 1.4)
    result = cone_rank_one(np.vstack([near, far]), 2)
    statement = result.certificate["size-angles"]
    assert statement.quantities["smallest"] == pytest.approx(0.1)
    assert statement.quantities["largest"] == pytest.approx(0.15)
    assert 0.0 <= statement.quantities["largest_gap"] < 1e-6
