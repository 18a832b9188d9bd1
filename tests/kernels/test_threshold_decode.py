"""Sums over decoded weights: all implementations and plain NumPy agree."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import _threads
from nonneg.kernels import threshold_decode as kernel
from nonneg.kernels.threshold_decode import decode_block, decoded


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(0)
    X, inverse = rng.normal(size=(999, 30)), rng.normal(size=(4, 30))
    return X, inverse, rng.random(4), rng.random(4)


@pytest.mark.parametrize("rule", ["unshifted", "shifted", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_implementations_and_plain_sums_agree(inputs, rule, weighted, monkeypatch):
    X, inverse, threshold, reference = inputs
    weights = np.random.default_rng(1).random(999) if weighted else None
    sums = kernel.decoded_sums(X, inverse, threshold, reference, rule, weights)
    values = X @ inverse.T
    W = {
        "unshifted": np.where(values > threshold, values, 0),
        "shifted": np.maximum(values - threshold, 0),
        "linear": values,
    }[rule]
    np.testing.assert_array_equal(decoded(values, threshold, rule), W)
    left = np.hstack([W - reference, np.ones((999, 1))])
    twin, facts = decode_block(values, threshold, reference, rule, weights)
    np.testing.assert_array_equal(twin, left)
    scale = np.ones(999) if weights is None else weights
    np.testing.assert_allclose(sums.gram, (left * scale[:, None]).T @ left, atol=1e-10)
    np.testing.assert_allclose(sums.cross, (left * scale[:, None]).T @ X, atol=1e-10)
    kept = values > threshold if rule != "linear" else np.ones_like(values)
    expected = (scale @ (values < 0), scale @ np.minimum(values, 0) ** 2, scale @ kept)
    monkeypatch.setattr(kernel, "core", lambda: None)
    plainly = kernel.decoded_sums(X, inverse, threshold, reference, rule, weights)
    for one, other in zip(sums, plainly, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    for one, other, plain in zip(sums[2:], facts, expected, strict=True):
        np.testing.assert_allclose(one, plain)
        np.testing.assert_allclose(other, plain)


def test_threads_and_precision(inputs):
    X, inverse, threshold, reference = inputs
    big = np.tile(X, (40, 1))
    with _threads.threads(1):
        one = kernel.decoded_sums(big, inverse, threshold, reference, "unshifted", None)
    with _threads.threads(3):
        three = kernel.decoded_sums(big, inverse, threshold, reference, "unshifted", None)
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)
    single = kernel.decoded_sums(
        big.astype(np.float32), inverse, threshold.astype(np.float32), reference, "unshifted", None
    )
    assert single.cross.dtype == np.float64
    np.testing.assert_allclose(single.cross, one.cross, rtol=1e-2, atol=2.0)


@pytest.mark.parametrize("n_rows", [0, 1, 17, 9001])
def test_any_number_of_rows_gives_the_array_code(inputs, n_rows, monkeypatch):
    _, inverse, threshold, reference = inputs
    X = np.asfortranarray(np.random.default_rng(2).normal(size=(n_rows, 30)))
    sums = kernel.decoded_sums(X, inverse, threshold, reference, "shifted", None)
    monkeypatch.setattr(kernel, "core", lambda: None)
    known = kernel.decoded_sums(X, inverse, threshold, reference, "shifted", None)
    for one, other in zip(sums, known, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-9)
