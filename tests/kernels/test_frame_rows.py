"""Sums and products over the rows of frames: compiled, in Triton, and in array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels import frame_rows
from nonneg.kernels.frame_rows import array_api, triton
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


def test_numpy_frames_of_unequal_length_are_left_to_compiled_code(rng, monkeypatch):
    X, weights = rng.standard_normal((1, 182, 50)), rng.random((1, 91, 50))
    assert frame_rows._compiled(X) is compiled
    assert frame_rows._compiled(X.astype(np.float32)) is None
    assert frame_rows._compiled([X]) is None
    offsets, counts = np.arange(0, 182, 2), np.full(91, 2)
    monkeypatch.setattr(compiled, "sums_of_squares", lambda *given: "sums" if given[0] is X else None)
    monkeypatch.setattr(compiled, "weighted_rows", lambda *given: "rows" if given[1] is weights else None)
    assert frame_rows.sums_of_squares(X, 91, offsets, counts) == "sums"
    assert frame_rows.weighted_rows(X, weights, offsets, counts) == "rows"


def test_what_is_supported(rng):
    X = rng.standard_normal((1, 100, 50))
    assert compiled.is_supported(X)
    assert not compiled.is_supported(X.astype(np.float32))
    assert not compiled.is_supported(X[:, :10])
    assert not compiled.is_supported(X[:, ::2])
    assert not triton.is_supported(X)


@pytest.mark.torch
@pytest.mark.parametrize(("rank", "n_frames", "m"), [(2, 3, 4), (10, 50, 10), (3, 151, 200)])
def test_sums_of_squares_in_triton(rank, n_frames, m, rng, torch, device):
    X = torch.tensor(rng.standard_normal((5, rank * n_frames, m)), device=device)
    assert triton.is_supported(X)
    expected = (X.reshape(5, rank, n_frames, m) ** 2).sum(1)
    np.testing.assert_allclose(triton.sums_of_squares(X, n_frames).cpu(), expected.cpu(), rtol=1e-13)
