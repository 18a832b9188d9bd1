"""The statements about a purification, from numbers given by hand: thresholds, quantities and words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nonneg.certificates.certificate import Verdict
from nonneg.metrics import mixing
from nonneg.purification.certificate import (
    ALLOWED_CORRELATION,
    ALLOWED_IMBALANCE,
    ALLOWED_MIXING,
    CONSISTENT,
    WeightConstants,
    _mixing_of_halves,
    _verdict,
    balancing_statement,
    conditioning_statement,
    correlation_statement,
    decode_statement,
    halves_statement,
    noise_statement,
    purification_certificate,
    warm_start_statement,
    weight_constants,
    weights_statement,
)
from nonneg.purification.decode import Decoder
from nonneg.purification.initialization import InitQuality
from nonneg.purification.moments import Moments


def constants(imbalance):
    return WeightConstants(C1=3.0, c2=2.0, C2=2.0 * imbalance, scale=1.0)


STATEMENTS = {
    "warm-start": (lambda number: warm_start_statement(number, "", silent=0), ALLOWED_MIXING),
    "decode-consistency": (lambda number: decode_statement(number, 7), CONSISTENT),
    "mixing-on-halves": (lambda number: halves_statement(number, 0.1, 0.2), ALLOWED_MIXING),
    "weight-moments": (lambda number: weights_statement(constants(number), 5), ALLOWED_IMBALANCE),
    "noise-level": (noise_statement, 1.0),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_holds_up_to_its_threshold(name):
    statement, threshold = STATEMENTS[name]
    for number, verdict in ((threshold, Verdict.HOLDS), (1.001 * threshold, Verdict.FAILS)):
        found = statement(number)
        assert (found.name, found.number, found.threshold) == (name, number, threshold)
        assert found.verdict is verdict


def test_what_is_not_known_is_not_verified():
    assert _verdict(math.nan, 1.0) is Verdict.NOT_VERIFIABLE
    found = halves_statement(math.nan, 0.0, 0.0)
    assert (found.number, found.threshold, found.verdict) == (None, ALLOWED_MIXING, Verdict.NOT_VERIFIABLE)


def test_silent_features_fail_whatever_the_mixing():
    found = warm_start_statement(0.01, "so", silent=1)
    assert (found.verdict, found.quantities, found.sentence) == (Verdict.FAILS, {"silent_features": 1}, "so")


def test_quantities_and_numbers_in_words():
    assert decode_statement(0.031, 7).quantities == {"n_samples": 7}
    assert "removed 0.031 of the squared values A^+ y of 7 samples" in decode_statement(0.031, 7).sentence
    halves = halves_statement(0.05, 0.1, 0.2)
    assert halves.quantities == {"diagonal_off_one": 0.1, "outside": 0.2}
    assert "||E||_1 = 0.05 and Sigma within 0.1 of the identity; 0.2 of a feature" in halves.sentence
    assert "below 0.3 of a typical large one" in noise_statement(0.3).sentence
    moments = weights_statement(constants(1.5), 5)
    assert moments.quantities == {"C1": 3.0, "c2": 2.0, "C2": 3.0, "density": 27 / (4 * 5)}
    assert "C2 / c2 = 1.5 " in moments.sentence


@pytest.mark.parametrize(("norm", "allowed"), [(2.0, 1 / 40), (0.5, 1 / 30), (1.5, 1 / 30)])
def test_the_unit_of_noise_is_the_smaller_one_of_two(norm, allowed):
    found = conditioning_statement(norm, 20, 30)
    assert found.quantities["noise_unit"] == pytest.approx(allowed)
    assert (found.number, found.threshold, found.verdict) == (norm, None, Verdict.NOT_VERIFIABLE)


def test_constants_of_weights_are_their_moments():
    weights = np.array([[0.0, 4.0, 1.0], [2.0, 0.0, 1.0], [1.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    found = weight_constants(weights)
    units = weights / 4.0
    squares = (units**2).mean(axis=0)
    assert found == pytest.approx((3 * units.mean(axis=0).max(), 3 * squares.min(), 3 * squares.max(), 4.0))
    assert found.imbalance == pytest.approx(squares.max() / squares.min())
    assert found.density(3) == pytest.approx(found.C1**3 / (found.c2**2 * 3))
    silent = weight_constants(weights * [1.0, 1.0, 0.0])
    assert silent.imbalance == silent.density(3) == math.inf
    assert weight_constants(np.zeros((2, 3))).scale == 1.0


@pytest.mark.parametrize("n_samples", [3, 50])
def test_correlations_are_those_of_numpy_beyond_sampling_error(n_samples):
    rng = np.random.default_rng(n_samples)
    shared = rng.random((n_samples, 1))
    weights = np.hstack([shared + 0.3 * rng.random((n_samples, 3)), np.ones((n_samples, 1))])
    R = np.corrcoef(weights[:, :3].T)
    squares = np.array([R[0, 1], R[0, 2], R[1, 2]]) ** 2
    found = correlation_statement(weights)
    assert found.number == pytest.approx(math.sqrt(max(squares.mean() - 1 / (n_samples - 1), 0)))
    assert found.quantities == {"largest": pytest.approx(math.sqrt(squares.max())), "n_samples": n_samples}
    assert found.holds is (found.number <= ALLOWED_CORRELATION)


def test_two_weights_and_three_samples_are_needed_for_a_correlation():
    rng = np.random.default_rng(0)
    weights = rng.random((3, 2))
    assert correlation_statement(weights).number is not None
    for few in (weights[:2], weights * [1.0, 0.0]):
        found = correlation_statement(few)
        assert (found.number, found.verdict) == (None, Verdict.NOT_VERIFIABLE)
        assert found.threshold == ALLOWED_CORRELATION


@pytest.mark.parametrize(("level", "threshold"), [(0.5, -0.05), (0.02, -0.01)])
def test_balancing_allows_a_tenth_of_the_level_below_zero(level, threshold):
    held, failed = (balancing_statement(share * threshold, level, 3.0) for share in (1.0, 1.01))
    assert (held.verdict, failed.verdict) == (Verdict.HOLDS, Verdict.FAILS)
    assert held.threshold == pytest.approx(threshold)
    assert held.quantities == {"level": level, "ratio": 3.0}


def moments_like(samples, weights):
    x, y = weights - weights.mean(axis=0), samples - samples.mean(axis=0)
    n = weights.shape[1]
    return Moments(
        float(len(samples)), weights.mean(axis=0), samples.mean(axis=0), x.T @ x, x.T @ y, np.zeros(n),
        np.zeros(n), (weights > 0).sum(axis=0).astype(float),
    )  # fmt: skip


@pytest.mark.parametrize("balancing", [None, np.array([1.0, 0.25])])
def test_the_certificate_of_a_run_is_made_of_plain_sums(balancing, rng):
    H, inverse = rng.random((2, 5)), rng.standard_normal((2, 5))
    samples = rng.standard_normal((30, 5))
    decoder = Decoder(inverse, np.array([0.2, 0.5]), "unshifted")
    E = np.array([[0.0, -0.2], [0.1, 0.0]])
    quality = InitQuality(0.3, E, 0, np.array([], dtype=int), decoder.threshold)
    found = purification_certificate(H, decoder, samples, None, quality, balancing, 0.05)
    values = samples @ inverse.T
    kept = np.where(values > decoder.threshold, values, 0.0)
    removed = np.sum(np.where(values > decoder.threshold, 0.0, values) ** 2) / np.sum(values**2)
    assert found["decode-consistency"].number == pytest.approx(removed)
    assert found["decode-consistency"].quantities == {"n_samples": 30}
    assert found["conditioning"].number == pytest.approx(np.abs(inverse).sum(axis=1).max())
    assert found["mixing-on-halves"].verdict is Verdict.NOT_VERIFIABLE
    assert found["weight-correlation"].number == correlation_statement(kept).number
    assert found["noise-level"].number == 0.05
    assert ("balancing" in found) == (balancing is not None)
    if balancing is not None:
        expected = balancing_statement(-0.2, 0.3, 4.0)
        assert found["balancing"] == expected
    nothing = purification_certificate(H, decoder, 0.0 * samples, None, quality, None, 0.0)
    assert nothing["decode-consistency"].number == 0.0


def test_two_halves_are_compared_by_their_regressions(rng):
    H = np.eye(2, 4)
    weights = rng.random((2, 20, 2))
    features = np.array([[1.0, 0.2, 0.0, 0.0], [0.0, 1.0, 0.3, 0.0]])
    other = features + np.array([[0.0, 0.1, 0.0, 0.05], [0.2, 0.0, 0.0, 0.0]])
    halves = tuple(
        moments_like(part @ rows, part) for part, rows in zip(weights, (features, other), strict=True)
    )
    found = _mixing_of_halves(H, halves)
    expected = mixing(features, other)
    assert found.number == pytest.approx(expected.e_norm)
    outside = (np.abs(expected.outside).sum(axis=0) / np.abs(features).sum(axis=1)).max()
    diagonal = np.abs(expected.diagonal - 1.0).max()
    assert found.quantities == pytest.approx({"diagonal_off_one": diagonal, "outside": outside})
    # A half without samples, or whose regression is not finite, says nothing.
    for lost in (halves[0].scaled(0.0), replace(halves[0], cross=np.full((2, 4), np.nan))):
        for pair in ((lost, halves[1]), (halves[1], lost)):
            assert _mixing_of_halves(H, pair).verdict is Verdict.NOT_VERIFIABLE
    assert _mixing_of_halves(H, tuple(half.scaled(0.01) for half in halves)).number == pytest.approx(
        expected.e_norm
    )
