"""Unmixing(method="min-volume"): endmembers of scenes without pure pixels."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import store
from tests.references.mixtures import mixtures

from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import SpectralLibrary
from nonneg.datasets import load_samson
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnsupportedError
from nonneg.metrics import spectral_angles

ROWS, COLUMNS, BANDS, K = 20, 20, 25, 3


@pytest.fixture
def planted():
    return mixtures(ROWS * COLUMNS, BANDS, K, purity=0.8, snr=35.0, rng=0)


def angles(model, planted):
    return spectral_angles(np.asarray(model.endmembers_, dtype=float), planted.H).min(axis=0).max()


@pytest.mark.parametrize(
    "constraint",
    [
        "normalized",
        "nonnegative",
        pytest.param("sum-to-one", marks=pytest.mark.slow),
        pytest.param("at-most-one", marks=pytest.mark.slow),
    ],
)
def test_finds_endmembers_that_no_pixel_equals(planted, constraint):
    cube = planted.X.reshape(ROWS, COLUMNS, BANDS)
    model = Unmixing(K, method="min-volume", constraint=constraint).fit(cube)
    assert angles(model, planted) < 3.0
    pure = Unmixing(K, method="smoothed-spa", constraint=constraint).fit(cube)
    assert angles(pure, planted) > 5.0
    assert model.certificate_["sufficiently-scattered"].verdict == "not verifiable"
    assert model.result_.method == "min-volume"
    assert model.result_.n_iter == len(model.result_.history)
    purest = model.abundances_[tuple(model.pure_pixels_.T)]
    np.testing.assert_array_equal(purest.argmax(axis=1), np.arange(K))


def test_brightness_does_not_matter_if_the_constraint_leaves_it_free(planted):
    shade = np.random.default_rng(1).uniform(0.2, 1.0, (ROWS * COLUMNS, 1))
    plain, shaded = (
        Unmixing(K, method="min-volume").fit(X.reshape(ROWS, COLUMNS, BANDS))
        for X in (planted.X, shade * planted.X)
    )
    assert angles(shaded, planted) < 3.0
    order = spectral_angles(plain.endmembers_, shaded.endmembers_).argmin(axis=1)
    np.testing.assert_allclose(shaded.abundances_[:, :, order], plain.abundances_, atol=0.05)


def test_empty_pixels_are_left_out_of_the_search(planted):
    cube = planted.X.reshape(ROWS, COLUMNS, BANDS).copy()
    cube[0] = 0.0
    with pytest.warns(UserWarning, match="zero in every band"):
        model = Unmixing(K, method="min-volume").fit(cube)
    assert angles(model, planted) < 3.0
    assert np.isnan(model.abundances_[0]).all()
    assert np.isfinite(model.abundances_[1:]).all()
    assert model.n_zero_ == COLUMNS
    cube[:, 1:] = 0.0
    with (
        pytest.warns(UserWarning, match="zero"),
        pytest.raises(InvalidDataError, match="n_endmembers=20"),
    ):
        Unmixing(20, method="min-volume").fit(cube)


def test_parameters(planted):
    cube = planted.X.reshape(ROWS, COLUMNS, BANDS)
    with pytest.raises(InvalidParameterError, match="n_endmembers must be"):
        Unmixing(None, method="min-volume").fit(cube)
    with pytest.raises(UnsupportedError, match="mu"):
        Unmixing(K, method="min-volume", method_params={"mu": 1.0}).fit(cube)
    model = Unmixing(K, method="min-volume", method_params={"max_iter": 2, "tol": 0.0}).fit(cube)
    assert model.result_.n_iter == 2


@pytest.mark.slow
def test_samson():
    """Angles in degrees and abundances beside the published ones."""
    if not store.is_available("samson"):
        pytest.skip("samson is not on this machine")
    scene = load_samson()
    model = Unmixing(3, method="min-volume").fit(scene.X.reshape(95, 95, -1))
    found = model.match(SpectralLibrary(scene.names, scene.extras["endmembers"]))
    assert found.angles.mean() < 4.0
    maps = model.abundances_[:, :, np.argsort(found.chosen)].reshape(-1, 3)
    assert np.sqrt(np.mean((maps - scene.extras["abundances"]) ** 2)) < 0.08
