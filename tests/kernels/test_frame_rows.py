"""Sums and products over the rows of frames: compiled, in Triton, and in array code."""

from __future__ import annotations

import numpy as np

from nonneg.kernels import frame_rows
from nonneg.kernels.frame_rows import array_api
from nonneg.kernels.frame_rows import numba as compiled


def test_compiled_is_the_array_code(rng):
    counts = rng.integers(1, 5, 91)
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    X, weights = rng.standard_normal((2, int(counts.sum()), 50)), rng.random((2, 91, 50))
    assert compiled.is_supported(X, weights)
    V = frame_rows.sums_of_squares(X, 91, offsets, counts)
    assert np.allclose(V, array_api.sums_of_squares(X, 91, offsets), rtol=1e-13)
    expected = array_api.weighted_rows(X, weights, counts)
    assert np.allclose(frame_rows.weighted_rows(X, weights, offsets, counts), expected, rtol=1e-13)
    assert np.allclose(expected, X * np.repeat(weights, counts, axis=1))


def test_realizations_one_after_the_other(rng):
    X, weights = rng.standard_normal((2, 3 * 7, 5)), rng.random((2, 7, 5))
    parts = X.reshape(2, 3, 7, 5)
    assert np.allclose(frame_rows.sums_of_squares(X, 7), (parts**2).sum(axis=1))
    assert np.allclose(frame_rows.weighted_rows(X, weights), (parts * weights[:, None]).reshape(X.shape))
    one = X[:, :7]
    assert np.array_equal(frame_rows.sums_of_squares(one, 7), one * one)
