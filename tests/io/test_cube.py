"""Cubes from every format, and what is said of files that hold none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io

from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    FileFormatError,
    InvalidDataError,
    ShapeError,
    UnsafeFileError,
)
from nonneg.io.cube import Cube, as_cube, read_cube, read_envi_library, write_maps


@pytest.fixture
def values():
    return np.arange(2 * 3 * 4, dtype=np.uint16).reshape(2, 3, 4)


def envi(path, values, interleave="bsq", **metadata):
    spectral = pytest.importorskip("spectral")
    spectral.envi.save_image(str(path), values, interleave=interleave, ext="img", metadata=metadata)
    return path


def test_numpy_files_are_mapped(tmp_path, values):
    np.save(tmp_path / "cube.npy", values)
    cube = read_cube(tmp_path / "cube.npy", wavelengths=[400, 500, 600, 700], no_data=-1)
    assert isinstance(cube.values, np.memmap)
    assert cube.shape == (2, 3, 4)
    assert cube.wavelengths.tolist() == [400, 500, 600, 700]
    assert cube.no_data == -1
    np.testing.assert_array_equal(cube.values, values)


def test_archives_bring_their_wavelengths(tmp_path, values):
    np.savez(tmp_path / "cube.npz", scene=values, wavelengths=np.arange(4.0), gt=np.zeros((2, 3)))
    cube = read_cube(tmp_path / "cube.npz")
    np.testing.assert_array_equal(cube.values, values)
    np.testing.assert_array_equal(cube.wavelengths, np.arange(4.0))


def test_matlab_files(tmp_path, values):
    scipy.io.savemat(tmp_path / "cube.mat", {"paviaU": values, "gt": np.zeros((2, 3))})
    np.testing.assert_array_equal(read_cube(tmp_path / "cube.mat").values, values)
    scipy.io.savemat(tmp_path / "two.mat", {"a": values, "b": 2 * values})
    with pytest.raises(FileFormatError, match=r"variables: a \(2 x 3 x 4\), b \(2 x 3 x 4\)\. Choose"):
        read_cube(tmp_path / "two.mat")
    np.testing.assert_array_equal(read_cube(tmp_path / "two.mat", variable="b").values, 2 * values)
    with pytest.raises(FileFormatError, match="contains no variable 'c'"):
        read_cube(tmp_path / "two.mat", variable="c")


def test_matlab_files_of_version_73(tmp_path, values):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "cube.mat", "w") as file:
        file["cube"] = values.T
    np.testing.assert_array_equal(read_cube(tmp_path / "cube.mat").values, values)


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
def test_envi_files_of_every_order_are_mapped(tmp_path, values, interleave):
    details = {"wavelength": [0.4, 0.5, 0.6, 0.7], "wavelength units": "Micrometers", "data ignore value": 0}
    header = envi(tmp_path / "cube.hdr", values, interleave, **details)
    for path in (header, tmp_path / "cube.img"):
        cube = read_cube(path)
        np.testing.assert_array_equal(cube.values, values)
        np.testing.assert_allclose(cube.wavelengths, [400, 500, 600, 700])
        assert cube.no_data == 0
    base = cube.values
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not cube.values.flags.writeable  # no one can change the file by accident


def test_an_envi_file_that_is_cut_short(tmp_path, values):
    header = envi(tmp_path / "cube.hdr", values)
    (tmp_path / "cube.img").write_bytes(b"12345")
    with pytest.raises(FileFormatError, match=r"cube.img has 5 of the \d+ bytes that cube.hdr describes"):
        read_cube(header)
    (tmp_path / "cube.img").unlink()
    with pytest.raises(FileFormatError, match="describes are not in the same folder"):
        read_cube(header)
    header.write_text("no header")
    with pytest.raises(FileFormatError, match="is not an ENVI header: its first line"):
        read_cube(header)


def test_what_is_no_cube(tmp_path):
    np.save(tmp_path / "flat.npy", np.ones((4, 3)))
    with pytest.raises(ShapeError, match=r"rows x columns x bands, got an array of shape \(4, 3\)"):
        read_cube(tmp_path / "flat.npy")
    np.save(tmp_path / "objects.npy", np.array([[[None]]]), allow_pickle=True)
    with pytest.raises(UnsafeFileError):
        read_cube(tmp_path / "objects.npy")
    (tmp_path / "cube.npy").write_bytes(b"no array")
    with pytest.raises(FileFormatError):
        read_cube(tmp_path / "cube.npy")
    (tmp_path / "cube.xyz").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"unknown ending \(\.xyz\)"):
        read_cube(tmp_path / "cube.xyz")
    with pytest.raises(FileFormatError, match="does not exist"):
        read_cube(tmp_path / "none.npy")
    with pytest.raises(DataTypeError, match="complex"):
        Cube(np.ones((1, 1, 2), complex))
    with pytest.raises(ShapeError, match="2 wavelengths"):
        as_cube(np.ones((1, 1, 2)), wavelengths=[1, 2, 3])


def test_maps_are_written_as_envi_and_read_back(tmp_path):
    spectral = pytest.importorskip("spectral")
    maps = np.array([[[0.25, 0.75], [np.nan, np.nan]]], dtype=np.float32)
    written = write_maps(tmp_path / "maps.hdr", maps, ["a, b", "c"])
    assert [path.name for path in written] == ["maps.hdr", "maps.img"]
    cube = read_cube(written[0])
    np.testing.assert_array_equal(cube.values, maps)
    assert np.isnan(cube.no_data)
    other = spectral.envi.open(str(written[0]))
    np.testing.assert_array_equal(other.open_memmap(interleave="bip"), maps)
    assert other.metadata["band names"] == ["a  b", "c"]


def test_a_library_of_envi(tmp_path):
    spectral = pytest.importorskip("spectral")
    names = ["tree", "rock"]
    header = {"spectra names": names, "wavelength": [500, 600, 700], "wavelength units": "nm"}
    library = spectral.envi.SpectralLibrary(np.arange(6.0).reshape(2, 3), header)
    library.bands.centers, library.bands.band_unit = [500, 600, 700], "nm"
    library.save(str(tmp_path / "library"), "spectra")
    spectra, found, wavelengths = read_envi_library(tmp_path / "library.hdr")
    np.testing.assert_array_equal(spectra, np.arange(6.0).reshape(2, 3))
    assert found == ("tree", "rock")
    np.testing.assert_array_equal(wavelengths, [500, 600, 700])
    with pytest.raises(FileFormatError, match="is a library of spectra, not an image"):
        read_cube(tmp_path / "library.hdr")


@pytest.mark.parametrize(("old", "new"), [(b"(2, 3, 4)", b"(2, 3, 4("), (b"(2, 3, 4)", b"(2, 3,-4)")])
def test_a_damaged_header_of_a_numpy_file(tmp_path, values, old, new):
    np.save(tmp_path / "cube.npy", values)
    (tmp_path / "cube.npy").write_bytes((tmp_path / "cube.npy").read_bytes().replace(old, new))
    with pytest.raises(FileFormatError):
        read_cube(tmp_path / "cube.npy")


def test_maps_lie_where_their_scene_lies(tmp_path, values):
    place = {
        "map info": ["UTM", "1", "1", "500000", "4200000", "30", "30", "10", "North", "WGS-84"],
        "x start": "7",
    }
    scene = read_cube(envi(tmp_path / "scene.hdr", values, **place))
    assert as_cube(scene, no_data=0).georeference == scene.georeference
    header, _ = write_maps(tmp_path / "maps.hdr", np.ones((2, 3, 1)), georeference=scene.georeference)
    assert place.items() <= pytest.importorskip("spectral").envi.read_envi_header(str(header)).items()


def test_headers_with_entries_that_are_no_numbers(tmp_path, values):
    path = envi(tmp_path / "scene.hdr", values, wavelength=["blue", "green", "red", "near"])
    with pytest.raises(FileFormatError, match="could not convert string to float: 'blue'"):
        read_cube(path)
    path = envi(tmp_path / "short.hdr", values, wavelength=[400, 500, 600])
    with pytest.raises(FileFormatError, match=r"Correct it, or pass wavelengths= \(--wavelengths\)"):
        read_cube(path)
    assert read_cube(path, wavelengths=[1, 2, 3, 4]).wavelengths.tolist() == [1, 2, 3, 4]
    path = envi(tmp_path / "other.hdr", values, **{"data ignore value": "none"})
    with pytest.raises(FileFormatError, match=r"could not be read as an ENVI image: .*'none'"):
        read_cube(path)


def is_mapped(values):
    while values is not None and not isinstance(values, np.memmap):
        values = values.base
    return values is not None


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
def test_bands_that_a_header_flags_as_bad_are_told_and_not_copied(tmp_path, values, interleave):
    path = envi(tmp_path / "c.hdr", values, interleave, bbl=[1, 0, 1, 0], wavelength=[400, 500, 600, 700])
    with pytest.warns(
        DataChangedWarning, match=r"^2 of 4 bands of c\.hdr are left out: .*bad \(bbl\).*--all-bands\) keeps"
    ):
        cube = read_cube(path)
    assert cube.kept.tolist() == [True, False, True, False]
    assert cube.kept_wavelengths.tolist() == [400, 600]
    assert is_mapped(cube.values)
    np.testing.assert_array_equal(cube.values, values)
    assert read_cube(path, bands="all").kept.all()
    # What the user says goes before the header.
    assert read_cube(path, bands=[0, 1, 1, 1]).kept.tolist() == [False, True, True, True]
    assert as_cube(cube, bands="all").bands is None
    assert as_cube(cube, no_data=3).kept.tolist() == [True, False, True, False]


def test_a_list_of_bad_bands_that_does_not_fit(tmp_path, values):
    path = envi(tmp_path / "c.hdr", values, bbl=[1, 0, 1])
    with pytest.raises(FileFormatError, match=r"3 numbers as 'bbl', but .* bands='all' \(--all-bands\)"):
        read_cube(path)
    assert read_cube(path, bands="all").kept.all()
    with pytest.raises(ShapeError, match="at least one"):
        read_cube(envi(tmp_path / "d.hdr", values, bbl=[0, 0, 0, 0]))


def test_bands_that_do_not_fit_the_cube(values):
    for bands in ([True, False], [0, 1, 2, 3], "none"):
        with pytest.raises(ShapeError, match="bands to be 'all' or 4 entries"):
            as_cube(values, bands=bands)
    with pytest.raises(ShapeError, match="at least one"):
        as_cube(values, bands=np.zeros(4, bool))


def test_a_comma_at_the_end_of_a_list(tmp_path, values):
    path = envi(tmp_path / "c.hdr", values, wavelength=[400, 500, 600, 700], bbl=[1, 1, 1, 0])
    text = path.read_text().replace("1 , 0 }", "1 , 0 , }").replace("700 }", "700 , }")
    assert text.count(", }") == 2
    path.write_text(text)
    with pytest.warns(DataChangedWarning, match="1 of 4 bands"):
        cube = read_cube(path)
    assert cube.kept_wavelengths.tolist() == [400, 500, 600]


@pytest.mark.parametrize(
    ("unit", "listed", "expected"),
    [
        ("Nanometers", [400, 500, 600, 700], [400, 500, 600, 700]),
        ("\N{MICRO SIGN}m", [0.4, 0.5, 0.6, 0.7], [400, 500, 600, 700]),
        ("Unknown", [0.4, 0.5, 0.6, 0.7], [400, 500, 600, 700]),
        (None, [8.5, 9.5, 10.5, 11.5], [8500, 9500, 10500, 11500]),
        ("Unknown", [400, 500, 600, 700], [400, 500, 600, 700]),
        ("Angstroms", [4000, 5000, 6000, 7000], [400, 500, 600, 700]),
        ("Index", [1, 2, 3, 4], None),
    ],
)
def test_units_of_wavelengths(tmp_path, values, unit, listed, expected):
    details = {"wavelength": listed} | ({} if unit is None else {"wavelength units": unit})
    found = read_cube(envi(tmp_path / "c.hdr", values, **details)).wavelengths
    assert found is None if expected is None else np.allclose(found, expected)


def test_names_of_entries_in_capitals(tmp_path, values):
    path = envi(tmp_path / "c.hdr", values, wavelength=[400, 500, 600, 700])
    path.write_text(path.read_text().replace("wavelength =", "Wavelength ="))
    assert read_cube(path).wavelengths.tolist() == [400, 500, 600, 700]


def test_a_header_without_an_entry_that_is_needed(tmp_path, values):
    path = envi(tmp_path / "c.hdr", values)
    path.write_text("\n".join(row for row in path.read_text().splitlines() if "byte order" not in row))
    with pytest.raises(FileFormatError, match=r"lacks the byte order\. Expected 0, 1; correct it"):
        read_cube(path)


def test_the_scale_of_reflectances(tmp_path, values):
    assert read_cube(envi(tmp_path / "a.hdr", values, **{"reflectance scale factor": 10000})).scale == 10000
    path = envi(tmp_path / "b.hdr", values, **{"reflectance scale factor": 0})
    with pytest.raises(InvalidDataError, match="scale factor above zero, got 0"):
        read_cube(path)


def test_a_library_of_envi_with_values_that_are_none(tmp_path):
    spectral = pytest.importorskip("spectral")
    listed = {
        "spectra names": ["a", "b"],
        "wavelength": [0.5, 0.6, 0.7, 0.8],
        "wavelength units": "Micrometers",
    }
    rows = np.array([[1, 2, -1.23e34, 4], [-99.0, 6, 7, 0]])
    spectral.envi.SpectralLibrary(rows, listed).save(str(tmp_path / "l"))
    header = tmp_path / "l.hdr"
    text = header.read_text().replace("data ignore value = NaN", "data ignore value = -99")
    header.write_text(text + "bbl = {1, 0, 1, 1}\n")
    spectra, _, wavelengths = read_envi_library(header)
    nan = np.nan
    np.testing.assert_array_equal(spectra, [[1, nan, nan, 4], [nan, nan, 7, 0]])
    np.testing.assert_allclose(wavelengths, [500, 600, 700, 800])
    header.write_text(text + "bbl = {1, 0}\n")
    with pytest.raises(FileFormatError, match="2 numbers as 'bbl', but there are 4 bands"):
        read_envi_library(header)


def test_bands_that_come_first_are_told_by_the_wavelengths(values):
    with pytest.raises(ShapeError, match=r"shape \(4, 2, 3\): np\.moveaxis\(array, axis, 2\)"):
        as_cube(values.transpose(2, 0, 1), wavelengths=[400, 500, 600, 700])


def test_wavelengths_of_the_bands_that_count_alone_are_too_few(values):
    with pytest.raises(ShapeError, match=r"Expected 4 wavelengths.*those that are left out among them"):
        as_cube(Cube(values, bands=[1, 1, 0, 0]), wavelengths=[400, 500])


def test_matrices_of_pixels_with_their_numbers_of_rows_and_columns(tmp_path, values):
    columns_first = values.transpose(1, 0, 2).reshape(6, 4)
    sides = {"nRow": 2, "nCol": 3, "nBand": 4, "maxValue": 1}
    scipy.io.savemat(tmp_path / "a.mat", {"V": columns_first.T} | sides)
    np.testing.assert_array_equal(read_cube(tmp_path / "a.mat").values, values)
    # Labels of the pixels are no bands of them, and a single pixel has no cube.
    scipy.io.savemat(tmp_path / "a.mat", {"V": columns_first, "labels": np.arange(6)} | sides)
    np.testing.assert_array_equal(read_cube(tmp_path / "a.mat").values, values)
    scipy.io.savemat(tmp_path / "a.mat", {"V": columns_first, "names": np.ones((3, 2))} | sides)
    assert read_cube(tmp_path / "a.mat").shape == (2, 3, 4)
    scipy.io.savemat(tmp_path / "b.mat", {"V": columns_first, "A": columns_first[:, :3].T} | sides)
    np.testing.assert_array_equal(read_cube(tmp_path / "b.mat", variable="V").values, values)
    with pytest.raises(FileFormatError, match="Choose one with variable"):
        read_cube(tmp_path / "b.mat")
    scipy.io.savemat(tmp_path / "c.mat", {"V": columns_first})
    with pytest.raises(ShapeError, match=r"shape \(6, 4\)\. To make one from pixels in rows, use"):
        read_cube(tmp_path / "c.mat")


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8", "u2", "u4", "i8", "u8"])
@pytest.mark.parametrize("order", [0, 1])
def test_types_and_byte_orders_of_numbers(tmp_path, values, dtype, order):
    spectral = pytest.importorskip("spectral")
    path = tmp_path / "c.hdr"
    spectral.envi.save_image(str(path), values.astype(dtype), ext="img", byteorder=order, dtype=dtype)
    cube = read_cube(path)
    assert cube.values.dtype.newbyteorder("=") == np.dtype(dtype)
    np.testing.assert_array_equal(cube.values, values)
    text = path.read_text().replace("header offset = 0", "; a comment\nheader offset = 7")
    path.write_text(text)
    path.with_suffix(".img").write_bytes(bytes(7) + path.with_suffix(".img").read_bytes())
    np.testing.assert_array_equal(read_cube(path).values, values)


@pytest.mark.parametrize("ending", ["", ".raw", ".RAW", ".dat", ".bsq"])
def test_files_of_numbers_by_their_endings(tmp_path, values, ending):
    header = envi(tmp_path / "c.hdr", values)
    (tmp_path / "c.img").rename(tmp_path / f"c{ending}")
    np.testing.assert_array_equal(read_cube(header).values, values)
    np.testing.assert_array_equal(read_cube(tmp_path / f"c{ending}").values, values)
    header.rename(tmp_path / "c.HDR")
    np.testing.assert_array_equal(read_cube(tmp_path / f"c{ending}").values, values)
    (tmp_path / f"c{ending}").unlink()
    with pytest.raises(
        FileFormatError, match=r"numbers that .*c\.HDR describes are not in the same folder: expected c "
    ):
        read_cube(tmp_path / "c.HDR")


def test_an_order_of_numbers_that_is_not_known(tmp_path, values):
    header = envi(tmp_path / "c.hdr", values, "bip")
    header.write_text(header.read_text().replace("interleave = bip", "interleave = bpi"))
    with pytest.raises(FileFormatError, match=r"has the interleave 'bpi'\. Expected bsq, bil, bip"):
        read_cube(header)
    header.write_text(header.read_text().replace("interleave = bpi", "interleave = BIP"))
    np.testing.assert_array_equal(read_cube(header).values, values)


def test_an_image_whose_axes_are_named_may_have_its_bands_first():
    class DataArray(np.ndarray):
        """What xarray.DataArray has: names of axes, by which it is transposed."""

        dims = ("band", "y", "x")

        def transpose(self, *axes):
            assert axes == (..., "band")
            return np.moveaxis(np.asarray(self), 0, -1)

    values = np.arange(24.0).reshape(4, 2, 3)
    np.testing.assert_array_equal(as_cube(values.view(DataArray)).values, values.transpose(1, 2, 0))
