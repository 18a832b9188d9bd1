"""Estimates of the number of endmembers: published definitions, and what they agree on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import estimate_n_endmembers
from nonneg.datasets import scene_like
from nonneg.exceptions import InvalidDataError, InvalidParameterError


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
    assert estimate_n_endmembers(pixels)["HySime"] == sum(value < 0 for value in change) == 3


def test_virtual_dimensionality_is_the_published_one(pixels):
    n = len(pixels)
    used = pixels * np.sqrt(np.diag(np.linalg.inv(np.cov(pixels.T, bias=True))))
    correlation, covariance = used.T @ used / n, np.cov(used.T, bias=True)
    one, other = (np.sort(np.linalg.eigvalsh(matrix))[::-1] for matrix in (correlation, covariance))
    limits = norm.isf(1e-3) * np.sqrt(2 * (one**2 + other**2) / n)
    assert estimate_n_endmembers(pixels)["NWHFC"] == int(np.sum(one - other > limits)) >= 1


@pytest.mark.parametrize("k", [2, 3, 5])
def test_white_noise_leaves_the_true_number(k):
    rng = np.random.default_rng(k)
    signal = rng.dirichlet(np.ones(k), 2000) @ (0.2 + rng.random((k, 30)))
    noisy = signal + 0.005 * rng.standard_normal(signal.shape)
    noisy[[5, 1000]] += rng.random((2, 30))  # corrupt pixels do not count
    estimate = estimate_n_endmembers(noisy)
    assert (estimate["HySime"], estimate["eigenvalues"]) == (k, k)
    assert estimate_n_endmembers(1e6 * noisy) == estimate


def test_estimates_that_disagree_are_no_number():
    # Noise that neighboring bands share is no white noise.
    scene = scene_like(40, 60, 80, n_materials=4, noise=0.01, rng=0).X
    estimate = estimate_n_endmembers(scene)
    assert len(set(estimate.values())) == 3
    with pytest.raises(InvalidParameterError, match=r"estimates disagree: HySime.*n_endmembers= \(-k\)"):
        Unmixing().fit(scene.reshape(40, 60, 80))


def test_the_number_is_used_where_estimates_agree(tmp_path):
    scene = scene_like(30, 40, 80, n_materials=4, snr=30, rng=0).X.reshape(30, 40, 80)
    model = Unmixing(random_state=0).fit(scene)
    assert model.n_endmembers_ == 4
    assert list(model.n_endmembers_estimates_.values()).count(4) >= 2
    assert Unmixing(4, method="spa").fit(scene).n_endmembers_estimates_ is None


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (5,), (8, 9)])
def test_as_many_pixels_as_bands_are_needed(shape):
    values = np.random.default_rng(0).random(shape)
    with pytest.raises(InvalidDataError, match="as many pixels that are not zero as bands"):
        estimate_n_endmembers(values)
    with pytest.raises(InvalidDataError, match="as many pixels that are not zero as bands"):
        estimate_n_endmembers(np.zeros((7, 5)))
    assert estimate_n_endmembers(np.array([[1.0, 2.0], [2.0, 1.0]]))["HySime"] >= 1
