"""Sums and products over the rows of frames: the compiled core and array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._threads import threads
from nonneg.kernels import frame_rows


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("batch", "n_frames", "m"), [(1, 1, 1), (2, 91, 50), (3, 700, 7)])
def test_the_door_gives_the_array_code(batch, n_frames, m, dtype, rng):
    counts = rng.integers(1, 5, n_frames)
    counts[0] = 3  # more rows than frames
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    X = rng.standard_normal((batch, int(counts.sum()), m)).astype(dtype)
    weights = rng.random((batch, n_frames, m)).astype(dtype)
    found = []
    for n_threads in (1, 3):
        with threads(n_threads):
            sums = frame_rows.sums_of_squares(X, n_frames, offsets, counts)
            found.append((sums, frame_rows.weighted_rows(X, weights, counts)))
    # Without counts the array code adds the rows.
    expected = frame_rows.sums_of_squares(X, n_frames, offsets), X * np.repeat(weights, counts, axis=1)
    for one, three, known in zip(*found, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, three)
        np.testing.assert_allclose(one, known, rtol=1e-13 if dtype == np.float64 else 1e-6)


def test_realizations_one_after_the_other(rng):
    X, weights = rng.standard_normal((2, 3 * 7, 5)), rng.random((2, 7, 5))
    parts = X.reshape(2, 3, 7, 5)
    assert np.allclose(frame_rows.sums_of_squares(X, 7), (parts**2).sum(axis=1))
    assert np.allclose(frame_rows.weighted_rows(X, weights), (parts * weights[:, None]).reshape(X.shape))
    one = X[:, :7]
    assert np.array_equal(frame_rows.sums_of_squares(one, 7), one * one)
