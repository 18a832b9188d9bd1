"""Pixels of images against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import generic_filter

from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import pixels as module
from nonneg.applications.hyperspectral.pixels import ImagePixels, _checked_mask, _working_type
from nonneg.applications.hyperspectral.proposals import window_means
from nonneg.exceptions import (
    DataChangedWarning,
    InvalidDataError,
    NegativeDataError,
    NonFiniteDataError,
    NonnegWarning,
    ShapeError,
)
from nonneg.io.cube import Cube


@pytest.fixture
def values(rng):
    return 0.1 + rng.random((5, 4, 6))


def test_pixels_in_the_bands_that_count(values, monkeypatch):
    cube = Cube(values, bands=np.isin(np.arange(6), [0, 2, 3]), scale=10.0)
    mask = np.ones((5, 4), dtype=bool)
    mask[1, 2] = False
    expected = values[mask][:, [0, 2, 3]] / 10.0
    for size in (1, 1 << 24):
        monkeypatch.setattr(module, "BLOCK_BYTES", size)
        found = ImagePixels(cube, mask, 0.05)
        np.testing.assert_allclose(found.gathered(), expected)
        blocks = list(found.blocks())
        assert len(blocks) == (5 if size == 1 else 1)
        np.testing.assert_array_equal(
            np.concatenate([block.pixels for block in blocks]), np.flatnonzero(mask)
        )
        np.testing.assert_allclose(
            found.at(np.array([5, 13])), values.reshape(20, 6)[[5, 13]][:, [0, 2, 3]] / 10
        )
        assert (found.smallest, found.largest) == pytest.approx((expected.min(), expected.max()))
    plain = ImagePixels(Cube(values), None, 0.05).gathered()
    assert np.shares_memory(plain, values)


def test_entries_below_zero_are_counted_and_clipped(values):
    values[0, 0, :2], values[3, 3, 5] = -0.01, -0.02
    values[2, 2] = 0.0
    found = ImagePixels(Cube(values), None, 0.05)
    matrix = found.gathered()
    np.testing.assert_array_equal(matrix, np.delete(np.maximum(values, 0.0).reshape(-1, 6), 10, axis=0))
    assert not found.mask[2, 2]
    assert (found.n_clipped, found.n_clipped_pixels, found.n_zero) == (3, 2, 1)
    with pytest.warns(NonnegWarning) as told:
        found.tell()
    assert [each.category for each in told] == [DataChangedWarning, NonnegWarning]
    assert str(told[0].message).startswith("3 entries below zero in 2 of 19 pixels (down to -0.02")
    assert str(told[1].message).startswith("1 pixels are zero in every band and were left out")
    values[4, 0, 0] = -1.0
    with pytest.raises(NegativeDataError, match="entries down to -1, where the largest"):
        ImagePixels(Cube(values), None, 0.05).gathered()
    assert ImagePixels(Cube(values), None, 2.0).gathered().min() == 0.0


def test_pixels_without_data_are_left_out(values):
    values[1, 1], values[2, 3, 0] = -9.0, -9.0
    found = ImagePixels(Cube(values, no_data=-9.0), None, 99.0)
    assert len(found.gathered()) == 19
    assert not found.mask[1, 1]
    assert found.n_partly_empty == 1
    with pytest.raises(NegativeDataError, match="1 pixels have the no-data value, -9"):
        ImagePixels(Cube(values, no_data=-9.0), None, 0.05).gathered()
    values[1, 1], values[2, 3, 0] = np.nan, 0.5
    assert len(ImagePixels(Cube(values, no_data=np.nan), None, 0.05).gathered()) == 19
    values[4, 2, 1] = np.inf
    with pytest.raises(NonFiniteDataError, match=r"at least 1 entries.*row 4, column 2"):
        ImagePixels(Cube(values, no_data=np.nan), None, 0.05).gathered()
    with pytest.raises(InvalidDataError, match="leave no pixels"):
        ImagePixels(Cube(values), np.zeros((5, 4), dtype=bool), 0.05).gathered()
    with pytest.raises(InvalidDataError, match="zero or below"):
        ImagePixels(Cube(np.zeros((2, 2, 3))), None, 0.05).gathered()


def test_masks_and_types():
    assert _checked_mask(np.array([[0, 255]]), (1, 2)).tolist() == [[False, True]]
    assert _checked_mask(np.array([[0, 1]]), (1, 2)).tolist() == [[False, True]]
    with pytest.raises(ShapeError, match="values from 0 to 2"):
        _checked_mask(np.array([[0, 2]]), (1, 2))
    with pytest.raises(ShapeError, match=r"\(1, 2\), got \(2, 1\)"):
        _checked_mask(np.ones((2, 1)), (1, 2))
    kinds = {"u1": "f4", "i2": "f4", "i4": "f8", "f4": "f4", "f8": "f8", ">f4": "f4"}
    assert {name: np.dtype(_working_type(np.dtype(name))).str[1:] for name in kinds} == kinds


def test_smoothed_pixels_are_means_of_those_that_are_used(values):
    mask = np.ones((5, 4), dtype=bool)
    mask[2, 1] = False
    pixels = ImagePixels(Cube(values), mask, 0.05)
    found = window_means(pixels, np.flatnonzero(mask), 3)
    for band in range(6):
        image = np.where(mask, values[:, :, band], np.nan)
        expected = generic_filter(image, np.nanmean, size=3, mode="constant", cval=np.nan)
        np.testing.assert_allclose(found[:, band], expected[mask])


def test_warnings_name_the_line_that_fits(rng):
    values = rng.dirichlet(np.ones(3), 60).reshape(6, 10, 3) @ rng.random((3, 8))
    values[0, 0] = 0.0
    values[0, 1, 0] = -1e-3
    values[0, 2, 0] = 99.0
    with pytest.warns(NonnegWarning) as caught:
        Unmixing(2, method="snpa").fit(values, no_data=99.0)
    assert len(caught) == 3
    assert {entry.filename for entry in caught} == {__file__}


@pytest.mark.parametrize("band", [0, 1])
def test_pixels_without_data_in_no_band_but_one(band):
    values = np.ones((2, 2, 2))
    values[0, 0, band] = 0.0
    # Zero is data unless all bands have it.
    found = ImagePixels(Cube(values, no_data=0.0), None, 0.05)
    assert len(found.gathered()) == 4
    assert (found.n_partly_empty, found.n_zero) == (0, 0)
    values[0, 0] = 0.0
    found = ImagePixels(Cube(values, no_data=0.0), None, 0.05)
    assert len(found.gathered()) == 3


@pytest.mark.parametrize(("entry", "refused"), [(-0.05, False), (-0.0501, True)])
def test_entries_below_zero_within_the_tolerance(entry, refused):
    values = np.ones((2, 2, 2))
    values[1, 1, 0] = entry
    pixels = ImagePixels(Cube(values), None, 0.05)
    if refused:
        with pytest.raises(NegativeDataError, match=r"negative_tol=0\.05"):
            pixels.gathered()
    else:
        assert pixels.gathered().min() == 0.0
