"""The Gaussian composite model: the transform makes its frames independent with variances W H."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import gaussian_composite, gaussian_composite_model
from nonneg.exceptions import InvalidParameterError


def test_the_transform_is_the_orthonormal_dct():
    model = gaussian_composite_model(rng=0)
    m = np.arange(10)
    for q in range(10):
        expected = np.sqrt((1 if q == 0 else 2) / 10) * np.cos(np.pi * (2 * m + 1) * q / 20)
        np.testing.assert_allclose(model.transform[q], expected, atol=1e-14)
    assert model.W.shape == (50, 5)
    assert model.H.shape == (5, 10)
    np.testing.assert_allclose(model.H.sum(axis=1), 1.0)


def test_factors_are_gamma_and_their_product_is_not_changed_by_the_scaling():
    model = gaussian_composite_model(3000, 400, 5, rng=1)
    # Before the scaling, entries have mean 2 and variance 4; sums of 400 of them have mean 800.
    sums = model.W.mean(axis=0) / 2.0
    np.testing.assert_allclose(sums, 800, rtol=0.2)
    entries = model.H * sums[:, None]
    assert entries.mean() == pytest.approx(2.0, rel=0.05)
    assert entries.var() == pytest.approx(4.0, rel=0.15)
    rng = np.random.default_rng(1)
    drawn = rng.gamma(1.0, 2.0, size=(5, 400)), rng.gamma(1.0, 2.0, size=(3000, 5))
    np.testing.assert_allclose(model.variances, drawn[1] @ drawn[0], rtol=1e-12)


def test_moments_of_the_realizations():
    model = gaussian_composite_model(6, 4, 2, rng=2)
    data = model.draw(40000, rng=3)
    transformed = data.Y @ model.transform.T
    moments = np.einsum("snm,snl->nml", transformed, transformed) / len(data.Y)
    expected = model.variances[:, :, None] * np.eye(4)
    scale = np.sqrt(model.variances[:, :, None] * model.variances[:, None, :])
    assert np.abs((moments - expected) / scale).max() < 0.03
    assert np.abs(transformed.mean(axis=0) / np.sqrt(model.variances)).max() < 0.03


def test_the_same_factors_with_fresh_realizations():
    model = gaussian_composite_model(rng=4)
    first, second = model.draw(2, rng=5), model.draw(3, rng=6, dtype=np.float32)
    np.testing.assert_array_equal(first.W, model.W)
    assert not np.array_equal(first.Y, second.Y[:2])
    assert second.Y.dtype == second.H.dtype == np.float32
    np.testing.assert_array_equal(first.Y, model.draw(2, rng=5).Y)
    assert gaussian_composite(3, 7, 4, 2, rng=0).Y.shape == (3, 7, 4)


def test_bad_numbers():
    with pytest.raises(InvalidParameterError, match="n_realizations must be at least 1, got 0"):
        gaussian_composite(0)
    with pytest.raises(InvalidParameterError, match="at least 1, got 50, 0 and 5"):
        gaussian_composite_model(frame_length=0)
