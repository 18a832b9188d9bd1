"""Which rows become anchors, how many, and what the certificate says of them, on planted anchors."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.studies.planted_anchors import n_found, planted
from tests.references.containers import TORCH, as_container

from nonneg import select_anchors
from nonneg.certificates.certificate import Verdict
from nonneg.data import as_data_matrix
from nonneg.separable.merit.alternatives import competition, leading_directions, mixture_probability
from nonneg.separable.merit.choice import apart, choose_anchors, last_drop, number_of_anchors
from nonneg.separable.merit.penalty_weight import NumberEstimate, penalty_weight
from nonneg.separable.merit.residuals import (
    noise_limit,
    number_above_noise,
    squared_residuals,
    successive_squares,
)

PARAMS = {"recovery": False}


def default(X, k, **params):
    return select_anchors(X, k, method_params=PARAMS | params)


@pytest.fixture(scope="module")
def copies():
    """200 samples between 10 anchors at 20 dB, every tenth of which is a near-copy of an anchor."""
    return planted("near-duplicates", 200, 30, 10, 20.0, 0)


@pytest.fixture(scope="module")
def of_copies(copies):
    """What is found of ten anchors among them, and without their number."""
    return {k: default(copies.X, k) for k in (10, None)}


def test_near_duplicates_are_not_two_anchors(copies, of_copies):
    assert n_found(copies, of_copies[10].anchors) == 10
    # The largest row maxima alone are those of copies, whatever the weight.
    assert n_found(copies, default(copies.X, 10, choice="row-maxima").anchors) < 10


def test_the_number_of_anchors_is_found_beside_near_duplicates(of_copies):
    assert of_copies[None].n_components == 10


@pytest.mark.parametrize("kind", ["duplicates", "near-duplicates"])
def test_the_order_of_the_samples_decides_nothing(kind):
    points = planted(kind, 150, 20, 6, 15.0, 1)
    order = np.random.default_rng(0).permutation(150)
    found, other = default(points.X, 6).anchors, default(points.X[order], 6).anchors
    one, two = (X[np.lexsort(X.T)] for X in (points.X[found], points.X[order][other]))
    assert np.array_equal(one, two)


@pytest.mark.covering(0)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("unit", [1e-6, 2.0**-20, 1e6])
def test_the_unit_of_the_data_decides_nothing(unit, copies, of_copies):
    found, other = of_copies[10], default(unit * copies.X, 10)
    assert np.array_equal(found.anchors, other.anchors)
    assert other.lam == pytest.approx(unit**2 * found.lam, rel=1e-9)
    assert other.n_iter == found.n_iter
    for mine, theirs in zip(found.certificate, other.certificate, strict=True):
        assert mine.verdict is theirs.verdict, mine.name
    if unit == 2.0**-20:
        assert abs(found.coefficients - other.coefficients).max() == 0


@pytest.mark.parametrize("init", [None, "spa"])
def test_warm_starts_do_not_depend_on_the_unit(init, copies):
    found, other = (
        select_anchors(unit * copies.X, 10, init=init, max_iter=20, method_params={"steps": "open-loop"})
        for unit in (1.0, 1e4)
    )
    assert found.facts["t_init"] == other.facts["t_init"]
    assert np.array_equal(found.anchors, other.anchors)


def test_the_weight_does_not_grow_with_the_number_of_samples():
    points = [as_data_matrix(planted("uniform", n, 30, 10, 12.0, 0).X) for n in (200, 2000, 20_000)]
    weights = [penalty_weight(X, 10).lam for X in points]
    assert max(weights) <= 1.25 * min(weights)


@pytest.mark.slow
def test_more_samples_do_not_lose_anchors():
    for n in (200, 1500):
        points = planted("uniform", n, 30, 20, 12.0, 0)
        assert n_found(points, default(points.X, 20).anchors) == 20


def test_spa_is_returned_where_it_fits_better():
    # Five anchors under strong noise: rows of C tell little.
    fell_back = 0
    for draw in range(4):
        points = planted("sparse", 120, 20, 5, 6.0, draw)
        # Early-stopped rows: the converged ones fit better than SPA in these draws.
        result = select_anchors(points.X, 5, method_params={"steps": "open-loop", "recovery": False})
        spa = select_anchors(points.X, 5, method="spa").anchors
        fit = result.certificate["fit"].quantities
        assert (fit["spa_largest"] < fit["merit_largest"]) == (fit["returned"] == "spa")
        if fit["returned"] == "spa":
            fell_back += 1
            assert result.facts["choice"] == "spa"
            assert set(result.anchors) == set(spa)
        assert np.all(np.diff(result.scores) <= 0)
    assert fell_back


def test_the_certificate_tells_right_answers_from_wrong_ones():
    right = wrong = 0
    for draw in range(4):
        clear = planted("uniform", 150, 30, 10, 25.0, draw)
        result = default(clear.X, 10)
        assert n_found(clear, result.anchors) == 10
        right += any(statement.verdict is Verdict.FAILS for statement in result.certificate)
        noisy = planted("uniform", 150, 30, 10, 1.0, draw)
        result = default(noisy.X, 10)
        assert n_found(noisy, result.anchors) < 10
        assert "may be the true anchor" in result.certificate["uncertain-anchors"].sentence
        wrong += any(statement.verdict is Verdict.FAILS for statement in result.certificate)
    assert right == 0
    assert wrong == 4


def test_distances_are_from_the_hull_of_those_before():
    X = np.array([[0.0, 0.0], [4.0, 0.0], [3.9, 0.0], [0.0, 3.0], [1.0, 1.0]])
    rows, scores, squares = apart(as_data_matrix(X), np.arange(5), np.array([1.0, 0.9, 1.0, 0.5, 1.0]), 5)
    assert rows.tolist()[:1] == [2]
    # From (3.9, 0): the origin is 3.9 away, then (0, 3) is 3 away from the segment, times its maximum. The
    # nearest points are samples, with the noise of samples: the variance of the difference is twice as large.
    assert rows.tolist()[1:3] == [0, 3]
    assert scores[1] ** 2 == pytest.approx(3.9**2 / 2)
    assert scores[2] ** 2 == pytest.approx(1.5**2 / 2)
    assert squares[1:3] == pytest.approx([3.9**2 / 2, 3.0**2 / 2])
    # The last one is a mixture of the others, and no anchor.
    assert rows.tolist() == [2, 0, 3, 1]
    assert scores[3] ** 2 == pytest.approx(0.09**2 / 2)


@pytest.mark.parametrize("container", ["csr", "strict", TORCH])
def test_every_container(container, copies):
    maxima = np.random.default_rng(0).random(200)
    rows = np.arange(200)
    dense = apart(as_data_matrix(copies.X), rows, maxima, 12)[0]
    assert np.array_equal(
        apart(as_data_matrix(as_container(copies.X, container)), rows, maxima, 12)[0], dense
    )


def test_places_that_no_distance_fills_go_by_row_maxima():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.25, 0.75]])
    maxima, number = np.array([1.0, 1.0, 0.2, 0.6]), NumberEstimate(3, 3)
    found = choose_anchors(
        as_data_matrix(X), maxima, 3, number, choice="spread", ties="farthest", greedy=None
    )
    assert found.anchors.tolist() == [0, 1, 3]


def test_the_number_is_where_the_scores_fall_most():
    scores = np.array([9.0, 2.0, 1.9, 1.8, 1.7, 0.2, 0.15])
    # The first fall, of the distance from one point to that from a segment, is outside the range.
    assert number_of_anchors(scores, 16) == 5
    assert number_of_anchors(scores[:1], 2) == 1


def test_candidates_after_a_clear_drop_are_no_anchors():
    scores = np.array([9.0, 6.0, 5.0, 4.0, 3.9, 0.6, 0.5, 0.45])
    assert last_drop(scores, 6) == 5
    # A number in the first fourth fifths is sure.
    assert last_drop(scores, 7) == 7
    assert last_drop(scores, 5) == 5


def test_an_unclear_number_is_a_warning(of_copies):
    clear = of_copies[None].certificate["number-of-anchors"]
    assert clear.verdict is Verdict.HOLDS
    assert clear.number > 1.5
    assert "number-of-anchors" not in of_copies[10].certificate
    noisy = default(planted("uniform", 150, 30, 10, 3.0, 0).X, None)
    assert noisy.certificate["number-of-anchors"].verdict is Verdict.FAILS


@pytest.mark.slow
def test_a_few_anchors_are_counted_among_many_features():
    # Noise in 200 features lengthens all residuals alike: SPA's fall slowly.
    points = planted("uniform", 200, 200, 5, 7.0, 3)
    assert default(points.X, None).n_components == 5


def test_noise_is_told_from_anchors():
    points = planted("uniform", 300, 40, 10, 12.0, 0)
    data, others = as_data_matrix(points.X), np.setdiff1d(np.arange(300), points.anchors)
    left = squared_residuals(data, points.anchors, others, standardized=True)
    limit = noise_limit(left, 300)
    assert left.max() <= limit
    order = np.concatenate([points.anchors, others[:10]])
    squares = successive_squares(points.X[order])
    assert squares[:10].min() > limit
    assert number_above_noise(data, order, squares) == 10
    # Without samples that noise explains, nobody knows the noise.
    assert number_above_noise(data, order[:10], squares[:10]) is None
    exact = as_data_matrix(points.W @ points.H)
    assert number_above_noise(exact, order, np.ones(20)) is None


@pytest.mark.parametrize("k", [6, None])
def test_copies_of_anchors_change_nothing(k):
    points = planted("uniform", 120, 20, 6, 20.0, 0)
    X = np.vstack([points.X, points.X[points.anchors], points.X[points.anchors]])
    found, other = default(points.X, k), default(X, k)
    assert found.n_components == 6
    one, two = (rows[np.lexsort(rows.T)] for rows in (points.X[found.anchors], X[other.anchors]))
    assert np.array_equal(one, two)
    assert not any(statement.verdict is Verdict.FAILS for statement in other.certificate)


def test_mixtures_beside_a_purer_sample_are_doubted():
    close, apart_from_it = np.linspace(0.1, 1.02, 30), np.linspace(0.1, 0.6, 30)
    assert mixture_probability(close, 0.1, 1.0) > 0.01
    # Without noise, or without a sample that noise may have moved inward, nothing is in doubt.
    assert mixture_probability(close, 0.02, 1.0) < 1e-6
    assert mixture_probability(apart_from_it, 0.1, 1.0) < 1e-6
    # Many samples at the same place are at the vertex.
    one, many = (mixture_probability(np.append(apart_from_it, np.ones(n)), 0.15, 1.0) for n in (1, 50))
    assert many < 0.1 * one
    assert mixture_probability(close, 0.0, 0.0) == 1.0


def test_there_may_be_no_candidates():
    none = np.zeros(0, dtype=np.intp)
    found = apart(as_data_matrix(np.eye(3)), none, np.zeros(0), 2)
    assert [len(part) for part in found] == [0, 0, 0]


def test_how_far_points_reach_toward_a_vertex():
    place = np.array([5.0, 7.0])
    vertices = place + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    points = place + np.array([[0.4, 0.3], [0.0, 0.0], [0.6, 0.6]])
    distances, reached = competition(vertices, points)
    np.testing.assert_allclose(distances, [np.sqrt(0.5), 1.0, 1.0])
    # The second point is the first vertex itself.
    for found, expected in zip(reached, [[0.3, -0.2], [0.4, 0.0, 0.6], [0.3, 0.0, 0.6]], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    distances, reached = competition(vertices[[0, 1, 1]], points)
    np.testing.assert_allclose(distances, [1.0, 0.0, 0.0], atol=1e-7)
    assert [len(found) for found in reached[1:]] == [1, 1]


def test_the_noise_is_that_beside_the_leading_directions():
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(12, 2)))[0]
    X = rng.normal(size=(600, 2)) * [5.0, 3.0] @ directions.T
    noisy = X + 0.1 * rng.normal(size=X.shape)
    found, noise, _ = leading_directions(noisy - noisy.mean(axis=0), 2)
    assert found.shape == (12, 2)
    np.testing.assert_allclose(np.linalg.svd(found.T @ directions)[1], 1.0, atol=1e-3)
    assert noise == pytest.approx(0.1, rel=0.05)
    assert leading_directions(X - X.mean(axis=0), 2)[1] == 0.0  # rounding errors
    # Without a direction beside them, the smallest one bounds the noise.
    plane = rng.normal(size=(600, 2)) * [5.0, 3.0]
    assert leading_directions(plane - plane.mean(axis=0), 2)[1] == pytest.approx(3.0, rel=0.1)
