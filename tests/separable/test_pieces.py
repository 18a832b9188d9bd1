"""Distances, margins, scores and drops of the selection of anchors against plain definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nonneg.certificates import Verdict
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration import History
from nonneg.separable.arguments import _is_flag
from nonneg.separable.certificate import margin_statement, residual_statement, span_distance, span_statement
from nonneg.separable.init import checked_coefficients
from nonneg.separable.merit.alternatives import (
    CLEAR_RATIO,
    alternatives_statement,
    competition,
    leading_directions,
    mixture_probability,
    nearest_anchor,
)
from nonneg.separable.merit.choice import (
    CLEAR_DROP,
    Fit,
    apart,
    fit_of,
    last_drop,
    number_of_anchors,
    row_maxima_anchors,
)
from nonneg.separable.merit.residuals import hull_distances
from nonneg.separable.recovery_bounds import mixture_noise
from nonneg.separable.reduction import mean_row, principal_directions, projected
from nonneg.separable.result import SelectionResult
from nonneg.separable.row_maxima import distinct_rows
from nonneg.separable.smoothed import even_members
from nonneg.separable.vca import _with_constant


def distance_from_span(point, others):
    """Return the distance of a point from the affine span of others."""
    shifted = (others[1:] - others[0]).T
    rest = point - others[0]
    if shifted.size:
        rest = rest - shifted @ np.linalg.lstsq(shifted, rest, rcond=None)[0]
    return np.linalg.norm(rest)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_the_distance_from_the_span_of_the_others(k, rng):
    points = rng.random((k, 5))
    found = span_distance(points)
    if k == 1:
        assert found == pytest.approx(np.linalg.norm(points))
        return
    each = [distance_from_span(points[i], np.delete(points, i, axis=0)) for i in range(k)]
    assert found == pytest.approx(min(each))
    assert span_distance(rng.random((7, 5))) == 0.0
    dependent = np.vstack([points, points.mean(axis=0)])
    assert span_distance(dependent) <= 1e-10
    assert span_statement(points).number == pytest.approx(found)
    assert span_statement(points).holds
    assert span_statement(dependent).verdict is Verdict.FAILS


def test_margins_and_residuals():
    maxima = np.array([0.9, 0.2, 0.8, 0.3])
    found = margin_statement(maxima, [0, 2])
    assert found.number == pytest.approx(0.5)
    assert found.holds
    assert found.quantities == {"last": 0.8, "next": 0.3}
    assert margin_statement(maxima, [0, 1]).verdict is Verdict.FAILS
    assert margin_statement(maxima, [0, 1], apart=True).verdict is Verdict.NOT_VERIFIABLE
    assert margin_statement(np.array([0.5, 0.5]), [0]).verdict is Verdict.FAILS
    assert margin_statement(maxima, [0, 2], apart=True).holds
    assert margin_statement(maxima[:1], [0]).number == pytest.approx(0.9)
    assert residual_statement(2.0, 1.0, 2e-6).number == pytest.approx(1e-6)
    assert residual_statement(4.0, 1.0, 2e-6).holds
    assert not residual_statement(1.0, 1.0, 2e-6).holds
    assert residual_statement(0.0, 0.0, 0.0).number == 0.0


@pytest.mark.parametrize(
    ("scores", "most", "number"),
    [
        ([5.0, 4.0, 3.0, 0.1], 4, 3), ([5.0, 0.1, 0.09], 4, 1), ([5.0], 4, 1), ([], 4, 0),
        ([9.0, 1.0, 0.9, 0.8, 0.1], 24, 4), ([5.0, 4.0, 0.0], 4, 2),
    ],
)  # fmt: skip
def test_the_number_of_anchors_is_where_scores_drop_most(scores, most, number):
    assert number_of_anchors(np.array(scores), most) == number


def test_a_clear_drop_among_the_last_candidates():
    scores = np.array([1.0] * 8 + [0.5] * 2 + [0.45])
    assert last_drop(scores, 10) == 8  # a drop of 2 after eight, 1.1 after ten
    weak = np.array([1.0] * 8 + [0.5] * 2 + [0.5 / (2.0 / CLEAR_DROP) * 0.999])
    assert last_drop(weak, 10) == 10
    early = np.array([1.0] * 5 + [0.1] * 5 + [0.09])
    assert last_drop(early, 10) == 10  # not among the last fifth
    assert last_drop(np.array([1.0, 0.5]), 1) == 1


def test_rows_with_the_largest_maxima():
    maxima = np.array([0.1, 0.9, 0.0, 0.8, 0.15])
    np.testing.assert_array_equal(row_maxima_anchors(maxima, None, 5), [1, 3])
    np.testing.assert_array_equal(row_maxima_anchors(maxima, 3, 5), [1, 3, 4])
    np.testing.assert_array_equal(row_maxima_anchors(maxima, 5, 5), [1, 3, 4, 0])
    np.testing.assert_array_equal(row_maxima_anchors(np.array([0.5, 0.5]), None, 2), [0, 1])


def test_rows_that_lie_apart_are_selected_by_weight_and_distance(rng):
    X = np.vstack([3.0 * np.eye(3), rng.dirichlet(np.ones(3), 6) * 3.0])
    X[4] = X[0] + 0.01
    data, rows = as_data_matrix(X), np.arange(9)
    weights = np.array([1.0, 1.0, 1.0, 0.3, 0.99, 0.3, 0.3, 0.3, 0.3])
    found, scores, squares = apart(data, rows, weights, 3)
    assert set(found) <= {0, 1, 2, 4}
    assert len({0, 4} & set(found)) == 1
    center = X.mean(axis=0)
    assert scores[0] == pytest.approx((weights * np.linalg.norm(X - center, axis=1)).max())
    assert squares[0] == np.inf
    distance = hull_distances(X[found[1:2]], X[found[:1]])[1][0]
    assert scores[1] == pytest.approx(weights[found[1]] * distance)
    assert squares[1] == pytest.approx(distance**2)
    nothing = apart(data, np.empty(0, dtype=int), np.empty(0), 3)
    assert [len(each) for each in nothing] == [0, 0, 0]
    copies = as_data_matrix(np.ones((4, 3)))
    assert len(apart(copies, np.arange(4), np.ones(4), 3)[0]) == 1


def test_the_fit_of_anchors_is_that_of_the_other_samples(rng):
    X = np.vstack([np.eye(3), rng.dirichlet(np.ones(3), 5)])
    X[6] += [0.0, 0.0, 1.0]
    fit = fit_of(as_data_matrix(X), np.array([0, 1, 2]), np.array([6]))
    assert fit.largest > 0.1
    assert fit.median <= 1e-12
    assert fit.mean == pytest.approx(fit.largest / 5)
    alone = fit_of(as_data_matrix(np.eye(3)), np.arange(3), np.arange(3))
    assert (alone.mean, alone.median) == (0.0, 0.0)


def test_other_anchors_may_fit_as_well():
    W = 2.0 * np.eye(3)
    kappa = nearest_anchor(W)
    assert nearest_anchor(W[:1]) == 2.0
    clear = alternatives_statement(W, Fit(0.0, kappa**2 / (1.01 * CLEAR_RATIO)))
    assert clear.holds
    assert clear.number == pytest.approx(1.01 * CLEAR_RATIO)
    close = alternatives_statement(W, Fit(0.0, kappa**2 / (0.99 * CLEAR_RATIO)))
    assert close.verdict is Verdict.FAILS
    noisy = alternatives_statement(W, Fit(0.0, 0.5, 0.25))
    assert noisy.number == pytest.approx((kappa**2 - 0.25) / 0.25)
    assert alternatives_statement(W, Fit(0.0, 0.0)).number == math.inf
    assert alternatives_statement(np.ones((2, 3)), Fit(0.0, 0.0)).verdict is Verdict.FAILS


def test_how_far_points_reach_toward_a_vertex(rng):
    vertices = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    points = np.vstack([[[1.0, 1.0], [0.5, 0.5], [2.0, 0.0]], vertices[:1]])
    distances, reached = competition(vertices, points)
    np.testing.assert_allclose(distances, [math.sqrt(2.0), 2.0, 2.0])
    # Toward the origin, from the other two: 1 at the origin, 0 on their segment.
    np.testing.assert_allclose(reached[0], [0.0, 0.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(reached[1], [0.5, 0.25, 0.0], atol=1e-9)
    assert len(reached[1]) == 3  # a copy of the vertex is none of its rivals


def test_a_purer_sample_makes_a_vertex_doubtful():
    assert mixture_probability(np.array([0.5]), 0.1, 0.0) == 1.0
    sure = mixture_probability(np.array([0.4, 0.5, 0.6]), 0.01, 1.0)
    near = mixture_probability(np.array([0.4, 0.5, 1.2]), 0.01, 1.0)
    assert sure < 1e-6
    assert near > 0.9
    noise = [mixture_probability(np.array([0.5, 1.0]), sigma, 1.0) for sigma in (0.01, 0.1, 0.3)]
    assert noise[0] <= noise[1] <= noise[2]


def test_directions_and_noise(rng):
    left, right = (np.linalg.qr(rng.standard_normal((n, 6)))[0] for n in (40, 6))
    values = np.array([9.0, 5.0, 0.3, 0.3, 0.3, 0.3])
    X = left * values @ right.T
    directions, noise, _ = leading_directions(X, 2)
    np.testing.assert_allclose(np.abs(directions.T @ right[:, :2]), np.eye(2), atol=1e-9)
    assert noise == pytest.approx(math.sqrt(4 * 0.09 / ((40 - 1 - 2) * 4)))
    assert leading_directions(X, 6)[1] == pytest.approx(0.3 / math.sqrt(39))
    assert leading_directions(left[:, :2] * values[:2] @ right[:, :2].T, 2)[1] == 0.0


def test_samples_in_fewer_dimensions(rng):
    X = rng.random((12, 5)) + np.arange(1.0, 6.0)
    data = as_data_matrix(X)
    np.testing.assert_allclose(mean_row(data), X.mean(axis=0))
    basis = rng.random((5, 2))
    np.testing.assert_allclose(projected(data, basis).dense_rows(0, 12), X @ basis)
    shift = rng.random(5)
    np.testing.assert_allclose(projected(data, basis, offset=shift).dense_rows(0, 12), (X - shift) @ basis)
    directions, mean = principal_directions(data, 2, centered=True)
    np.testing.assert_allclose(mean, X.mean(axis=0))
    right = np.linalg.svd(X - mean)[2][:2]
    np.testing.assert_allclose(np.abs(directions.T @ right.T), np.eye(2), atol=1e-8)
    directions, mean = principal_directions(data, 2, centered=False)
    assert mean is None
    np.testing.assert_allclose(np.abs(directions.T @ np.linalg.svd(X)[2][:2].T), np.eye(2), atol=1e-8)
    wide = _with_constant(data, 3).dense_rows(0, 12)
    assert wide.shape == (12, 3)
    lengths = np.linalg.norm(wide[:, :2], axis=1)
    np.testing.assert_allclose(wide[:, 2], lengths.max())


def test_margins_and_distances_at_their_limits():
    assert margin_statement(np.array([0.5, 0.5]), [0], apart=True).verdict is Verdict.NOT_VERIFIABLE
    # Relative to the longest anchor: two that are 1e-5 apart at a distance of 1e6 are one.
    near = span_statement(np.array([[1e6, 0.0], [1e6, 1e-5]]))
    assert near.verdict is Verdict.FAILS
    assert near.threshold == pytest.approx(1e-4)
    assert span_statement(np.array([[1e6, 0.0], [1e6, 1e-3]])).holds
    assert span_statement(np.array([[1e-6, 0.0], [1e-6, 1e-12]])).holds


@pytest.mark.parametrize(
    ("value", "flag"), [(True, True), (np.bool_(False), True), (1, False), ("True", False), (None, False)]
)
def test_what_is_a_flag(value, flag):
    assert _is_flag(value) is flag


@pytest.mark.parametrize(("row_maxima", "margin"), [([0.9, 0.2, 0.8, 0.3], 0.5), (None, 0.25)])
def test_the_margin_of_a_selection(row_maxima, margin):
    found = SelectionResult(
        np.array([0, 2]), "x", History(), scores=np.array([2.0, 0.75]), best_left=0.5,
        row_maxima=None if row_maxima is None else np.array(row_maxima),
    )  # fmt: skip
    assert found.margin == pytest.approx(margin)
    assert found.stop_sentence == found.stop_reason.value
    assert replace(found, stop_sentence="enough").stop_sentence == "enough"
    if row_maxima is not None:
        np.testing.assert_array_equal(found.curve, [0.9, 0.8, 0.3, 0.2])
        whole = replace(found, row_maxima=np.array([0.9, 0.8, 0.3]), anchors=np.arange(3))
        assert whole.margin == pytest.approx(0.3)
    else:
        assert found.curve is None
        for lost in ({"best_left": None}, {"scores": None}, {"scores": np.zeros(0)}):
            assert replace(found, **lost).margin is None


@pytest.mark.parametrize(("wanted", "rows"), [(1, [4]), (2, [4, 1]), (3, [4, 1, 0]), (9, [4, 1, 0])])
def test_distinct_rows_are_the_first_of_their_kind(wanted, rows):
    X = np.array([[1.0, 2.0], [3.0, 1.0], [3.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    order = np.array([4, 3, 1, 2, 0])
    np.testing.assert_array_equal(distinct_rows(as_data_matrix(X), order, wanted), rows)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.5])
def test_one_wrong_coefficient_is_enough(bad):
    C = np.eye(3)
    C[0, 1], C[1, 1] = bad, 1.0 - bad
    with pytest.raises(InvalidParameterError, match="finite and nonnegative"):
        checked_coefficients(C, 3)
    np.testing.assert_array_equal(checked_coefficients(np.eye(3), 3).toarray(), np.eye(3))
    with pytest.raises(InvalidParameterError, match=r"column 1 sums to 0\.5"):
        checked_coefficients(np.diag([1.0, 0.5, 1.0]), 3)


@pytest.mark.parametrize("sum_to_one", [True, False])
def test_the_noise_of_mixtures_is_the_largest_distance(sum_to_one):
    vertices = np.array([[2.0, 0.0], [0.0, 2.0]])
    X = np.array([[1.0, 1.0], [2.0, 0.0], [0.5, 0.5], [3.0, 0.0], [0.0, 0.0]])
    found = mixture_noise(as_data_matrix(X), vertices, sum_to_one=sum_to_one)
    assert found == pytest.approx(math.sqrt(2.0) if sum_to_one else 1.0)


@pytest.mark.parametrize(
    ("n", "k", "depth", "members"),
    [(1000, 3, 0.1, 10.0), (1000, 3, 0.01, math.log(1000)), (200, 3, 0.01, 2.0), (50, 2, 0.0, 0.0)],
)
def test_members_of_samples_that_fill_a_simplex(n, k, depth, members):
    assert even_members(n, k, depth) == pytest.approx(members)


@pytest.mark.parametrize(("m", "rank"), [(500, 12), (501, 3)])
def test_leading_directions_of_many_features(m, rank, rng):
    """Beyond 500 features those of samples of up to k + 1 dimensions are exact."""
    X = rng.standard_normal((12, rank)) * np.linspace(3.0, 1.0, rank) @ rng.random((rank, m)) + 1.0
    X = X if m == 500 else X - 1.0
    directions, mean = principal_directions(as_data_matrix(X), 2, centered=True)
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-12)
    right = np.linalg.svd(X - mean, full_matrices=False)[2][:2]
    np.testing.assert_allclose(np.abs(directions.T @ right.T), np.eye(2), atol=1e-6)
