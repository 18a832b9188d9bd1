"""Pixels of images against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.exceptions import (
    NegativeDataError,
    NonnegWarning,
)
from nonneg.io.cube import Cube


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
