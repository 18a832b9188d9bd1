"""Parts of warm starts against plain formulas: scales, thresholds, positive parts, quality, words."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.purification.initialization import PROVED, InitQuality, checked_init, init_quality

VALUES = np.array([[2.0, -1.0, 0.0], [0.0, 3.0, -1.0], [1.0, 1.0, -2.0]])


@pytest.mark.parametrize(
    ("level", "silent", "words", "usable"),
    [
        (PROVED, [], "A good warm start", True),
        (1.01 * PROVED, [], "A usable warm start", True),
        (0.99, [], "A usable warm start", True),
        (1.0, [], "Not a warm start: the shares of features in each other sum to up to 1", False),
        (0.01, [4], r"Not a warm start: no sample is decoded to feature 4.", False),
    ],
)
def test_quality_in_words(level, silent, words, usable):
    found = InitQuality(level, np.zeros((5, 5)), np.array(silent, dtype=int), np.zeros(5))
    assert found.sentence.startswith(words)
    assert found.usable is usable


def test_the_mixing_of_an_init_is_estimated():
    rng = np.random.default_rng(3)
    weights = np.where(rng.random((4000, 4)) < 0.2, rng.uniform(0.8, 1.2, (4000, 4)), 0.0)
    H = np.eye(4, 9) + 0.2 * rng.random((4, 9))
    E = np.zeros((4, 4))
    E[1, 2] = 0.3  # feature 2 contains 0.3 of feature 1
    init = (np.eye(4) + E).T @ H
    found = init_quality(weights @ H, init)
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
        (np.ones((2, 3), dtype=complex), InvalidParameterError, "got ndarray"),
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
