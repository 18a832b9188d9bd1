"""Given factors are checked, copied and completed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
)
from nonneg.initializers.custom import custom_init


@pytest.fixture
def W(rng):
    return rng.random((12, 3)) + 0.1


@pytest.fixture
def H(rng):
    return rng.random((3, 8)) + 0.1


def test_both_are_copied(W, H):
    first, second = custom_init(as_data_matrix(W @ H), 3, W=W, H=H)
    np.testing.assert_array_equal(first, W)
    np.testing.assert_array_equal(second, H.T)
    assert second.flags.c_contiguous
    first[:], second[:] = 0.0, 0.0
    assert W.all()
    assert H.all()


def test_lists_and_integers_are_taken(H):
    first, _ = custom_init(as_data_matrix(np.ones((2, 8))), 3, W=[[1, 0, 2], [0, 1, 0]], H=H)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, [[1, 0, 2], [0, 1, 0]])


def test_a_missing_factor_is_made_to_fit(W, H):
    X = W @ H
    left, right = custom_init(as_data_matrix(X), 3, H=H)
    np.testing.assert_array_equal(right, H.T)
    assert np.linalg.norm(X - left @ H) < 0.05 * np.linalg.norm(X)
    left, right = custom_init(as_data_matrix(X), 3, W=W)
    np.testing.assert_array_equal(left, W)
    assert np.linalg.norm(X - W @ right.T) < 0.05 * np.linalg.norm(X)


def test_a_made_row_depends_on_its_own_data_alone(W, H):
    X = W @ H
    whole, _ = custom_init(as_data_matrix(X), 3, H=H)
    alone, _ = custom_init(as_data_matrix(X[4:5]), 3, H=H)
    np.testing.assert_allclose(alone, whole[4:5], rtol=1e-12)


def test_neither_is_an_error(W, H):
    with pytest.raises(InvalidParameterError, match="neither W nor H is given"):
        custom_init(as_data_matrix(W @ H), 3)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"W": np.ones((11, 3))}, "Expected W of shape (n_samples, n_components) = (12, 3), got (11, 3)."),
        ({"W": np.ones((12, 4))}, "= (12, 3), got (12, 4)."),
        ({"H": np.ones((8, 3))}, "Expected H of shape (n_components, n_features) = (3, 8), got (8, 3)."),
        ({"H": np.ones(8)}, "= (3, 8), got (8,)."),
    ],
)
def test_shapes_are_checked(factors, message, W, H):
    with pytest.raises(ShapeError, match=re.escape(message)):
        custom_init(as_data_matrix(W @ H), 3, **factors)


@pytest.mark.parametrize("name", ["W", "H"])
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-0.5, NegativeDataError, r"Expected a nonnegative {0}, got {0}\[2, 1\] = -0.5. Clip it at zero"),
        (np.nan, NonFiniteDataError, r"Expected a finite {0}, got {0}\[2, 1\] = nan"),
        (np.inf, NonFiniteDataError, r"Expected a finite {0}, got {0}\[2, 1\] = inf"),
    ],
)
def test_wrong_entries_are_named(name, value, error, message, W, H):
    factors = {"W": W.copy(), "H": H.copy()}
    factors[name][2, 1] = value
    with pytest.raises(error, match=message.format(name)):
        custom_init(as_data_matrix(W @ H), 3, **factors)


@pytest.mark.parametrize("name", ["W", "H"])
def test_factors_of_zeros_or_text_are_refused(name, W, H):
    shape = {"W": W.shape, "H": H.shape}[name]
    with pytest.raises(InvalidParameterError, match=f"The given {name} is full of zeros"):
        custom_init(as_data_matrix(W @ H), 3, **{name: np.zeros(shape)})
    with pytest.raises(DataTypeError, match=f"Expected {name} to contain real numbers, got dtype complex128"):
        custom_init(as_data_matrix(W @ H), 3, **{name: np.ones(shape, dtype=complex)})


class TestDask:
    @pytest.fixture
    def da(self):
        return pytest.importorskip("dask.array")

    def test_a_chunked_factor_is_cut_like_the_data(self, da, W, H):
        data = as_data_matrix(da.from_array(W @ H, chunks=(5, -1)))
        left, _ = custom_init(data, 3, W=da.from_array(W, chunks=(4, 2)), H=H)
        assert left.chunks[0] == (5, 5, 2)
        np.testing.assert_array_equal(left.compute(), W)

    @pytest.mark.parametrize("value", [-1.0, np.nan])
    def test_wrong_entries_are_counted(self, da, W, H, value):
        data = as_data_matrix(da.from_array(W @ H, chunks=(5, -1)))
        W[3, 1] = value
        with pytest.raises(InvalidDataError, match="finite, nonnegative W, got 1 other"):
            custom_init(data, 3, W=da.from_array(W, chunks=(4, -1)))

    def test_zeros_are_refused(self, da, W, H):
        data = as_data_matrix(da.from_array(W @ H, chunks=(5, -1)))
        with pytest.raises(InvalidParameterError, match="full of zeros"):
            custom_init(data, 3, W=da.zeros((12, 3), chunks=(4, -1)))
