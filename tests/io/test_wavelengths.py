"""Wavelengths that headers list, in nanometers."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.io.envi import in_nanometers, listed_entries, wavelengths_of


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([0.4, 2.5], [400.0, 2500.0]), ([0.1, 99.0], [100.0, 99000.0]), ([400.0, 2500.0], [400.0, 2500.0]),
        ([0.4, 100.0], [0.4, 100.0]), ([0.05, 0.4], [0.05, 0.4]), ([], []),
    ],
)  # fmt: skip
def test_small_numbers_are_micrometers(given, expected):
    np.testing.assert_allclose(in_nanometers(given), expected)


def test_lists_may_be_one_text_or_end_with_a_comma():
    assert listed_entries("450") == ["450"]
    assert listed_entries(["450", "550", ""]) == ["450", "550"]
    assert listed_entries(["", "550"]) == ["", "550"]
    assert listed_entries([]) == []


@pytest.mark.parametrize(
    ("listed", "unit", "expected"),
    [
        (["450", "550"], "Nanometers", [450.0, 550.0]),
        (["0.45", "0.55"], " Micrometers ", [450.0, 550.0]),
        (["0.45", "0.55"], "", [450.0, 550.0]),
        (["4.5e-7", "5.5e-7"], "m", [450.0, 550.0]),
        (["4.5e-5", "5.5e-5"], "cm", [450.0, 550.0]),
        (["20000", "10000"], "Wavenumber", [500.0, 1000.0]),
        (["0.5", "10000"], "Wavenumber", [2e7, 1000.0]),
        (["0", "10000"], "Wavenumber", None),
        (["1", "2"], "Index", None),
        (["1", "2"], "GHz", None),
        (["450"], "nm", None),
        (["450", "550", "650"], "nm", None),
        (["450", "blue"], "nm", None),
        (None, "nm", None),
    ],
)
def test_the_wavelengths_of_a_header(listed, unit, expected):
    found = wavelengths_of({"wavelength": listed, "wavelength units": unit}, 2)
    if expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_header_without_units_or_list():
    np.testing.assert_allclose(wavelengths_of({"wavelength": ["450", "550"]}, 2), [450.0, 550.0])
    assert wavelengths_of({}, 2) is None
