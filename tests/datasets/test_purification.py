"""The model behind purification: weights, features and noise are as asked for."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import purification_data, purification_model
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError


@pytest.mark.parametrize(
    ("weights", "mean", "square", "smallest"),
    [("binary", 1, 1, 1), ("uniform", 0.5, 1 / 3, 0), ("heavy", 0.1177, None, 0.05)],
)
def test_weights(weights, mean, square, smallest):
    data = purification_data(20000, 30, 10, sparsity=2, weights=weights, rng=0)
    on = data.W[data.W > 0]
    assert (data.W > 0).mean() == pytest.approx(0.2, abs=0.005)
    assert on.mean() == pytest.approx(mean, rel=0.03)
    if square is not None:
        assert (on**2).mean() == pytest.approx(square, rel=0.03)
    assert smallest <= on.min()
    assert on.max() <= 1
    np.testing.assert_allclose(data.X, data.W @ data.H, atol=1e-12)
    # Independent: the off-diagonal covariances are small.
    correlations = np.corrcoef(data.W.T) - np.eye(10)
    assert np.abs(correlations).max() < 0.03


@pytest.mark.parametrize("features", ["sparse", "uniform", "signed"])
def test_features(features):
    H = purification_model(100, 20, features=features, rng=0).H
    np.testing.assert_allclose(np.abs(H).sum(axis=1), 1.0)
    assert np.linalg.matrix_rank(H) == 20
    assert (H.min() < 0) == (features == "signed")
    assert ((H == 0).mean() > 0.8) == (features == "sparse")
    given = np.eye(3, 7)
    np.testing.assert_array_equal(purification_model(7, 3, features=given, sparsity=1).H, given)


@pytest.mark.parametrize("noise", ["adversarial", "correlated", "unbiased"])
def test_noise(noise):
    data = purification_data(20000, 30, 10, sparsity=2, noise=noise, noise_level=0.6, rng=0)
    added = data.X - data.W @ data.H
    assert np.abs(added).max() <= 0.6 / 30 + 1e-12
    means = np.abs(added.mean(axis=0))
    weights = data.W - data.W.mean(axis=0)
    correlated = np.abs(weights.T @ added).max() / (len(added) * 0.02 * 0.4)
    assert (means.max() < 0.001) == (noise == "unbiased")
    assert (correlated > 0.2) == (noise == "correlated")


def test_proportions_streams_and_seeds():
    model = purification_model(30, 4, sparsity=1, proportions=[1, 1, 0.1, 2], rng=0)
    W = model.draw(20000, rng=1).W
    np.testing.assert_allclose((W > 0).mean(axis=0), [0.25, 0.25, 0.025, 0.5], atol=0.01)
    batches = list(model.batches(250, 100, rng=5, dtype=np.float32))
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert batches[0].dtype == np.float32
    np.testing.assert_array_equal(model.draw(50, rng=3).X, model.draw(50, rng=3).X)
    one, other = (purification_data(40, 20, 5, rng=7).X for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_errors():
    with pytest.raises(UnknownNameError, match="weights"):
        purification_model(weights="normal")
    with pytest.raises(UnknownNameError, match="noise"):
        purification_model(noise="white")
    with pytest.raises(UnknownNameError, match="features"):
        purification_model(features="dense")
    with pytest.raises(InvalidParameterError, match="sparsity must be above 0 and at most n_components=20"):
        purification_model(sparsity=21)
    with pytest.raises(InvalidParameterError, match="proportions must be 20 positive numbers"):
        purification_model(proportions=[1.0])
    with pytest.raises(ShapeError, match="Expected features of shape"):
        purification_model(features=np.eye(3))


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_samples", -1), ("n_samples", 1.5), ("n_features", 0), ("n_components", "x"), ("sparsity", "x")],
)
def test_counts(name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} must be"):
        purification_data(**{"n_samples": 20, "rng": 0, name: value})


@pytest.mark.parametrize("level", [-1.0, np.nan, np.inf, "x"])
def test_sizes_of_noise(level):
    with pytest.raises(InvalidParameterError, match="noise_level must be"):
        purification_model(noise="unbiased", noise_level=level)


def test_a_size_of_noise_needs_a_kind():
    with pytest.raises(InvalidParameterError, match="contradicts noise='none'"):
        purification_model(noise_level=0.5)


def test_batches_hold_at_least_a_sample():
    with pytest.raises(InvalidParameterError, match="batch_size must be"):
        next(purification_model(rng=0).batches(10, 0))
