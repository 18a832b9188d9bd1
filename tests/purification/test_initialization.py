"""Parts of warm starts against plain formulas: scales, thresholds, positive parts, quality, words."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError, UnknownNameError
from nonneg.purification import perturbed_features
from nonneg.purification.decode import Decoder, decode, initial_threshold, weight_scales
from nonneg.purification.initialization import (
    HOPELESS,
    PROVED,
    InitQuality,
    _check_rank,
    checked_init,
    has_nonnegative_mean,
    in_unit_weights,
    init_quality,
    initial_features,
    positive_part,
    studied_init,
)
from nonneg.purification.samples import spread_rows

VALUES = np.array([[2.0, -1.0, 0.0], [0.0, 3.0, -1.0], [1.0, 1.0, -2.0]])


def test_a_typical_weight_is_the_mean_weighted_by_squares():
    expected = [(8 + 1) / (4 + 1), (27 + 1) / (9 + 1), 0.0]
    np.testing.assert_allclose(weight_scales(VALUES), expected)
    np.testing.assert_allclose(weight_scales(1e-200 * VALUES), 1e-200 * np.array(expected))


@pytest.mark.parametrize(("lowest", "share"), [(0.25, 0.6), (0.0, None)])
def test_thresholds_are_three_deviations_above_the_median(lowest, share):
    rng = np.random.default_rng(0)
    # Much spread meets the upper bound, little spread neither of them.
    values = rng.random((40, 2)) if share else np.where(rng.random((40, 2)) < 0.1, 1.0, 0.03)
    scales = weight_scales(values)
    units = values / scales
    middle = np.median(units)
    wanted = middle + 3 * 1.4826 * np.median(np.abs(units - middle))
    assert bool(wanted > 0.6) is (share is not None)
    np.testing.assert_allclose(initial_threshold(values, lowest), (share or wanted) * scales)
    np.testing.assert_allclose(initial_threshold(values, 0.5), max(share or wanted, 0.5) * scales)
    np.testing.assert_array_equal(initial_threshold(-values), np.zeros(2))


@pytest.mark.parametrize("rule", ["unshifted", "shifted", "linear"])
def test_weights_are_values_above_the_threshold(rule):
    rng = np.random.default_rng(1)
    X, inverse, threshold = (
        rng.standard_normal((9, 4)),
        rng.standard_normal((3, 4)),
        np.array([0.5, 0.0, 1.0]),
    )
    values = X @ inverse.T
    expected = {
        "unshifted": np.where(values > threshold, values, 0.0),
        "shifted": np.maximum(values - threshold, 0.0),
        "linear": values,
    }[rule]
    np.testing.assert_allclose(decode(as_data_matrix(X), Decoder(inverse, threshold, rule)), expected)


def test_features_are_scaled_by_their_typical_weights():
    rng = np.random.default_rng(2)
    H = rng.random((3, 8)) + np.eye(3, 8)
    weights = rng.random((50, 3)) * [1.0, 20.0, 0.0]
    scales = weight_scales(weights)
    found = in_unit_weights(weights @ H, H)
    np.testing.assert_allclose(found[:2], H[:2] * scales[:2, None], rtol=1e-6)
    np.testing.assert_allclose(weight_scales(weights @ H @ np.linalg.pinv(found))[:2], 1.0, rtol=1e-6)
    # A feature that no sample shows stays as long as it is, but for rounding of its weights.
    np.testing.assert_array_equal(in_unit_weights(np.zeros((4, 8)), H), H)


@pytest.mark.parametrize("sparse", [False, True])
def test_negative_entries_become_zeros_with_the_weights_of_the_rows(sparse):
    X, weights = VALUES - 0.5, np.array([1.0, 2.0, 0.5])
    data = as_data_matrix(sp.csr_array(X) if sparse else X, weights=weights)
    found = positive_part(data)
    np.testing.assert_allclose(found.dense_rows(0, 3), np.maximum(X, 0.0))
    np.testing.assert_array_equal(found.weights, weights)
    assert positive_part(found) is found
    zeros = as_data_matrix(np.abs(VALUES))
    assert positive_part(zeros) is zeros


@pytest.mark.parametrize(
    ("mean", "spread", "expected"),
    [
        ([1.0, 1.0], 0.0, True),
        ([1.0, -0.2], 0.0, True),  # 0.04 of 1.04
        ([1.0, -0.3], 0.0, False),  # 0.09 of 1.09
        ([-1.0, -1.0], 0.0, False),
        ([0.0, 0.0], 0.0, False),
        ([1.0, 1.0], 2.0, True),  # 2 above 4 x 8 / 100
        ([0.3, 0.3], 2.0, False),  # 0.18 below it
        ([2.0, -0.5], 2.0, True),  # 0.25 below 0.05 x 4.25 + 0.08
        ([2.0, -0.6], 2.0, False),
    ],
)
def test_the_mean_sample_is_judged_by_its_standard_error(mean, spread, expected):
    signs = np.where(np.arange(100) % 2, 1.0, -1.0)[:, None]
    assert has_nonnegative_mean(np.array(mean) + spread * signs) is expected


@pytest.mark.parametrize(
    ("level", "silent", "words", "usable"),
    [
        (PROVED, [], "A good warm start", True),
        (1.01 * PROVED, [], "A usable warm start", True),
        (HOPELESS, [], "A usable warm start", True),
        (1.01 * HOPELESS, [], "Not a warm start: decoded with these features", False),
        (0.01, [4], r"Not a warm start: no sample is decoded to feature 4.", False),
    ],
)
def test_quality_in_words(level, silent, words, usable):
    found = InitQuality(level, np.zeros((5, 5)), 2, np.array(silent, dtype=int), np.zeros(5))
    assert found.sentence.startswith(words)
    assert found.usable is usable
    if "feature 2" in found.sentence:
        assert "the most" in found.sentence


def test_the_mixing_of_an_init_is_estimated():
    rng = np.random.default_rng(3)
    weights = np.where(rng.random((4000, 4)) < 0.2, rng.uniform(0.8, 1.2, (4000, 4)), 0.0)
    H = np.eye(4, 9) + 0.2 * rng.random((4, 9))
    E = np.zeros((4, 4))
    E[1, 2] = 0.3  # feature 2 contains 0.3 of feature 1
    init = (np.eye(4) + E).T @ H
    found = init_quality(weights @ H, init)
    assert found.worst == 2
    assert found.level == pytest.approx(0.3, abs=0.08)
    assert found.off_diagonal[1, 2] == pytest.approx(0.3, abs=0.08)
    assert np.abs(found.off_diagonal - E).max() < 0.08
    assert not np.diagonal(found.off_diagonal).any()
    assert len(found.silent) == 0
    # The units of the features do not matter.
    scaled = init_quality(weights @ H, init * np.array([1.0, 10.0, 0.1, 3.0])[:, None])
    assert scaled.level == pytest.approx(found.level, rel=1e-6)
    np.testing.assert_array_equal(init_quality(weights @ H, H * [[1], [1], [-1], [1]]).silent, [2])


@pytest.mark.parametrize(
    ("init", "error", "words"),
    [
        ("nmf", InvalidParameterError, r"one feature per row, got 'nmf'\."),
        (np.ones((2, 3), dtype=complex), InvalidParameterError, "got ndarray of complex128"),
        ([["a", "b", "c"]], InvalidParameterError, "got list"),
        (np.ones(3), ShapeError, r"shape \(n_components, 3\).*got \(3,\)"),
        (np.ones((0, 3)), ShapeError, r"got \(0, 3\)"),
        (np.ones((2, 2)), ShapeError, r"got \(2, 2\)"),
        (np.ones((4, 3)), ShapeError, "4 features of length 3 cannot be independent.*Use at most 3 features"),
        (np.array([[1.0, 2.0, np.inf]]), NonFiniteDataError, r"entry \[0, 2\] is inf"),
        (
            np.diag([1.0, 0.0, 0.0]),
            InvalidParameterError,
            r"Feature 1 of init is all zeros \(2 such features\)",
        ),
        ([[1, 2, 3], [2, 4, 6]], InvalidParameterError, "linearly dependent: feature [01] is a combination"),
    ],
)
def test_features_that_are_refused(init, error, words):
    with pytest.raises(error, match=words):
        checked_init(init, 3)


def test_features_that_are_taken_are_copied():
    H = np.eye(3)
    for given in (H, H.tolist(), sp.csr_array(H), H.astype(int)):
        found = checked_init(given, 3)
        np.testing.assert_array_equal(found, H)
        assert found is not given
        assert found.dtype == np.float64


def test_initial_features_fit_the_number_of_components():
    data = as_data_matrix(np.random.default_rng(4).random((5, 3)))
    np.testing.assert_array_equal(initial_features(data, 3, np.eye(3), 0, None), np.eye(3))
    with pytest.raises(InvalidParameterError, match="init has 3 features, but n_components is 2"):
        initial_features(data, 2, np.eye(3), 0, None)
    with pytest.raises(InvalidParameterError, match="n_components=4 is larger than the rank"):
        initial_features(data, 4, "nmf", 0, None)
    with pytest.raises(UnknownNameError):
        initial_features(data, 2, "nothing", 0, None)
    assert initial_features(data, 3, "nmf", 0, None).shape == (3, 3)
    assert [studied_init(data, k) for k in (2, 3, 4)] == ["nndsvda", "nndsvda", "random"]


def test_a_rank_that_is_too_low_is_counted():
    sizes = np.array([4.0, 2.0, 1e-9, 1e-11])
    _check_rank(sizes, 3, "auto")
    with pytest.raises(InvalidParameterError, match=r"init='auto' found 3 dimensions .* n_components=4"):
        _check_rank(sizes, 4, "auto")


@pytest.mark.parametrize(("n_rows", "most"), [(7, 3), (7, 7), (7, 20), (100, 11), (5, 1)])
def test_rows_are_spread_evenly(n_rows, most):
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    chosen = np.linspace(0, n_rows - 1, min(most, n_rows)).astype(int)
    np.testing.assert_array_equal(spread_rows(as_data_matrix(X), most), X[chosen])


@pytest.mark.parametrize("signs", ["both", "positive", "negative"])
@pytest.mark.parametrize(
    ("level", "diagonal", "outside"), [(0.3, 0.0, 0.0), (0.0, 0.2, 0.0), (0.2, 0.1, 0.5)]
)
def test_perturbed_features_have_the_mixing_that_was_asked_for(signs, level, diagonal, outside):
    rng = np.random.default_rng(5)
    H = rng.random((4, 9)) + np.eye(4, 9)
    found = perturbed_features(H, level, signs=signs, diagonal=diagonal, outside=outside, rng=0)
    mixed = (found @ np.linalg.pinv(H)).T
    E = mixed - np.diag(np.diagonal(mixed))
    size = max(np.abs(E).sum(axis=0).max(), np.abs(E).sum(axis=1).max())
    assert size == pytest.approx(level, abs=1e-12)
    assert np.abs(np.diagonal(mixed) - 1).max() <= diagonal + 1e-12
    assert bool(np.abs(np.diagonal(mixed) - 1).max() > 0.01) is (diagonal > 0)
    rest = np.abs(found - mixed.T @ H).sum(axis=1)
    np.testing.assert_allclose(rest, outside, atol=1e-11)
    if level:
        entries = E[~np.eye(4, dtype=bool)]
        expected = {"both": (True, True), "positive": (True, False), "negative": (False, True)}[signs]
        assert ((entries > 1e-9).any(), (entries < -1e-9).any()) == expected


@pytest.mark.parametrize(
    "options",
    [{"level": -0.1}, {"level": np.inf}, {"level": np.nan}, {"diagonal": -0.1}, {"diagonal": 1.0},
     {"outside": -0.1}, {"outside": np.inf}],
)  # fmt: skip
def test_perturbations_that_are_none_are_refused(options):
    with pytest.raises(InvalidParameterError, match="Expected level >= 0"):
        perturbed_features(np.eye(2, 3), **options)


def test_nothing_lies_outside_of_all_directions():
    np.testing.assert_allclose(perturbed_features(np.eye(3), 0.0), np.eye(3))
    with pytest.raises(InvalidParameterError, match="3 features of length 3 leave nothing outside"):
        perturbed_features(np.eye(3), 0.0, outside=0.1)
    assert perturbed_features(np.eye(2, 3), 0.0, outside=0.1, rng=0).shape == (2, 3)
    with pytest.raises(ShapeError, match="one per row"):
        perturbed_features(np.ones(3))
    np.testing.assert_allclose(perturbed_features([[2.0, 1.0]], 0.5), [[2.0, 1.0]])  # one has no others
