"""Data built against what is said of anchors and of warm starts: none of them makes it false."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import select_anchors
from nonneg.purification.initialization import InitQuality, init_quality


@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize("method", ["merit", "merit-exact"])
def test_no_number_of_a_certificate_is_nan(method, unit):
    # The relative gap of an objective of zero was NaN in a statement that held.
    X = unit * np.vstack([np.eye(3), np.eye(3), np.full((2, 3), 1 / 3)])
    params = {"lam": 0.0} if method == "merit" else {}
    found = select_anchors(X, 3, method=method, max_iter=5, method_params=params)
    for statement in found.certificate:
        values = [statement.number, statement.threshold, *statement.quantities.values()]
        assert not any(isinstance(value, float) and np.isnan(value) for value in values), statement.name


def test_no_start_from_zero_is_claimed_of_a_working_set(rng):
    found = select_anchors(rng.random((30, 5)), 3, method="merit-exact")
    assert not any("from zero" in statement.sentence for statement in found.certificate)


@pytest.mark.parametrize("draw", range(4))
def test_a_number_that_noise_hides_is_not_called_clear(draw):
    X = np.random.default_rng(draw).random((120, 6))
    statement = select_anchors(X, method="spa").certificate["number-of-anchors"]
    assert not statement.holds
    assert "clear" not in statement.sentence


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
    facts = {"off_diagonal": np.zeros((3, 3)), "threshold": np.zeros(3)}
    one, two = (InitQuality(0.0, silent=np.array(given), **facts).sentence for given in ([2], [0, 2]))
    assert one == "Not a warm start: no sample is decoded to feature 2."
    assert two == "Not a warm start: no sample is decoded to feature 0 (2 such features)."


def test_a_feature_in_many_others_is_not_more_than_they_hold_of_themselves():
    mixing = np.zeros((10, 10))
    mixing[3] = 0.2  # column i contains the shares of the others in feature i
    mixing[3, 3] = 0.0
    found = InitQuality(1.8, mixing, np.empty(0, dtype=int), np.zeros(10))
    assert "themselves" not in found.sentence
    assert "sum to up to 1.8" in found.sentence
