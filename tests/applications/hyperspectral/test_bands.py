"""Bands that do not count: left out of the search, the maps, the spectra and what is saved."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import nonneg
from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import Cube, SpectralLibrary, read_cube, rgb_preview
from nonneg.applications.hyperspectral.preview import preview_bands
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import (
    DataChangedWarning,
    InvalidParameterError,
    NegativeDataError,
    NonnegWarning,
    ShapeError,
)

ROWS, COLUMNS, BANDS, K = 12, 15, 20, 4
BAD = [0, 1, 7, 8, 9, 19]
KEPT = np.isin(np.arange(BANDS), BAD, invert=True)
PLACES = np.linspace(400, 2400, BANDS)


@pytest.fixture
def planted():
    return separable_dirichlet(ROWS * COLUMNS, BANDS, K, rng=3)


@pytest.fixture
def spoilt(planted):
    """The scene with noise, NaN and numbers far below zero in the bad bands."""
    values = planted.X.reshape(ROWS, COLUMNS, BANDS).copy()
    values[:, :, BAD] = 50 * np.random.default_rng(0).standard_normal((ROWS, COLUMNS, len(BAD)))
    values[3, 4, 7] = np.nan
    return values


def envi(path, values, interleave="bsq", **details):
    spectral = pytest.importorskip("spectral")
    metadata = {"bbl": KEPT.astype(int).tolist(), "wavelength": PLACES.tolist(), "wavelength units": "nm"}
    spectral.envi.save_image(
        str(path), values, interleave=interleave, ext="img", metadata=metadata | details, force=True
    )
    return path


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
def test_an_envi_file_is_unmixed_in_its_good_bands(tmp_path, planted, spoilt, interleave):
    path = envi(tmp_path / "scene.hdr", spoilt, interleave)
    model = Unmixing(K, method="snpa")
    with pytest.warns(DataChangedWarning, match=r"6 of 20 bands of scene\.hdr are left out"):
        model.fit(path)
    plain = Unmixing(K, method="snpa").fit(planted.X.reshape(ROWS, COLUMNS, BANDS)[:, :, KEPT])
    np.testing.assert_array_equal(model.pure_pixels_, plain.pure_pixels_)
    np.testing.assert_allclose(model.abundances_, plain.abundances_, atol=1e-9)
    np.testing.assert_allclose(model.endmembers_, plain.endmembers_)
    np.testing.assert_allclose(model.wavelengths_, PLACES[KEPT])
    np.testing.assert_array_equal(model.bands_, KEPT)
    assert model.n_features_in_ == BANDS


def test_what_the_user_says_of_bands_goes_first(tmp_path, spoilt):
    path = envi(tmp_path / "scene.hdr", spoilt)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cube = read_cube(path, bands=KEPT)
        some = KEPT.copy()
        some[10:] = False
        model = Unmixing(K, method="snpa").fit(cube, bands=some)
    assert model.endmembers_.shape == (K, some.sum())
    with pytest.raises(nonneg.exceptions.NonFiniteDataError, match="row 3, column 4"):
        Unmixing(K, method="snpa").fit(path, bands="all")


def test_arrays_take_bands_too(planted, spoilt):
    model = Unmixing(K, method="snpa").fit(spoilt, bands=KEPT, wavelengths=PLACES)
    again = Unmixing(K, method="snpa").fit(Cube(spoilt, PLACES, bands=KEPT))
    np.testing.assert_array_equal(model.abundances_, again.abundances_)
    np.testing.assert_allclose(model.transform(spoilt), model.abundances_, atol=1e-9)
    with pytest.raises(ShapeError, match="Expected a cube with 20 bands"):
        model.transform(spoilt[:, :, KEPT])


def test_another_scene_with_bad_bands_of_its_own(planted, spoilt):
    model = Unmixing(K, method="snpa").fit(spoilt, bands=KEPT)
    other = spoilt.copy()
    other[:, :, 12] = -1000
    own = np.arange(BANDS) != 12
    maps = model.transform(Cube(other, bands=own))
    np.testing.assert_allclose(maps, model.abundances_, atol=1e-6)
    with pytest.raises(ShapeError, match="2 bands are used both in this image and in that of fit"):
        model.transform(Cube(other, bands=np.arange(BANDS) < 4))


def test_pixels_without_data_are_told_by_the_bands_that_count(planted, spoilt):
    free = next(at for at in range(ROWS * COLUMNS) if at not in planted.anchors)
    spoilt[divmod(free, COLUMNS)] = np.where(KEPT, -9999, 0)
    model = Unmixing(K, method="snpa").fit(spoilt, bands=KEPT, no_data=-9999)
    assert np.flatnonzero(~model.mask_).tolist() == [free]


def test_saved_models_know_their_bands(tmp_path, spoilt):
    model = Unmixing(K, method="snpa").fit(spoilt, bands=KEPT, wavelengths=PLACES)
    model.save(tmp_path / "model.npz")
    again = nonneg.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.bands_, KEPT)
    np.testing.assert_allclose(again.wavelengths_, PLACES[KEPT])
    np.testing.assert_allclose(again.transform(spoilt), model.abundances_, atol=1e-9)


def test_a_library_of_all_bands_without_wavelengths(planted, spoilt):
    model = Unmixing(K, method="snpa").fit(spoilt, bands=KEPT)
    whole = SpectralLibrary(tuple("abcd"), planted.X[planted.anchors])
    np.testing.assert_allclose(model.match(whole).angles, 0, atol=1e-5)
    kept = SpectralLibrary(tuple("abcd"), planted.X[planted.anchors][:, KEPT])
    np.testing.assert_allclose(model.match(kept).angles, 0, atol=1e-5)
    with_places = SpectralLibrary(tuple("abcd"), planted.X[planted.anchors], PLACES / 1000)
    model = Unmixing(K, method="snpa").fit(spoilt, bands=KEPT, wavelengths=PLACES)
    np.testing.assert_allclose(model.match(with_places).angles, 0, atol=1e-5)


def test_a_preview_shows_bands_that_count():
    places = np.linspace(400, 900, 51)
    assert preview_bands(places, 51) == (24, 15, 6)
    assert preview_bands(places / 1000, 51) == (24, 15, 6)
    kept = ~np.isin(np.arange(51), (24, 6))
    assert preview_bands(places, 51, kept) in ((23, 15, 5), (25, 15, 5), (25, 15, 7), (23, 15, 7))
    assert preview_bands(None, 20, np.arange(20) >= 7) == (17, 13, 9)
    values = np.full((2, 2, 4), np.nan)
    values[:, :, 1] = [[0, 1], [2, 3]]
    assert len(np.unique(rgb_preview(Cube(values, bands=np.arange(4) == 1)))) == 4


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u2", "i4"])
def test_the_order_of_bytes_does_not_matter(planted, order, dtype):
    values = planted.X.reshape(ROWS, COLUMNS, BANDS) * (1 if dtype[0] == "f" else 1000)
    model = Unmixing(K, method="snpa").fit(values.astype(order + dtype))
    assert model.endmembers_.dtype == (np.float64 if dtype in ("f8", "i4") else np.float32)
    assert model.endmembers_.dtype.isnative
    plain = Unmixing(K, method="snpa").fit(values.astype(dtype))
    np.testing.assert_array_equal(model.abundances_, plain.abundances_)


def test_reflectances_in_whole_numbers(tmp_path, planted):
    values = planted.X.reshape(ROWS, COLUMNS, BANDS)
    whole = np.round(10000 * values).astype(np.uint16)
    path = envi(tmp_path / "scene.hdr", whole, **{"reflectance scale factor": 10000})
    model = Unmixing(K, method="snpa", constraint="sum-to-one").fit(path, bands="all")
    rows, columns = model.pure_pixels_.T
    np.testing.assert_allclose(model.endmembers_, values[rows, columns], atol=1e-4)
    # The same endmembers serve a scene that is in reflectances already.
    np.testing.assert_allclose(model.transform(values), model.abundances_, atol=1e-2)


def test_the_value_for_no_data_below_zero_in_some_bands(planted):
    values = planted.X.reshape(ROWS, COLUMNS, BANDS).copy()
    values[2, 3, 5] = -9999
    with pytest.raises(NegativeDataError, match=r"entries down to -9999, .*out with mask="):
        Unmixing(K, method="snpa").fit(values, no_data=-9999)
    Unmixing(K, method="snpa").fit(values, no_data=-9999, bands=np.arange(BANDS) != 5)


def test_pixels_of_zeros_are_told(planted):
    values = planted.X.reshape(ROWS, COLUMNS, BANDS).copy()
    free = next(at for at in range(ROWS * COLUMNS) if at not in planted.anchors)
    values[divmod(free, COLUMNS)] = 0
    with pytest.warns(NonnegWarning, match=r"^1 pixels are zero in every band and were left.*--no-data 0"):
        model = Unmixing(K, method="snpa").fit(values)
    assert (model.n_zero_, model.mask_.sum()) == (1, ROWS * COLUMNS - 1)
    assert Unmixing(K, method="snpa").fit(values, no_data=0).mask_.sum() == ROWS * COLUMNS - 1


def test_more_endmembers_than_bands(spoilt):
    with pytest.raises(
        InvalidParameterError, match=r"n_endmembers=16 is too many: at most 15 spectra .* bands .14."
    ):
        Unmixing(16).fit(spoilt, bands=KEPT)


def test_masks_in_black_and_white(planted):
    values = planted.X.reshape(ROWS, COLUMNS, BANDS)
    mask = np.full((ROWS, COLUMNS), 255, np.uint8)
    free = next(at for at in range(ROWS * COLUMNS) if at not in planted.anchors)
    mask[divmod(free, COLUMNS)] = 0
    assert Unmixing(K, method="snpa").fit(values, mask=mask).mask_.sum() == ROWS * COLUMNS - 1
    mask[0, 0] = 3
    with pytest.raises(ShapeError, match=r"values from [03] to 255"):
        Unmixing(K, method="snpa").fit(values, mask=mask)


def test_masked_arrays_leave_pixels_out(planted, spoilt):
    free = [divmod(at, COLUMNS) for at in range(ROWS * COLUMNS) if at not in planted.anchors][:2]
    hidden = np.zeros(spoilt.shape, bool)
    hidden[free[0]] = True
    hidden[(*free[1], 12)] = True  # one band that counts
    hidden[:, :, BAD] = True  # bands that do not
    model = Unmixing(K, method="snpa").fit(np.ma.MaskedArray(spoilt, hidden), bands=KEPT)
    assert [tuple(at) for at in np.argwhere(~model.mask_).tolist()] == free


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_datasets_of_open_files(tmp_path, planted, dtype):
    h5py = pytest.importorskip("h5py")
    values = np.round(1000 * planted.X.reshape(ROWS, COLUMNS, BANDS)).astype(dtype)
    with h5py.File(tmp_path / "scene.h5", "w") as file:
        file["reflectance"] = values
        model = Unmixing(K, method="snpa").fit(file["reflectance"], bands=KEPT)
        again = model.transform(file["reflectance"])
    np.testing.assert_allclose(again, model.abundances_, atol=1e-5)
    plain = Unmixing(K, method="snpa").fit(values, bands=KEPT)
    np.testing.assert_array_equal(model.abundances_, plain.abundances_)


def test_warnings_name_the_line_that_fits(rng):
    values = rng.dirichlet(np.ones(3), 60).reshape(6, 10, 3) @ rng.random((3, 8))
    values[0, 0] = 0.0
    values[0, 1, 0] = -1e-3
    with pytest.warns(NonnegWarning) as caught:
        Unmixing(2, method="snpa").fit(values)
    assert len(caught) == 2
    assert {entry.filename for entry in caught} == {__file__}
