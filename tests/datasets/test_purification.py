"""The model behind purification: weights, features and noise are as asked for."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import purification_model

from nonneg.datasets import purification_data
from nonneg.exceptions import NonnegError


@pytest.mark.parametrize(("weights", "mean", "square"), [("binary", 1, 1), ("uniform", 0.5, 1 / 3)])
def test_weights(weights, mean, square):
    data = purification_data(20000, 30, 10, sparsity=2, weights=weights, rng=0)
    on = data.W[data.W > 0]
    assert (data.W > 0).mean() == pytest.approx(0.2, abs=0.005)
    assert on.mean() == pytest.approx(mean, rel=0.03)
    assert (on**2).mean() == pytest.approx(square, rel=0.03)
    assert on.max() <= 1
    np.testing.assert_allclose(data.X, data.W @ data.H, atol=1e-12)
    # Independent: the off-diagonal covariances are small.
    correlations = np.corrcoef(data.W.T) - np.eye(10)
    assert np.abs(correlations).max() < 0.03


@pytest.mark.parametrize("features", ["sparse", "uniform", "signed"])
def test_features(features):
    H = purification_data(1, 100, 20, features=features, rng=0).H
    np.testing.assert_allclose(np.abs(H).sum(axis=1), 1.0)
    assert np.linalg.matrix_rank(H) == 20
    assert (H.min() < 0) == (features == "signed")
    assert ((H == 0).mean() > 0.8) == (features == "sparse")
    array = np.eye(3, 7)
    np.testing.assert_array_equal(purification_data(5, 7, 3, features=array, sparsity=1).H, array)


@pytest.mark.parametrize("noise", ["adversarial", "unbiased"])
def test_noise(noise):
    data = purification_data(20000, 30, 10, sparsity=2, noise=noise, noise_level=0.6, rng=0)
    added = data.X - data.W @ data.H
    assert np.abs(added).max() <= 0.6 / 30 + 1e-12
    assert (np.abs(added.mean(axis=0)).max() < 0.001) == (noise == "unbiased")


def test_the_model_of_the_experiments_draws_the_same_samples():
    options = {"weights": "uniform", "noise": "adversarial", "noise_level": 0.2}
    data = purification_data(40, 30, 4, sparsity=1, rng=3, **options)
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(
        purification_model(30, 4, sparsity=1, rng=rng, **options).draw(40, rng).X, data.X
    )
    uneven = purification_model(30, 4, sparsity=1, weights="heavy", proportions=[1, 1, 0.1, 2], rng=0)
    W = uneven.draw(20000, rng=1).W
    np.testing.assert_allclose((W > 0).mean(axis=0), [0.25, 0.25, 0.025, 0.5], atol=0.01)
    assert 0.05 <= W[W > 0].min() <= W.max() <= 1
    assert [len(batch) for batch in uneven.batches(250, 100, rng=5)] == [100, 100, 50]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "normal"}, "weights"),
        ({"noise": "white"}, "noise"),
        ({"features": "dense"}, "features"),
        ({"sparsity": 21}, "sparsity must be above 0 and at most n_components=20"),
        ({"features": np.eye(3)}, "Expected features of shape"),
        ({"n_samples": -1}, "n_samples must be"),
        ({"n_samples": 1.5}, "n_samples must be"),
        ({"n_features": 0}, "n_features must be"),
        ({"n_components": "x"}, "n_components must be"),
        ({"sparsity": "x"}, "sparsity must be"),
        ({"noise": "unbiased", "noise_level": np.nan}, "noise_level must be"),
        ({"noise_level": 0.5}, "contradicts noise='none'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(NonnegError, match=message):
        purification_data(**{"n_samples": 20, "rng": 0} | options)
