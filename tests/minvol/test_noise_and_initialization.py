"""Noise level, weight and initial components."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.mixtures import mixtures

from nonneg import MinVolNMF
from nonneg.data import as_data_matrix
from nonneg.metrics import spectral_angles
from nonneg.minvol.initialization import INITS, initial_components, mv_dual
from nonneg.minvol.noise import noise_level


@pytest.mark.parametrize("snr", [20.0, 40.0])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_white_noise_is_estimated(snr, unit):
    planted = mixtures(600, 40, 4, purity=0.8, snr=snr, rng=0)
    found = noise_level(as_data_matrix(unit * planted.X), 4)
    assert found.estimated
    assert found.sigma == pytest.approx(unit * planted.sigma, rel=0.06)
    assert found.weight(600) == pytest.approx(0.25 * 600 * found.sigma**2)


def test_exact_data_and_too_few_features_have_a_floor():
    planted = mixtures(100, 10, 3, rng=0)
    for data in (planted.X, planted.X[:, :3]):
        found = noise_level(as_data_matrix(data), 3)
        assert not found.estimated
        assert 0 < found.sigma < 1e-2 * planted.X.std()


def test_a_given_noise_level_is_used():
    planted = mixtures(100, 10, 3, snr=30.0, rng=0)
    found = noise_level(as_data_matrix(planted.X), 3, 0.5)
    assert found.sigma == 0.5
    assert not found.estimated


def angles(H, found):
    return spectral_angles(found, H).min(axis=0).max()


@pytest.mark.parametrize("name", INITS)
def test_initial_components_are_near_the_true_ones(name):
    planted = mixtures(500, 30, 4, purity=0.75, snr=40.0, rng=1)
    data = as_data_matrix(planted.X)
    H = initial_components(name, data, 4, noise_level(data, 4), "sum-to-one")
    assert H.shape == (4, 30)
    # Extreme samples are no purer than 75%; both look beyond the samples.
    assert angles(planted.H, H) < 2.0


@pytest.mark.parametrize("name", INITS)
@pytest.mark.parametrize("constraint", ["sum-to-one", "at-most-one"])
def test_flat_data_have_initial_components(name, constraint):
    rng = np.random.default_rng(0)
    for X in (np.ones((12, 5)), np.outer(rng.random(12), np.ones(5)), np.eye(5)[:4], np.zeros((6, 4))):
        data = as_data_matrix(X)
        H = initial_components(name, data, 3, noise_level(data, 3), constraint)
        assert H.shape == (3, X.shape[1])
        assert np.isfinite(H).all()


def test_the_polar_simplex_is_that_of_the_samples():
    # Samples on all edges of a triangle: no smaller one holds them.
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
    shares = np.linspace(0.1, 0.9, 9)[:, None]
    points = np.concatenate(
        [shares * corners[i] + (1 - shares) * corners[j] for i, j in ((0, 1), (1, 2), (0, 2))]
    )
    around = corners.mean(axis=0) + 1.5 * (corners[[1, 2, 0]] - corners.mean(axis=0))
    moved = around + np.array([[0.3, 0.1], [0.0, 0.4], [-0.2, -0.1]])
    found = mv_dual(points, moved, 1e-4)
    nearest = np.linalg.norm(found[:, None] - corners[None], axis=2).min(axis=0)
    assert nearest.max() < 0.01


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_the_best_of_the_searches_is_not_above_the_objective_of_the_true_components(seed):
    # Near the purity 2/3 the reflected triangle is a minimum, too, and a worse one.
    planted = mixtures(400, 30, 3, purity=0.72, snr=40.0, rng=seed)
    found, true = MinVolNMF(3).fit(planted.X), MinVolNMF(3, init=planted.H).fit(planted.X)
    assert found.history_.loss[-1] <= true.history_.loss[-1] + 1e-3 * found.lam_
