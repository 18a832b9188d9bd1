"""The number of endmembers: published definitions, and what decides between them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from nonneg.applications.hyperspectral import n_endmembers as module
from nonneg.applications.hyperspectral.n_endmembers import (
    EndmemberCount,
    _confirmed,
    _is_flat,
    estimate_n_endmembers,
    hysime,
    virtual_dimensionality,
)
from nonneg.exceptions import InvalidDataError, NonnegError


@pytest.fixture
def pixels():
    rng = np.random.default_rng(0)
    signal = rng.dirichlet(np.ones(3), 400) @ (0.2 + rng.random((3, 12)))
    return signal + rng.standard_normal((400, 12)) * np.linspace(0.005, 0.02, 12)


def test_hysime_is_the_published_one(pixels):
    # Noise: residuals of every band on the others. Directions: eigenvectors of the correlation of what is
    # left. Kept: those that a projection onto them improves in mean square.
    noise = np.empty_like(pixels)
    for band in range(12):
        others = np.delete(pixels, band, axis=1)
        noise[:, band] = pixels[:, band] - others @ np.linalg.lstsq(others, pixels[:, band], rcond=None)[0]
    n = len(pixels)
    signal = (pixels - noise).T @ (pixels - noise) / n
    level = np.diag(np.diag(noise.T @ noise / n)) + 1e-5 * np.trace(signal) / 12 * np.eye(12)
    directions = np.linalg.eigh(signal)[1]
    change = [2 * d @ level @ d - d @ (pixels.T @ pixels / n) @ d for d in directions.T]
    assert hysime(pixels.T @ pixels / n) == sum(value < 0 for value in change) == 3


@pytest.mark.parametrize("whiten", [True, False])
def test_virtual_dimensionality_is_the_published_one(pixels, whiten):
    n = len(pixels)
    used = pixels
    if whiten:
        inverse = np.linalg.inv(np.cov(pixels.T, bias=True))
        used = pixels * np.sqrt(np.diag(inverse))
    correlation, covariance = used.T @ used / n, np.cov(used.T, bias=True)
    one, other = (np.sort(np.linalg.eigvalsh(matrix))[::-1] for matrix in (correlation, covariance))
    limits = norm.isf(1e-3) * np.sqrt(2 * (one**2 + other**2) / n)
    expected = int(np.sum(one - other > limits))
    found = virtual_dimensionality(pixels.T @ pixels / n, pixels.mean(axis=0), n, whiten=whiten)
    assert found == expected >= 1


@pytest.mark.parametrize(("signal", "expected"), [(3, True), (2, False), (12, True)])
def test_what_is_left_looks_like_noise(pixels, signal, expected):
    assert _is_flat(pixels.T @ pixels / 400, 400, signal) is expected


@pytest.mark.parametrize(("factor", "expected"), [(0.98, True), (1.02, False)])
def test_the_first_direction_of_the_rest_is_at_the_edge_of_noise(factor, expected, monkeypatch):
    # Bands that are uncorrelated: whitened by the ridge alone, their eigenvalues are those given.
    monkeypatch.setattr(module, "inverse_gram", lambda gram: np.eye(len(gram)))
    n_pixels, n_bands = 1000, 20
    edge = (1 + np.sqrt(n_bands / n_pixels)) ** 2
    # x is the first of 18 directions: x <= 1.69 edge times the mean of x and seventeen ones.
    limit = 1.69 * edge * 17 / 18 / (1 - 1.69 * edge / 18)
    values = [100.0, 50.0, factor * limit] + [1.0] * 17
    assert _is_flat(np.diag(values), n_pixels, 2) is expected
    # Hardly anything is left: pixels without noise.
    assert _is_flat(np.diag([1.0, 1.0, 1e-9, *[0.0] * 17]), n_pixels, 2)
    assert not _is_flat(np.diag([1.0, 1.0, 3e-9, *[0.0] * 17]), n_pixels, 2)


def agreeing(monkeypatch, angles):
    """Let two halves find endmembers that differ by given angles, in degrees, by their number."""
    seen = []

    def select(half, number, **options):
        assert options == {"method": "smoothed-spa", "normalize": "l1"}
        seen.append((number, half))
        turn = np.radians(angles.get(number, 0.0)) * (len(seen) % 2 == 0)
        found = np.eye(number, 20)
        found[0, :2] = np.cos(turn), 0.0
        found[0, 19] = np.sin(turn)
        return type("Result", (), {"components": found})

    monkeypatch.setattr(module, "select_anchors", select)
    return seen


@pytest.mark.parametrize(
    ("angles", "expected"), [({4: 2.1}, 3), ({4: 1.9}, 12), ({2: 3.0}, 1), ({3: 1.0, 12: 9.0}, 11)]
)
def test_two_halves_agree_within_an_angle(angles, expected, monkeypatch):
    seen = agreeing(monkeypatch, angles)
    spectra = 1.0 + np.random.default_rng(0).random((280, 20))
    assert _confirmed(spectra) == expected
    # Runs of seven pixels alternate between the halves.
    run = (np.arange(280) // 7) % 2 == 0
    np.testing.assert_array_equal(seen[0][1], spectra[run])
    np.testing.assert_array_equal(seen[1][1], spectra[~run])


@pytest.mark.parametrize(
    ("n_pixels", "n_bands", "expected"), [(98, 20, 4), (280, 3, 3), (14, 20, 1), (98, 1, 1)]
)
def test_endmembers_need_ten_pixels_each_and_bands(n_pixels, n_bands, expected, monkeypatch):
    agreeing(monkeypatch, {})
    spectra = np.ones((n_pixels, n_bands))
    assert _confirmed(spectra) == expected
    # Empty pixels do not count.
    with_empty = np.concatenate([spectra, np.zeros((500, n_bands))])
    assert _confirmed(with_empty) == expected


def test_halves_with_fewer_endmembers_confirm_fewer(monkeypatch):
    def few(half, number, **_):
        if number == 4:
            raise NonnegError("no more")
        return type("Result", (), {"components": np.eye(number, 20)})

    monkeypatch.setattr(module, "select_anchors", few)
    assert _confirmed(np.ones((280, 20))) == 3
    short = type("Result", (), {"components": np.eye(2, 20)})
    monkeypatch.setattr(module, "select_anchors", lambda *_, **__: short)
    assert _confirmed(np.ones((280, 20))) == 2
    monkeypatch.setattr(module, "select_anchors", lambda *_, **__: type("Result", (), {"components": None}))
    assert _confirmed(np.ones((280, 20))) == 1


@pytest.mark.parametrize(
    ("signal", "confirmed", "flat", "expected", "reason"),
    [
        (3, 3, False, 3, "HySime finds 3 directions of signal"),
        (2, 3, False, 2, "HySime finds 2 directions of signal"),
        (5, 3, True, 5, "HySime finds 5 directions of signal"),
        (5, 3, False, 3, "two halves of the pixels agree on 3 endmembers within 2 degrees; the 5 directions"),
        (5, 1, False, 1, "agree on 1 endmember within"),
        (1, 1, False, 1, "finds 1 direction of"),
        (0, 1, False, 1, "finds 1 direction of"),
        (99, 3, True, 6, "finds 6 directions"),
    ],
)
def test_what_decides_on_the_number(signal, confirmed, flat, expected, reason, monkeypatch):
    monkeypatch.setattr(module, "hysime", lambda gram: signal)
    monkeypatch.setattr(module, "_confirmed", lambda spectra: confirmed)
    monkeypatch.setattr(module, "_is_flat", lambda *_: flat)
    found = estimate_n_endmembers(np.random.default_rng(0).random((30, 6)))
    assert (found.recommended, found.confirmed) == (expected, confirmed)
    assert reason in found.reason
    assert found == EndmemberCount.from_dict(found.as_dict())


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (5,)])
def test_two_pixels_with_two_bands_are_needed(shape):
    with pytest.raises(InvalidDataError, match="at least two pixels with two bands"):
        estimate_n_endmembers(np.ones(shape))
    assert estimate_n_endmembers(np.array([[1.0, 2.0], [2.0, 1.0]])).recommended >= 1


def test_the_estimate_has_both_virtual_dimensionalities(monkeypatch):
    monkeypatch.setattr(module, "virtual_dimensionality", lambda gram, mean, n, *, whiten: (n, whiten))
    monkeypatch.setattr(module, "_confirmed", lambda spectra: 1)
    found = estimate_n_endmembers(np.random.default_rng(0).random((30, 6)))
    assert (found.virtual_dimensionality, found.hfc) == ((30, True), (30, False))


@pytest.mark.parametrize("poor", [0, 1])
def test_one_half_with_fewer_endmembers_is_enough(poor, monkeypatch):
    seen = []

    def select(half, number, **_):
        seen.append(number)
        n_found = min(number, 2) if len(seen) % 2 == poor else number
        return type("Result", (), {"components": np.eye(n_found, 20)})

    monkeypatch.setattr(module, "select_anchors", select)
    assert _confirmed(np.ones((280, 20))) == 2
