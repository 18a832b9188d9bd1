"""Dense entries of every dtype and layout."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import plain

from nonneg import factorize
from nonneg.data import as_data_matrix


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8, bool, np.float16, ">f8"])
def test_other_numbers_are_cast_to_float64_once(dtype, rng):
    X = rng.integers(0, 2, size=(6, 5)).astype(dtype)
    data = as_data_matrix(X)
    assert data.dtype == np.float64
    assert data.total() == X.sum(dtype=float)
    assert X.dtype == np.dtype(dtype)


def test_float32_stays_float32_and_is_summed_in_float64():
    X = np.full((1000, 1000), 0.1, dtype=np.float32)
    data = as_data_matrix(X)
    assert data.dtype == np.float32
    assert data.array is X
    exact = 1e6 * float(np.float32(0.1))
    assert data.total() == pytest.approx(exact, rel=1e-12)
    assert data.squared_norm() == pytest.approx(1e6 * float(np.float32(0.1)) ** 2, rel=1e-12)


def test_float32_of_any_namespace_stays_and_integers_are_cast(xp):
    assert str(as_data_matrix(xp.ones((3, 2), dtype=xp.float32)).dtype).endswith("float32")
    data = as_data_matrix(xp.ones((3, 2), dtype=xp.int64))
    assert str(data.dtype).endswith("float64")
    assert data.total() == 6.0


def test_a_read_only_file_on_disk_is_read_without_a_copy(tmp_path, low_rank):
    np.save(tmp_path / "x.npy", low_rank)
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(as_data_matrix(X).array, X)
    result = factorize(X, 3, max_iter=5)
    expected = factorize(low_rank, 3, max_iter=5)
    np.testing.assert_array_equal(result.W, expected.W)


def test_layout_does_not_matter(low_rank):
    expected = factorize(low_rank, 3, max_iter=10)
    wide = np.zeros((120, 80))
    wide[::2, ::2] = low_rank
    for X in (np.asfortranarray(low_rank), wide[::2, ::2], low_rank[::-1, ::-1][::-1, ::-1]):
        result = factorize(X, 3, max_iter=10)
        np.testing.assert_allclose(result.W, expected.W, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(result.H, expected.H, rtol=1e-9, atol=1e-10)


def test_given_factors_and_data_are_left_alone(rng, low_rank):
    W, H = rng.random((60, 3)), rng.random((3, 40))
    copies = low_rank.copy(), W.copy(), H.copy()
    factorize(low_rank, 3, W=W, H=H, max_iter=3)
    for array, copy in zip((low_rank, W, H), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("solver", ["hals", "anls"])
def test_read_only_arrays_are_accepted_everywhere(rng, low_rank, solver):
    arrays = [low_rank, rng.random((60, 3)), rng.random((3, 40)), rng.random(60), rng.random((60, 40)) < 0.9]
    for array in arrays:
        array.flags.writeable = False
    X, W, H, weights, mask = arrays
    options = {"mask": mask} if solver == "hals" else {}
    result = factorize(X, 3, W=W, H=H, sample_weight=weights, solver=solver, max_iter=3, **options)
    assert np.isfinite(result.loss)


def test_a_frame_and_nested_lists_are_taken(low_rank):
    pandas = pytest.importorskip("pandas")
    expected = factorize(low_rank, 2, max_iter=3)
    for X in (pandas.DataFrame(low_rank), low_rank.tolist()):
        np.testing.assert_allclose(plain(factorize(X, 2, max_iter=3).H), expected.H, rtol=1e-12)
