"""Data built against what is said of other anchors and of warm starts: none of them makes it false."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nonneg.certificates import Verdict
from nonneg.data import as_data_matrix
from nonneg.purification.initialization import InitQuality, init_quality
from nonneg.separable.merit.alternatives import (
    alternatives_statement,
    mixture_probability,
    uncertain_anchors_statement,
)
from nonneg.separable.merit.choice import Fit, fit_of


def simplex(rng, n_samples=40, noise=0.0, unit=1.0, dtype=np.float64):
    """Return samples whose first three are anchors."""
    vertices = np.eye(3, 8) + 0.2 * rng.random((3, 8))
    X = np.vstack([vertices, rng.dirichlet(np.ones(3), n_samples) @ vertices])
    return (unit * (X + noise * rng.standard_normal(X.shape))).astype(dtype)


def alternatives(X, k=3, **facts):
    """Return the statement about the first k samples as anchors."""
    fit = fit_of(as_data_matrix(X), np.arange(k), np.arange(k))
    return alternatives_statement(np.asarray(X[:k], dtype=float), fit, **facts)


def uncertain(X, k=3):
    return uncertain_anchors_statement(as_data_matrix(X), np.arange(k), np.arange(len(X)))


@pytest.mark.parametrize("shift", [0.0, 1.0, 100.0])
def test_a_single_anchor_has_no_others_to_be_compared_with(shift, rng):
    # Its distance from the origin says nothing about mixtures whose weights sum to one.
    found = alternatives(simplex(rng) + shift, 1)
    assert (found.verdict, found.number) == (Verdict.NOT_VERIFIABLE, None)
    assert "hull" not in found.sentence
    assert uncertain(simplex(rng) + shift, 1).verdict is Verdict.NOT_VERIFIABLE


@pytest.mark.parametrize("unit", [1e-150, 1e-140, 1e140])
def test_anchors_have_no_units(unit):
    plain, scaled = (simplex(np.random.default_rng(0), noise=0.02, unit=each) for each in (1.0, unit))
    assert alternatives(scaled).number == pytest.approx(alternatives(plain).number, rel=1e-6)
    assert alternatives(scaled).holds
    assert uncertain(scaled).holds


@pytest.mark.parametrize(("n", "k"), [(6, 3), (7, 4), (9, 2), (12, 5)])
def test_samples_that_all_stand_out_as_much_are_alternatives(n, k):
    # All standardized distances are one, in any orientation: which sample is farther is rounding.
    for draw in range(5):
        turn = np.linalg.qr(np.random.default_rng(draw).standard_normal((n, n)))[0]
        found = alternatives(turn, k)
        assert found.quantities["kappa"] == pytest.approx(found.quantities["outside"])
        assert found.verdict is Verdict.FAILS
        assert uncertain(turn, k).verdict is Verdict.NOT_VERIFIABLE  # any direction leads


def test_samples_that_noise_keeps_at_one_distance_are_no_alternatives():
    W = np.eye(3)
    assert alternatives_statement(W, Fit(0.5, 0.5, 0.5)).holds
    for tied in (1.0, 1.0 - 1e-12, 1.0 + 1e-12):
        assert alternatives_statement(W, Fit(1.0, tied, tied)).verdict is Verdict.FAILS
    assert alternatives_statement(W, Fit(0.0, 0.0, 0.0)).number == math.inf


@pytest.mark.parametrize(("spread", "shift"), [(1e-6, 10.0), (1e-7, 100.0), (1.0, 1e6)])
def test_anchors_far_from_the_origin_are_told_apart_as_well(spread, shift, rng):
    assert alternatives(spread * simplex(rng) + shift).holds


def test_anchors_that_single_precision_cannot_tell_apart_are_not_told_apart(rng):
    X = (1e-7 * simplex(rng) + 1.0).astype(np.float32)
    found = alternatives(X, eps=float(np.finfo(np.float32).eps))
    assert found.verdict is Verdict.FAILS
    assert alternatives(np.ones((5, 4)), 2).verdict is Verdict.FAILS
    assert uncertain(np.vstack([X[:1], X[:1], simplex(rng)]), 2).verdict is not Verdict.HOLDS


def test_a_distance_that_is_standardized_is_not_called_the_distance():
    # Each of three unit vectors is sqrt(3/2) away from the hull of the others; standardized, that is one.
    found = alternatives_statement(np.eye(3), Fit(0.0, 0.01, 0.0))
    assert "is 1 away" in found.sentence
    assert "divided by sqrt(1 + ||w||^2)" in found.sentence


def test_samples_that_were_not_compared_are_not_spoken_of(rng):
    n = 40_002
    X = np.full((n, 2), 1 / 3)
    X[:3] = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    X[20_001] = 0.9  # farther out than an anchor, and neither a candidate nor every third one
    found = alternatives(X, n_samples=n)
    assert found.sentence.endswith(
        "Of 40002 samples, the candidates and one in 3 of the others were compared."
    )
    assert "compared" not in alternatives(X[:20_000], n_samples=20_000).sentence


@pytest.mark.parametrize(("m", "n_samples"), [(2, 30), (8, 0)])
def test_noise_that_no_direction_shows_is_not_given_a_size(m, n_samples, rng):
    # Mixtures without noise in a plane, or anchors alone: the smallest variance is that of the mixtures.
    vertices = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) @ np.eye(2, m)
    X = np.vstack([vertices, rng.dirichlet(np.ones(3), n_samples) @ vertices])
    found = uncertain(X)
    assert (found.verdict, found.number) == (Verdict.NOT_VERIFIABLE, None)
    assert "standard deviation" not in found.sentence


def reaching(weight, rng):
    """Return exact mixtures, and a sample with this weight of the first anchor and the rest of the second."""
    X = simplex(rng)
    return np.vstack([X, weight * X[0] + (1.0 - weight) * X[1]])


def test_a_sample_that_is_purer_by_sixteen_percent_is_not_denied(rng):
    # An anchor of weight one has 86% of the purity of a sample of weight 1.16.
    found = uncertain(reaching(1.16, rng))
    assert found.holds
    assert "15%" not in found.sentence
    assert "No anchor is less than 85% as pure as another sample" in found.sentence
    assert uncertain(reaching(1.25, rng)).verdict is Verdict.FAILS


@pytest.mark.parametrize("weight", [1.2, 1.5, 9.0, 1e9])
def test_a_much_purer_sample_is_seen_however_far_it_is(weight):
    assert mixture_probability(np.array([0.5, weight]), 0.0, 1.0) > 0.01


def test_probabilities_that_are_rounding_are_not_given(rng):
    found = uncertain(simplex(rng))
    assert "a probability of less than 0.0001" in found.sentence
    assert "e-" not in found.sentence.split("probability")[1]


def test_noise_in_the_directions_of_the_anchors_alone_is_said_not_to_be_seen(rng):
    X = simplex(rng)
    X[3:] += 0.2 * rng.standard_normal((40, 2)) @ (X[1:3] - X[0])  # none of it is outside their plane
    assert "(if it is alike in all)" in uncertain(X).sentence


def test_identical_anchors_are_uncertain(rng):
    X = simplex(rng)
    found = uncertain(np.vstack([X[0], X[0], X[1:]]))
    assert found.verdict is Verdict.FAILS
    assert found.number == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("silent", [[3], [0], [1, 2], [1, 2, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_features_without_weights_are_called_silent(silent, dtype, unit):
    rng = np.random.default_rng(0)
    H = rng.random((4, 20))
    W = (rng.random((400, 4)) < 0.3) * 1.0
    W[:, silent] = 0.0
    samples = (unit * (W @ H)).astype(dtype).astype(np.float64)
    given = H * [[1.0], [10.0], [0.1], [3.0]]
    found = init_quality(samples, given, eps=float(np.finfo(dtype).eps))
    np.testing.assert_array_equal(found.silent, silent)
    # The features are the true ones, and nothing is said of what rounding shows of the others.
    assert found.level < 1e-4
    assert np.isfinite(found.off_diagonal).all()
    assert not found.usable


def test_silent_features_are_counted_in_words():
    facts = {"off_diagonal": np.zeros((3, 3)), "worst": 0, "threshold": np.zeros(3)}
    one, two = (InitQuality(0.0, silent=np.array(given), **facts).sentence for given in ([2], [0, 2]))
    assert one == "Not a warm start: no sample is decoded to feature 2."
    assert two == "Not a warm start: no sample is decoded to feature 0 (2 such features)."


def test_a_feature_in_many_others_is_not_more_than_they_hold_of_themselves():
    mixing = np.zeros((10, 10))
    mixing[3] = 0.2  # column i contains the shares of the others in feature i
    mixing[3, 3] = 0.0
    found = InitQuality(1.8, mixing, 0, np.empty(0, dtype=int), np.zeros(10))
    assert "themselves" not in found.sentence
    assert found.sentence.endswith("the others contain about 1.8 of feature 3 in all.")
    found = InitQuality(1.8, mixing.T, 3, np.empty(0, dtype=int), np.zeros(10))
    assert found.sentence.endswith("(feature 3 the most), more than of themselves.")
