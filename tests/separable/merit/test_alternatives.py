"""Distances from the hull of anchors, the noise in them, and samples that could be anchors instead."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from nonneg.certificates.certificate import Verdict
from nonneg.data import as_data_matrix
from nonneg.separable.merit import alternatives, residuals
from nonneg.separable.merit.choice import Fit

TRIANGLE = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])


def test_standardized_distances():
    # A copy of an anchor has twice the noise, a sample in the middle of two 1.5 times.
    points = np.array([[0.0, -1.0], [2.0, -2.0], [5.0, 0.0], [1.0, 1.0]])
    plain, standardized = residuals.hull_distances(points, TRIANGLE)
    np.testing.assert_allclose(plain, [1, 2, 1, 0], atol=1e-9)
    np.testing.assert_allclose(standardized, [1 / 2**0.5, 2 / 1.5**0.5, 1 / 2**0.5, 0], atol=1e-9)
    X = as_data_matrix(np.vstack([TRIANGLE, points]))
    for rows in (np.arange(7), np.arange(3, 7)):
        squares = residuals.squared_residuals(X, np.arange(3), rows)
        np.testing.assert_allclose(squares[-4:], [1, 4, 1, 0], atol=1e-9)
        squares = residuals.squared_residuals(X, np.arange(3), rows, standardized=True)
        np.testing.assert_allclose(squares[-4:], [1 / 2, 4 / 1.5, 1 / 2, 0], atol=1e-9)


def test_squares_of_points_from_those_before():
    found = residuals.successive_squares(TRIANGLE)
    # The second is 4 from the first; the third is 3 from the first, at the end of the segment.
    np.testing.assert_allclose(found, [np.inf, 16 / 2, 9 / 2])


@pytest.mark.parametrize("shape", [4.0, 30.0])
def test_the_limit_of_noise_is_a_quantile_of_a_gamma_distribution(shape):
    stats = pytest.importorskip("scipy.stats")
    squares = stats.gamma.ppf((np.arange(20000) + 0.5) / 20000, shape)
    median = np.median(squares)
    deviation = 1.4826 * np.median(np.abs(squares - median))
    assumed = stats.gamma((median / deviation) ** 2)
    expected = median * assumed.isf(0.05 / 20000) / assumed.median()
    assert residuals.noise_limit(squares, 20000) == pytest.approx(expected, rel=1e-9)
    assert residuals.noise_limit(np.array([2.0, 2.0, 2.0, 5.0]), 4) == 5.0


@pytest.mark.parametrize(
    ("n", "most", "expected"), [(5, 5, range(5)), (6, 5, range(0, 6, 2)), (11, 5, range(0, 11, 3))]
)
def test_evenly_spaced_samples(n, most, expected):
    np.testing.assert_array_equal(residuals.evenly_spaced(n, most), expected)


def test_the_nearest_anchor():
    assert alternatives.nearest_anchor(np.array([[3.0, 4.0]])) == 5.0
    # From the hull of the others: 4 from one end for the second, 3 for the third, 2.4 for the corner.
    weights = np.array([0.36, 0.64])
    expected = min(4 / 2**0.5, 3 / 2**0.5, 2.4 / (1 + weights @ weights) ** 0.5)
    assert alternatives.nearest_anchor(TRIANGLE + 7.0) == pytest.approx(expected)


def test_how_far_points_reach_toward_vertices():
    points = np.array([[6.0, 0.0], [2.0, 1.0], [4.0, 0.0]])
    distances, reached = alternatives.competition(TRIANGLE, points)
    np.testing.assert_allclose(distances, [2.4, 4.0, 3.0])
    # The third point is the second vertex, which does not compete with itself.
    assert [len(each) for each in reached] == [3, 2, 3]
    np.testing.assert_allclose(reached[1], [1.5, 0.5])
    np.testing.assert_allclose(reached[2], [0.0, 1 / 3, 0.0], atol=1e-12)
    normal = np.array([3.0, 4.0]) / 5
    np.testing.assert_allclose(reached[0], 1 - points @ normal / 2.4, atol=1e-12)
    distances, reached = alternatives.competition(np.ones((2, 2)), points)
    np.testing.assert_array_equal(distances, 0.0)
    np.testing.assert_array_equal(reached, 1.0)


@pytest.mark.parametrize("n_directions", [1, 2, 3, 5])
def test_leading_directions_and_what_is_left(n_directions, rng):
    X = rng.standard_normal((12, 4)) * [5.0, 2.0, 0.1, 0.2]
    X -= X.mean(axis=0)
    directions, noise, _ = alternatives.leading_directions(X, n_directions)
    q = min(n_directions, 4)
    values, vectors = np.linalg.eigh(X.T @ X)
    expected = vectors[:, ::-1][:, :q]
    np.testing.assert_allclose(np.abs(np.sum(directions * expected, axis=0)), 1.0)
    left = values[::-1][q:].sum() / ((11 - q) * (4 - q)) if q < 4 else values[0] / 11
    assert noise == pytest.approx(math.sqrt(left))
    assert alternatives.leading_directions(np.outer(np.arange(4.0) - 1.5, np.ones(3)), 1)[1] == 0.0
    # As many directions as samples leave: the smallest bounds the noise.
    few = X[:3] - X[:3].mean(axis=0)
    assert alternatives.leading_directions(few, 2)[1] == pytest.approx(
        np.linalg.svd(few)[1][1] / math.sqrt(2)
    )


@pytest.mark.parametrize(("largest", "holds"), [(0.5, True), (6.0, False)])
def test_whether_another_sample_stands_out_as_much(largest, holds):
    kappa = alternatives.nearest_anchor(TRIANGLE)
    found = alternatives.alternatives_statement(TRIANGLE, fit(largest=largest, median=0.25))
    assert found.number == pytest.approx((kappa**2 - 0.25) / (largest - 0.25))
    assert found.threshold == 1.35
    assert found.verdict is (Verdict.HOLDS if holds else Verdict.FAILS)
    assert found.quantities == pytest.approx({"kappa": kappa, "outside": math.sqrt(largest), "noise": 0.5})
    words = f"is {kappa:.4g} away from their convex hull, the sample farthest from the hull of all anchors "
    assert words + f"{math.sqrt(largest):.4g}, a typical one 0.5 " in found.sentence
    assert found.sentence.endswith(
        "no other sample stands out as much." if holds else "other anchors may fit as well."
    )


@pytest.mark.parametrize(("margin", "limit"), [(-0.1, 1.35), (0.0, 1.35), (1e-9, 1.1), (0.3, 1.1)])
def test_anchors_with_the_largest_row_maxima_need_to_stand_out_less(margin, limit):
    kappa = alternatives.nearest_anchor(TRIANGLE)
    for ratio, verdict in ((1.01 * limit, Verdict.HOLDS), (0.99 * limit, Verdict.FAILS)):
        found = alternatives.alternatives_statement(
            TRIANGLE, fit(largest=kappa**2 / ratio, median=0.0), margin=margin
        )
        assert (found.threshold, found.verdict) == (limit, verdict)


def test_without_noise_all_distances_are_rounding():
    found = alternatives.alternatives_statement(TRIANGLE, fit(largest=1e-15, median=0.0))
    assert (found.number, found.verdict) == (math.inf, Verdict.HOLDS)
    found = alternatives.alternatives_statement(np.ones((2, 2)), fit(largest=1e-15, median=0.0))
    assert (found.number, found.verdict) == (0.0, Verdict.FAILS)
    noisy = alternatives.alternatives_statement(TRIANGLE, fit(largest=9.0, median=9.0))
    assert (noisy.number, noisy.verdict) == (0.0, Verdict.FAILS)


def fit(**facts):
    names = [field.name for field in dataclasses.fields(Fit)]
    return Fit(**{name: facts.get(name, 0.0) for name in names})


def test_purer_samples_make_an_anchor_doubtful():
    probability = alternatives.mixture_probability
    assert probability(np.ones(1), 0.1, 0.0) == 1.0
    # Without noise a sample beyond the vertex is purer, and one short of it is not.
    assert probability(np.array([0.5, 1.3]), 0.0, 1.0) == pytest.approx(1.0, abs=1e-3)
    assert probability(np.array([0.5, 0.6]), 0.0, 1.0) == pytest.approx(0.0, abs=1e-3)
    assert probability(np.array([0.1]), 0.0, 1.0) == pytest.approx(0.0, abs=1e-3)
    many = [probability(np.full(9, 1.0), noise, 1.0) for noise in (0.01, 0.05, 0.2)]
    assert many[0] < 0.05


def test_the_probability_is_that_of_the_mixture_fitted_by_hand():
    weights, noise, distance = np.array([0.4551, 0.6251, 0.9551, 1.0851, 0.2]), 0.4, 2.0
    grid = np.arange(0.3, 1.4, 0.025)
    observed = np.array([0.455, 0.625, 0.955, 1.085, 1.0])  # middles of bins; the last is too far away
    density = np.exp(-0.5 * ((observed[:, None] - grid) / (noise / distance)) ** 2)
    prior = np.full(len(grid), 1 / len(grid))
    for _ in range(40):
        posterior = density * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = posterior.mean(axis=0)
    expected = 0.0
    for value, share in zip(grid, posterior[-1], strict=True):
        at = [np.interp(value / 0.85, grid, np.log(np.cumsum(row)), right=0.0) for row in posterior[:-1]]
        expected += share * (1 - np.exp(np.sum(at)))
    found = alternatives.mixture_probability(weights, noise, distance)
    assert found == pytest.approx(expected, rel=1e-6)
    assert 0.01 < found < 0.99


@pytest.mark.parametrize("k", [1, 2, 3])
def test_uncertain_anchors(k, rng):
    X = rng.dirichlet(np.ones(3), 60) @ np.array([[4.0, 0, 0, 1], [0, 3, 0, 2], [0, 0, 2, 3]])
    X = np.vstack([np.diag([4.0, 3.0, 2.0]) @ np.eye(3, 4) + [0, 0, 0, 1.0], X])
    data = as_data_matrix(X + 0.01 * rng.random(X.shape))
    found = alternatives.uncertain_anchors_statement(data, np.arange(k), np.arange(60))
    if k == 1:
        assert (found.number, found.verdict) == (None, Verdict.NOT_VERIFIABLE)
        assert found.sentence == "The purity of anchors is compared for 2 to 256 anchors."
        return
    A = np.asarray(data.take_rows(np.arange(63)))
    mean = A.mean(axis=0)
    directions, noise, _ = alternatives.leading_directions(A - mean, k - 1)
    points, vertices = (A[k:] - mean) @ directions, (A[:k] - mean) @ directions
    distances, weights = alternatives.competition(vertices, points)
    doubts = [alternatives.mixture_probability(w, noise, d) for w, d in zip(weights, distances, strict=True)]
    limit = 0.005 * k
    n_doubtful = sum(doubt > limit for doubt in doubts)
    assert found.quantities == pytest.approx(
        {
            "noise": noise,
            "smallest_distance": distances.min(),
            "k": k,
            "uncertain": n_doubtful,
            "expected": sum(doubts),
        }
    )
    assert (found.number, found.threshold) == (pytest.approx(max(doubts)), limit)
    assert found.verdict is (Verdict.FAILS if n_doubtful else Verdict.HOLDS)
    assert f"deviation of {noise:.4g} in a direction" in found.sentence
    assert f"by {distances.min():.4g} or more" in found.sentence
    if n_doubtful:
        assert f"For {n_doubtful} of {k} anchors" in found.sentence
    assert "85%" in found.sentence


@pytest.mark.parametrize(("shape", "q"), [((5, 6), 3), ((5, 6), 4), ((6, 5), 4), ((4, 4), 1), ((2, 3), 2)])
def test_noise_needs_a_direction_and_a_sample_left_over(shape, q, rng):
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    n, m = shape
    values = np.linalg.svd(X)[1]
    left = math.sqrt(np.sum(values[q:] ** 2) / max((n - 1 - q) * (m - q), 1e-9))
    expected = left if q < m and q < n - 1 else values[q - 1] / math.sqrt(n - 1)
    assert alternatives.leading_directions(X, q)[1] == pytest.approx(
        expected if expected > 1e-7 * values[0] / math.sqrt(n) else 0.0
    )


def test_weights_compete_from_the_first_bin_on():
    """Many small weights make large ones unlikely, those below the grid do not count."""
    small, none = np.full(99, 0.305), np.full(99, 0.295)
    assert alternatives.mixture_probability(none, 0.5, 1.0) == pytest.approx(0.0, abs=1e-12)
    assert alternatives.mixture_probability(small, 0.5, 1.0) > 1e-3
