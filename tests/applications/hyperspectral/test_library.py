"""Libraries of spectra, previews and maps."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.hyperspectral import (
    SpectralLibrary,
    read_cube,
    read_library,
    rgb_preview,
    write_maps,
)
from nonneg.applications.hyperspectral.library import match_library
from nonneg.exceptions import FileFormatError, InvalidParameterError, OutputError, ShapeError
from nonneg.metrics import spectral_angles


def test_angles_are_in_degrees_and_do_not_see_brightness():
    found = spectral_angles([[1, 0], [1, 1]], [[5, 0], [0, 2], [0, 0]])
    np.testing.assert_allclose(found, [[0, 90, 90], [45, 45, 90]], atol=1e-12)
    # The cosine of so small an angle is 1 to the last digit.
    np.testing.assert_allclose(spectral_angles([[1, 0]], [[1, 1e-9]]), np.degrees(1e-9))


def test_spectra_are_brought_to_the_bands_of_the_scene():
    library = SpectralLibrary(("ramp", "flat"), [[0.0, 1.0, 2.0], [1, 1, 1]], [400, 500, 600])
    np.testing.assert_allclose(library.at([450, 550], [True, True]), [[0.5, 1.5], [1, 1]])
    assert np.isnan(library.at([450, 550, 700], 3 * [True])[:, 2]).all()
    found = match_library([[0.5, 1.5, 9.0], [2, 2, 9]], library, [450, 550, 700], 3 * [True])
    assert found.names == ("ramp", "flat")
    np.testing.assert_allclose(found.angles, 0, atol=1e-9)


def test_every_name_is_given_once():
    library = SpectralLibrary(("a", "b"), np.eye(2))
    found = match_library([[1.0, 0.1], [1.0, 0.2], [1.0, 0.3]], library, None, 2 * [True])
    assert sorted(found.names) == ["", "a", "b"]
    assert np.isnan(found.angles[found.chosen == -1]).all()


def test_libraries_that_do_not_fit():
    library = SpectralLibrary(("a",), [[1.0, 2.0]])
    with pytest.raises(ShapeError, match="The library has 2 bands and the image 3"):
        library.at(None, 3 * [True])
    with pytest.raises(InvalidParameterError, match="do not overlap"):
        SpectralLibrary(("a",), [[1, 2]], [0.6, 0.7]).at([400, 500], 2 * [True])
    three = SpectralLibrary(("a", "b"), [[1, 2, 3], [3, 2, np.nan]])
    assert np.isnan(three.at(None, 3 * [True])).sum() == 1  # two bands are enough
    with pytest.raises(InvalidParameterError, match="fewer than two bands"):
        SpectralLibrary(("a", "b"), [[1, 2, np.nan], [3, np.nan, 2]]).at(None, 3 * [True])
    with pytest.raises(ShapeError, match="2 names"):
        SpectralLibrary(("a", "b"), [[1.0, 2.0]])
    with pytest.raises(ShapeError, match="increasing wavelengths"):
        SpectralLibrary(("a",), [[1.0, 2.0]], [500, 400])


def test_reading_a_library(tmp_path):
    (tmp_path / "l.csv").write_text("wavelength,tree,rock\n600,2,1\n500,3,4\n")
    library = read_library(tmp_path / "l.csv")
    assert library.names == ("tree", "rock")
    np.testing.assert_array_equal(library.wavelengths, [500, 600])
    np.testing.assert_array_equal(library.spectra, [[3, 2], [4, 1]])
    (tmp_path / "bad.csv").write_text("a,b\n1,x\n")
    (tmp_path / "single.csv").write_text("wavelength\n1\n")
    (tmp_path / "latin.csv").write_bytes(b"wavelength,caf\xe9\n1,2\n")
    for name, message in (
        ("bad.csv", "expected a number, got 'x'"),
        ("latin.csv", "not text in UTF-8"),
        ("single.csv", "not a spectral library"),
        ("none.csv", "does not exist"),
        ("l.txt", "unknown ending"),
    ):
        if name == "l.txt":
            (tmp_path / name).write_text("")
        with pytest.raises(FileFormatError, match=message):
            read_library(tmp_path / name)


def test_maps_are_written(tmp_path):
    maps = np.random.default_rng(0).random((3, 4, 2))
    with pytest.raises(FileFormatError, match=r"ends in \.hdr"):
        write_maps(tmp_path / "maps.tif", maps)
    with pytest.raises(ShapeError, match="1 names"):
        write_maps(tmp_path / "maps.hdr", maps, ["a"])
    header, _ = write_maps(tmp_path / "maps.hdr", maps, ["tree", "rock"])
    np.testing.assert_array_equal(read_cube(header).values, maps)
    assert "tree" in header.read_text()


def test_numbers_of_bands_are_no_wavelengths(tmp_path):
    path = tmp_path / "endmembers.csv"
    path.write_text("band,soil,water\n0,1,3\n1,2,2\n2,3,1\n")
    library = read_library(path)
    assert library.wavelengths is None
    found = match_library([[3.0, 2.0, 1.0]], library, [400, 500, 600], 3 * [True])
    assert found.names == ("water",)
    path.write_text("wavelength,soil\n400,1\n500,2\n")
    assert read_library(path).wavelengths.tolist() == [400, 500]


def test_a_preview_leaves_out_two_percent_at_both_ends():
    ramp = np.arange(101.0).reshape(1, 101, 1) * np.ones(3)
    shown = rgb_preview(ramp)
    expected = np.round(255 * np.clip((np.arange(101) - 2) / 96, 0, 1))
    np.testing.assert_array_equal(shown[0, :, 0], expected)


@pytest.mark.parametrize("wavelengths", [[400, 500, 450], [400, 400, 500], [400, 500], [[400, 500, 600]]])
def test_wavelengths_increase(wavelengths):
    with pytest.raises(ShapeError, match="Expected 3 increasing wavelengths"):
        SpectralLibrary(("a",), [[1.0, 2.0, 3.0]], wavelengths)
    with pytest.raises(ShapeError, match="each of 1 names"):
        SpectralLibrary(("a",), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("own", [None, [400.0, 500.0, 600.0]])
@pytest.mark.parametrize("image", [None, [400.0, 600.0]])
def test_bands_that_are_left_out_of_the_image(own, image):
    library = SpectralLibrary(("a",), [[1.0, 2.0, 3.0]], own)
    np.testing.assert_array_equal(library.at(image, [True, False, True]), [[1.0, 3.0]])
    np.testing.assert_array_equal(library.at(None, [True, True, True]), library.spectra)


def test_micrometers_and_nanometers_are_the_same_places():
    library = SpectralLibrary(("a",), [[1.0, 2.0, 3.0]], [0.4, 0.5, 0.6])
    np.testing.assert_allclose(library.at([400, 500, 600], 3 * [True]), library.spectra)
    np.testing.assert_allclose(library.at([450, 600], 2 * [True]), [[1.5, 3.0]])
    assert np.isnan(library.at([399, 450, 500, 601], 4 * [True])).all(axis=0).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_maps_that_cannot_be_written(tmp_path):
    with pytest.raises(ShapeError, match=r"shape \(2, 2\)"):
        write_maps(tmp_path / "maps.hdr", np.ones((2, 2)))
    with pytest.raises(OutputError, match=r"could not be written: .*No such file"):
        write_maps(tmp_path / "none" / "maps.hdr", np.ones((2, 2, 1)))
    header, _ = write_maps(tmp_path / "maps.HDR", np.ones((2, 2, 2)))
    assert "endmember 0" in header.read_text()
    assert "endmember 1" in header.read_text()
