"""Every statement about recovery, word by word and number by number, for quantities that all differ."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from nonneg.certificates.certificate import Verdict
from nonneg.data import as_data_matrix
from nonneg.separable.merit import alternatives, residuals
from nonneg.separable.merit.choice import Fit
from nonneg.separable.merit.recovery_conditions import (
    ModelFacts,
    conditioning_statement,
    hull_distance,
    lemma_1_statement,
    support_statement,
    theorem_2_statement,
    theorem_3_statement,
    theorem_4_statement,
    warm_start_statement,
)

FACTS = ModelFacts(
    n_points=30, k=3, lam=0.7, mu=0.011, gamma=2.3, sigma_max=3.1, sigma_min=0.4, kappa=1.3, delta=0.02,
    noise=0.005, closeness=0.6, omega=0.9, nu=0.21, psi=0.05, inside=True, largest_residual=0.31,
)  # fmt: skip
UNMET = "; it does not apply, and says nothing about the anchors."
MODEL = "with W, H and V estimated from the anchors found"


def with_(**changes):
    return dataclasses.replace(FACTS, **changes)


def parts(statement):
    return statement.name, statement.sentence, statement.number, statement.threshold, statement.verdict


def distance_from_triangle(x, corners):
    """The distance of a point outside of a triangle: that from one of its edges."""
    weights = np.linalg.solve(np.vstack([corners.T, np.ones(3)]), [*x, 1.0])
    if weights.min() >= 0:
        return 0.0
    found = []
    for i in range(3):
        first, along = corners[i - 1], corners[i] - corners[i - 1]
        share = np.clip((x - first) @ along / (along @ along), 0.0, 1.0)
        found.append(np.linalg.norm(x - first - share * along))
    return min(found)


@pytest.mark.parametrize("seed", range(4))
def test_distance_from_the_hull(seed):
    W = np.random.default_rng(seed).random((4, 2)) * [1, 5] + 3
    expected = min(distance_from_triangle(W[i], np.delete(W, i, axis=0)) for i in range(4))
    assert hull_distance(W) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_distances_of_two_and_of_equal_points():
    assert hull_distance([[0.0, 3.0], [4.0, 0.0]]) == pytest.approx(5.0)
    assert hull_distance(np.ones((3, 2))) == 0.0
    assert hull_distance([[0.0, -2.0]]) == 2.0


@pytest.mark.parametrize(
    ("kappa", "verdict"), [(0.5, Verdict.HOLDS), (1e-10, Verdict.FAILS), (3e-10, Verdict.HOLDS)]
)
def test_conditioning(kappa, verdict):
    sentence = (
        f"Every anchor is at least {kappa:.4g} away from the convex hull of the others (kappa(W)); the "
        "largest norm of an anchor is 2."
    )
    found = conditioning_statement(kappa, 2.0)
    assert parts(found) == ("conditioning", sentence, kappa, 2e-10, verdict)
    assert found.quantities == {"longest_anchor": 2.0}


def test_support():
    alone = support_statement(1.0, 0)
    assert parts(alone) == (
        "support",
        "All samples are mixtures of the anchors alone.",
        1.0,
        1.0,
        Verdict.HOLDS,
    )
    sentence = "87.5% of the weight is on anchors; 1 other samples also have weight, as they do under noise."
    shared = support_statement(0.875, 1)
    assert parts(shared) == ("support", sentence, 0.875, 1.0, Verdict.NOT_VERIFIABLE)
    assert (alone.quantities, shared.quantities) == ({"points_outside": 0}, {"points_outside": 1})


def test_warm_start():
    found = warm_start_statement(1, True, 7, 0.3, 4)
    spread = 2 * 0.3 / (5 * 6)
    assert found.number == pytest.approx(spread)
    assert (found.threshold, found.verdict) == (0.0, Verdict.HOLDS)
    assert "in row 7 (among" in found.sentence
    assert f"by at least {spread:.3g} up to iteration 5." in found.sentence
    assert found.quantities == {"t_init": 1, "row": 7, "xi": 0.3}
    for unmet in (warm_start_statement(3, False, 7, 0.3, 4), warm_start_statement(3, True, None, None, 4)):
        assert (unmet.number, unmet.threshold, unmet.verdict) == (None, None, Verdict.FAILS)
        assert unmet.quantities == {"t_init": 3}
    assert warm_start_statement(0, True, 7, 0.3, 4).verdict is Verdict.NOT_VERIFIABLE


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("omega", [1.1, 2 / math.sqrt(3), 1.2])
def test_lemma_1(inside, omega):
    limit, holds = 2 / math.sqrt(3), inside and omega < 1.15
    support = "is contained in" if inside else "extends beyond"
    below = "below" if omega < 1.15 else "not below"
    sentence = (
        f"Lemma 1, {MODEL}: the support of C {support} the anchors, and omega = {omega:.4g} is {below} "
        f"2/sqrt(K) = {limit:.4g}"
    )
    found = lemma_1_statement(with_(inside=inside, omega=omega))
    verdict = Verdict.HOLDS if holds else Verdict.NOT_VERIFIABLE
    assert parts(found) == ("lemma-1", sentence + ("." if holds else UNMET), omega, limit, verdict)
    assert found.quantities == {"omega": omega, "support_inside": inside, "k": 3}


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({}, "; it is about lam = 0, and lam is 0.7."),
        ({"lam": 0.0}, f" with the nu of the last iterate, which is violated{UNMET}"),
        (
            {"lam": 0.0, "delta": 1e-5},
            " with the nu of the last iterate; the nu of all iterates is not known.",
        ),
    ],
)
def test_theorem_2(changes, end):
    facts = with_(**changes)
    eta = 0.31 - 2 * facts.delta
    limit = math.sqrt(2.3**2 + 0.21 * eta * (1 - 0.6) / (4 * 3.1)) - 2.3
    found = theorem_2_statement(facts)
    assert (
        found.sentence
        == f"Theorem 2, {MODEL}: delta = {facts.delta:.4g} against a bound (17) of {limit:.4g}{end}"
    )
    assert found.threshold == pytest.approx(limit, rel=1e-9)
    assert (found.name, found.number, found.verdict) == ("theorem-2", facts.delta, Verdict.NOT_VERIFIABLE)
    assert found.quantities == pytest.approx(
        {
            "delta": facts.delta, "nu": 0.21, "eta": eta, "gamma": 2.3, "sigma_max": 3.1, "sigma_min": 0.4,
            "closeness": 0.6, "mixture_error_bound": (eta + 4 * facts.delta) / 0.4,
        }
    )  # fmt: skip


def test_theorem_2_at_its_limits():
    exact = theorem_2_statement(with_(lam=0.0, largest_residual=0.0, delta=0.0))
    assert exact.threshold == 0.0
    assert "not known" in exact.sentence
    flat = theorem_2_statement(with_(sigma_max=0.0, sigma_min=0.0))
    assert (flat.threshold, flat.quantities["mixture_error_bound"]) == (0.0, math.inf)
    assert theorem_2_statement(with_(largest_residual=0.03)).quantities["eta"] == 0.0


@pytest.mark.parametrize("changes", [{}, {"noise": 1e-12, "delta": 1e-6, "lam": 1e-6, "mu": 1e-5}])
def test_theorem_3(changes):
    facts = with_(**changes)
    rho = 30 * facts.delta**2 / facts.noise
    fit = math.sqrt(4 * rho * (1 - 3 / 30) * facts.noise + 2 * facts.lam * 3) + 2 * facts.delta
    beta = fit / (1.3 * (1 - 0.6))
    upper = 2 * rho * 27 / 30 * facts.noise / facts.lam + facts.mu * 30 * math.log(30) + beta * 3
    margin = 1 - beta - upper
    found = theorem_3_statement(facts)
    assert found.number == pytest.approx(margin, rel=1e-9)
    assert (found.name, found.threshold) == ("theorem-3", 0.0)
    assert found.verdict is (Verdict.HOLDS if changes else Verdict.NOT_VERIFIABLE)
    assert found.sentence == (
        f"Theorem 3, {MODEL}: at the optimum the row maxima of anchors are above {1 - beta:.4g}, those of "
        f"other samples at most {upper:.4g}{'.' if changes else UNMET}"
    )
    assert found.quantities == pytest.approx(
        {
            "beta": beta, "rho": rho, "kappa": 1.3, "closeness": 0.6, "delta": facts.delta,
            "squared_noise": facts.noise, "lam": facts.lam, "mu": facts.mu,
        }
    )  # fmt: skip


def test_theorem_3_at_its_limits():
    quiet = {"noise": 0.0, "delta": 0.0, "mu": 1e-9}
    assert theorem_3_statement(with_(**quiet)).quantities["rho"] == 1.0
    assert theorem_3_statement(with_(**quiet, closeness=1.0)).quantities["beta"] == math.inf
    # The bound on the others divides by the penalty.
    exact = theorem_3_statement(with_(**quiet, closeness=1.0, lam=0.0))
    assert (exact.quantities["beta"], exact.number) == (0.0, -math.inf)


@pytest.mark.parametrize("closeness", [0.6, 0.9])
@pytest.mark.parametrize("psi", [0.05, None])
@pytest.mark.parametrize("lam", [0.7, 5e4])
@pytest.mark.parametrize("inside", [True, False])
def test_theorem_4(closeness, psi, lam, inside):
    facts = with_(closeness=closeness, psi=psi, lam=lam, inside=inside, delta=0.1)
    spread = 1.0 if psi is None else math.exp(-0.05 / 0.011)
    d = math.sqrt(2 * max((closeness - 0.5) ** 2, (0.5 - 1 / 3) ** 2) + 0.5)
    v = (lam / 30 - lam * spread - (d**2 + 2 * d + 5) * 3.1**2 / 2) / 4
    limit = math.sqrt(2.3**2 + v) - 2.3 if 2.3**2 + v >= 0 else -2.3
    holds = inside and psi is not None and limit >= 0.1
    assert holds == (lam > 1 and inside and psi is not None)
    found = theorem_4_statement(facts)
    assert found.threshold == pytest.approx(limit, rel=1e-9)
    assert (found.name, found.number) == ("theorem-4", 0.1)
    assert found.verdict is (Verdict.HOLDS if holds else Verdict.NOT_VERIFIABLE)
    assert found.sentence == (
        f"Theorem 4, {MODEL}: delta = 0.1 against a bound (22) of {limit:.4g}; the support "
        f"{'is contained in' if inside else 'extends beyond'} the anchors{'.' if holds else UNMET}"
    )
    quantities = dict(found.quantities)
    assert (quantities.pop("v"), quantities.pop("d_prime")) == pytest.approx((v, d), rel=1e-9)
    assert quantities == {
        "delta": 0.1, "gamma": 2.3, "sigma_max": 3.1, "psi": psi, "lam": lam, "mu": 0.011,
        "support_inside": inside,
    }  # fmt: skip


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
    directions, noise = alternatives.leading_directions(X, n_directions)
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
    assert found.threshold == 1.3
    assert found.verdict is (Verdict.HOLDS if holds else Verdict.FAILS)
    assert found.quantities == pytest.approx({"kappa": kappa, "outside": math.sqrt(largest), "noise": 0.5})
    words = f"is {kappa:.4g} away from their convex hull, the sample farthest from the hull of all anchors "
    assert words + f"{math.sqrt(largest):.4g}, a typical one 0.5 " in found.sentence
    assert found.sentence.endswith(
        "no other sample stands out as much." if holds else "other anchors may fit as well."
    )


def test_without_noise_all_distances_are_rounding():
    found = alternatives.alternatives_statement(TRIANGLE, fit(largest=1e-15, median=0.0))
    assert (found.number, found.verdict) == (math.inf, Verdict.HOLDS)
    found = alternatives.alternatives_statement(np.ones((2, 2)), fit(largest=1e-15, median=0.0))
    assert (found.number, found.verdict) == (math.inf, Verdict.FAILS)
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
    X = np.vstack([np.diag([4.0, 3.0, 2.0]) @ np.eye(3, 4) + [0, 0, 0, 1.0], X])[:, :]
    data = as_data_matrix(X + 0.01 * rng.random(X.shape))
    found = alternatives.uncertain_anchors_statement(data, np.arange(k), np.arange(60))
    if k == 1:
        assert (found.number, found.verdict) == (None, Verdict.NOT_VERIFIABLE)
        assert found.sentence == "The purity of anchors is compared for 2 to 256 anchors."
        return
    A = data.to_local().array if hasattr(data, "to_local") else np.asarray(data.take_rows(np.arange(63)))
    mean = A.mean(axis=0)
    directions, noise = alternatives.leading_directions(A - mean, k - 1)
    points, vertices = (A[k:] - mean) @ directions, (A[:k] - mean) @ directions
    distances, weights = alternatives.competition(vertices, points)
    doubts = [alternatives.mixture_probability(w, noise, d) for w, d in zip(weights, distances, strict=True)]
    n_doubtful = sum(doubt > 0.01 for doubt in doubts)
    assert found.quantities == pytest.approx(
        {
            "noise": noise,
            "smallest_distance": distances.min(),
            "k": k,
            "uncertain": n_doubtful,
            "expected": sum(doubts),
        }
    )
    assert (found.number, found.threshold) == (pytest.approx(max(doubts)), 0.01)
    assert found.verdict is (Verdict.FAILS if n_doubtful else Verdict.HOLDS)
    assert f"deviation of {noise:.4g} in a direction" in found.sentence
    assert f"by {distances.min():.4g} or more" in found.sentence
    if n_doubtful:
        assert f"For {n_doubtful} of {k} anchors" in found.sentence
    assert "15%" in found.sentence
