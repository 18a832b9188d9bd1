"""Separable generators: anchors, weights, and noise of the size that was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import middle_points

from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import InvalidParameterError


def test_dirichlet_points_lie_between_the_anchors():
    data = separable_dirichlet(120, 30, 7, rng=0)
    np.testing.assert_allclose(data.X, data.W @ data.H)
    np.testing.assert_allclose(data.W.sum(axis=1), 1.0)
    np.testing.assert_array_equal(data.W[data.anchors], np.eye(7))
    np.testing.assert_array_equal(data.X[data.anchors], data.H)
    assert 0 <= data.H.min() <= data.H.max() <= 1
    # The anchors are spread over the rows.
    assert sorted(data.anchors) != list(range(7))


@pytest.mark.parametrize("snr", [5.0, 20.0])
def test_noise_has_the_ratio_of_the_paper(snr):
    data = separable_dirichlet(2000, 50, 10, snr=snr, rng=1)
    clean = data.W @ data.H
    sigma = np.std(data.X - clean)
    assert 10 * np.log10(np.sum(clean**2) / (clean.size * sigma**2)) == pytest.approx(snr, abs=0.1)
    # The anchors are noisy like all other points.
    assert np.std((data.X - clean)[data.anchors]) == pytest.approx(sigma, rel=0.2)


def test_uniform_weights_have_the_moments_of_the_simplex():
    weights = separable_dirichlet(20_000, 2, 4, rng=2).W
    np.testing.assert_allclose(weights.mean(axis=0), 1 / 4, atol=0.01)
    np.testing.assert_allclose(weights.var(axis=0), (1 / 4) * (3 / 4) / 5, rtol=0.05)
    sharp = separable_dirichlet(5000, 2, 4, alpha=0.1, rng=2).W
    assert np.mean(sharp.max(axis=1)) > 0.8


def test_middle_points():
    data = middle_points(50, 10, rng=0)
    assert data.X.shape == (55, 50)
    np.testing.assert_allclose(data.H.sum(axis=1), 1.0)
    np.testing.assert_allclose(data.X, data.W @ data.H)
    rest = np.delete(np.arange(55), data.anchors)
    assert np.all(np.sort(data.W[rest], axis=1)[:, -2:] == 0.5)
    assert len(np.unique(data.W, axis=0)) == 55


def test_noise_pushes_middle_points_away_from_the_mean():
    data = middle_points(50, 10, snr=10, rng=3)
    clean = data.W @ data.H
    noise = data.X - clean
    np.testing.assert_array_equal(noise[data.anchors], 0.0)
    rest = np.delete(np.arange(55), data.anchors)
    outward = clean[rest] - data.H.mean(axis=0)
    np.testing.assert_allclose(noise[rest] / outward, noise[rest][0, 0] / outward[0, 0])
    assert noise[rest][0, 0] / outward[0, 0] > 0
    ratio = 10 * np.log10(np.sum(clean**2) / np.sum(noise**2))
    assert ratio == pytest.approx(10)


@pytest.mark.parametrize("make", [separable_dirichlet, middle_points])
def test_seed_and_dtype(make):
    first, second, other = make(snr=10, rng=5), make(snr=10, rng=5), make(snr=10, rng=6)
    np.testing.assert_array_equal(first.X, second.X)
    assert not np.array_equal(first.X, other.X)
    single = make(snr=10, rng=5, dtype=np.float32)
    assert single.X.dtype == single.W.dtype == single.H.dtype == np.float32
    np.testing.assert_allclose(single.X, first.X, rtol=1e-3, atol=1e-5)


def test_wrong_parameters():
    with pytest.raises(InvalidParameterError, match="from 1 to n_samples=10 anchors"):
        separable_dirichlet(10, 5, 11)
    with pytest.raises(InvalidParameterError, match=r"alpha (must be a finite number|above 0)"):
        separable_dirichlet(10, 5, 3, alpha=0)
    with pytest.raises(InvalidParameterError, match="n_components must be an integer of at least 1, got 0"):
        middle_points(5, 0)


@pytest.mark.parametrize(
    "make", [lambda snr: separable_dirichlet(9, 4, 3, snr=snr), lambda snr: middle_points(4, 3, snr=snr)]
)
@pytest.mark.parametrize("snr", ["a", True, float("nan"), float("inf")])
def test_noise_is_given_in_decibels(make, snr):
    with pytest.raises(InvalidParameterError, match="snr must be None or a finite number"):
        make(snr)


@pytest.mark.parametrize("alpha", ["a", 0.0, float("inf")])
def test_the_spread_of_weights_is_a_number_above_zero(alpha):
    with pytest.raises(InvalidParameterError, match=r"alpha (must be a finite number|above 0)"):
        separable_dirichlet(9, 4, 3, alpha=alpha)
