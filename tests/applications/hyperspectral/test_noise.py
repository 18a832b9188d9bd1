"""Noise of bands and corrupt pixels, at the ends of what can be told."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.hyperspectral import noise as module
from nonneg.applications.hyperspectral.noise import (
    MEASURED,
    N_SPARE,
    RUN,
    UNEVEN,
    _white,
    band_noise,
    inverse_gram,
    noise_scale,
    usual_pixels,
)


def test_a_ridge_keeps_the_inverse_finite():
    np.testing.assert_allclose(inverse_gram(np.zeros((2, 2))), 1e10 * np.eye(2))
    gram = np.array([[2.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(inverse_gram(gram), np.diag([1 / (2 + 3e-10), 1 / (4 + 3e-10)]))


@pytest.mark.parametrize(("n_pixels", "n_free"), [(10, 8), (3, 1), (2, 1)])
def test_degrees_of_freedom_of_the_noise(n_pixels, n_free):
    np.testing.assert_allclose(
        band_noise(np.diag([4.0, 9.0, 16.0]), n_pixels), np.array([2, 3, 4]) / np.sqrt(n_free), rtol=1e-8
    )


@pytest.mark.parametrize("n_bands", [2, 3, 8])
def test_corrupt_pixels_are_found_in_few_bands(n_bands):
    rng = np.random.default_rng(0)
    n = 140
    spectra = np.outer(1 + rng.random(n), np.ones(n_bands)) + 1e-3 * rng.standard_normal((n, n_bands))
    spectra[50] = np.where(np.arange(n_bands) % 2, 2.0, 0.0)
    found = usual_pixels(spectra, 1)
    # With so many directions as bands but one, two bands still have a rest.
    assert not found[50]
    assert found.sum() >= n - 3
    assert usual_pixels(spectra[:, :1], 1).all()


def test_few_pixels_are_all_usual():
    # Each half needs four pixels per direction: 2 * 4 * 5 of them, in runs.
    n_directions = 1 + N_SPARE
    enough = 2 * RUN * -(-4 * n_directions // RUN)
    rng = np.random.default_rng(1)
    spectra = np.outer(1 + rng.random(enough), np.ones(12)) + 1e-3 * rng.standard_normal((enough, 12))
    spectra[20, ::2] += 5.0
    assert not usual_pixels(spectra, 1)[20]
    half = (np.arange(enough) // RUN) % 2 == 0
    fewer = spectra[: int(np.flatnonzero(~half)[4 * n_directions - 2]) + 1]
    assert usual_pixels(fewer, 1).all()


def test_bright_pixels_are_measured_by_their_size():
    # What a pixel leaves grows with its brightness, and is not corrupt for that.
    rng = np.random.default_rng(2)
    unit = 1.0 + 0.01 * rng.standard_normal((280, 12))
    spectra = unit * np.where(np.arange(280) % 10 == 0, 50.0, 1.0)[:, None]
    assert usual_pixels(spectra, 1).all()
    spectra[33] = 0.0
    assert usual_pixels(spectra, 1).all()


def test_rounding_is_no_noise():
    spectra = np.outer(np.linspace(1.0, 2.0, 140), np.arange(1.0, 9.0))
    spectra[::5] += 1e-9
    assert usual_pixels(spectra, 1).all()


@pytest.mark.parametrize(("factor", "expected"), [(0.95, True), (1.05, False)])
def test_white_noise_is_at_most_twice_what_is_expected(factor, expected):
    # Eigenvalues of bands divided by their noise, per pixel.
    n_pixels, edge = 100, 1 + np.sqrt(4 / 100)
    values = np.array([50.0, 20.0, (2 * edge) ** 2 * factor, 1.0]) * n_pixels
    noise = np.array([1.0, 2.0, 3.0, 4.0])
    assert _white(np.diag(values * noise**2), noise, n_pixels, 2) is expected
    # As many endmembers as bands: the last direction is asked.
    assert _white(np.diag(values * noise**2), noise, n_pixels, 9)


@pytest.fixture
def measured(monkeypatch):
    """Let bands have given noise, and all pixels be usual."""

    def of(noise):
        monkeypatch.setattr(module, "band_noise", lambda gram, n: np.array(noise))
        monkeypatch.setattr(module, "usual_pixels", lambda some, k: np.ones(len(some), dtype=bool))
        monkeypatch.setattr(module, "_white", lambda *_: True)

    return of


def test_what_bands_are_divided_by(measured, rng, monkeypatch):
    spectra = 1.0 + rng.random((40, 10))
    uneven = [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 9.0, 9.0]
    measured(uneven)
    np.testing.assert_allclose(noise_scale(spectra, 2, "auto"), np.array(uneven) / 2.0)
    # Less than a tenth of the median counts as a tenth.
    measured([0.01, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 9.0, 9.0])
    assert noise_scale(spectra, 2, "auto")[0] == pytest.approx(0.1)
    assert noise_scale(spectra[:20], 2, True) is not None  # twice as many pixels as bands
    assert noise_scale(spectra[:19], 2, True) is None
    monkeypatch.setattr(module, "_white", lambda *_: False)
    assert noise_scale(spectra, 2, "auto") is None
    assert noise_scale(spectra, 2, True) is not None


@pytest.mark.parametrize(("factor", "divided"), [(1.0, True), (0.99, False)])
def test_noise_is_uneven_from_a_factor_on(factor, divided, measured, rng):
    spectra = 1.0 + rng.random((40, 11))
    measured([1.0] * 5 + [UNEVEN * factor] * 6)
    assert (noise_scale(spectra, 2, "auto") is not None) is divided
    size = np.median(np.sqrt(np.mean(spectra**2, axis=0)))
    measured(np.full(11, MEASURED * size * 1.01))
    assert noise_scale(spectra, 2, True) is not None
    measured(np.full(11, MEASURED * size * 0.99))
    assert noise_scale(spectra, 2, True) is None


def test_evenly_spaced_pixels_measure_the_noise(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "MAX_PIXELS", 30)
    monkeypatch.setattr(
        module, "usual_pixels", lambda some, k: (seen.append(some), np.ones(len(some), dtype=bool))[1]
    )
    spectra = np.random.default_rng(0).random((95, 3))
    noise_scale(spectra, 1, True)
    np.testing.assert_array_equal(seen[0], spectra[::3])
