"""Beta divergences: values and gradients, whatever holds the data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition._nmf import _beta_divergence
from tests.references.gradients import gradients

from nonneg.data import as_data_matrix
from nonneg.losses.beta import BetaLoss, objective
from nonneg.losses.penalties import Penalties

BETAS = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
PENALTIES = Penalties(0.3, 0.2, 0.1, 0.4)


@pytest.fixture
def factors(rng):
    return rng.random((60, 4)) + 0.1, rng.random((40, 4)) + 0.1


@pytest.mark.parametrize("beta", BETAS)
def test_value_equals_scikit_learns(beta, low_rank, factors):
    W, Ht = factors
    value = objective(as_data_matrix(low_rank), W, Ht, beta=beta)
    np.testing.assert_allclose(value, _beta_divergence(low_rank, W, Ht.T, beta), rtol=1e-12)


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_value_with_zeros_in_the_data(beta, low_rank, factors):
    W, Ht = factors
    X = np.where(low_rank > np.median(low_rank), low_rank, 0.0)
    value = objective(as_data_matrix(X), W, Ht, beta=beta)
    np.testing.assert_allclose(value, _beta_divergence(X, W, Ht.T, beta), rtol=1e-12)
    if beta >= 1:
        sparse = objective(as_data_matrix(sp.csr_array(X)), W, Ht, beta=beta)
        np.testing.assert_allclose(sparse, value, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beta", BETAS)
def test_gradients_by_finite_differences(beta, weighted, low_rank, factors, rng):
    weights = rng.random(60) + 0.5 if weighted else None
    data = as_data_matrix(low_rank, weights=weights)
    W, Ht = factors
    left, right = gradients(data, W, Ht, beta=beta, penalties=PENALTIES)

    def value(W, Ht):
        return objective(data, W, Ht, beta=beta, penalties=PENALTIES)

    for _ in range(3):
        dW, dB = rng.standard_normal(W.shape), rng.standard_normal(Ht.shape)
        step = 1e-6
        slope = (value(W + step * dW, Ht + step * dB) - value(W - step * dW, Ht - step * dB)) / (2 * step)
        np.testing.assert_allclose(np.sum(left * dW) + np.sum(right * dB), slope, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.7, 2.0])
def test_every_namespace_gives_the_same(beta, xp, low_rank, factors, rng):
    W, Ht = factors
    weights = rng.random(60)
    expected = as_data_matrix(low_rank, weights=weights)
    data = as_data_matrix(xp.asarray(low_rank), weights=xp.asarray(weights))
    here = objective(data, xp.asarray(W), xp.asarray(Ht), beta=beta, penalties=PENALTIES)
    np.testing.assert_allclose(here, objective(expected, W, Ht, beta=beta, penalties=PENALTIES), rtol=1e-12)
    for got, wanted in zip(
        gradients(data, xp.asarray(W), xp.asarray(Ht), beta=beta),
        gradients(expected, W, Ht, beta=beta),
        strict=True,
    ):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "array"])
@pytest.mark.parametrize("observed_share", [0.3, 0.8])
def test_missing_entries_are_left_out(kind, observed_share, counts, rng):
    X = counts.toarray()
    mask = rng.random(X.shape) < observed_share
    W, Ht = rng.random((80, 3)) + 0.1, rng.random((50, 3)) + 0.1
    if kind == "sparse":
        data = as_data_matrix(counts, mask=sp.csr_array(mask))
    elif kind == "dense":
        data = as_data_matrix(X, mask=mask)
    else:
        strict = pytest.importorskip("array_api_strict")
        data = as_data_matrix(strict.asarray(X), mask=strict.asarray(mask))
    V = W @ Ht.T
    safe = np.where(X > 0, X, 1.0)
    terms = V - X + X * np.log(safe / V)
    place = data.to_device
    np.testing.assert_allclose(objective(data, place(W), place(Ht), beta=1.0), terms[mask].sum(), rtol=1e-12)
    left, right = gradients(data, place(W), place(Ht), beta=1.0)
    pull = mask * (1 - X / V)
    np.testing.assert_allclose(np.asarray(left), pull @ Ht, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.asarray(right), pull.T @ W, rtol=1e-9, atol=1e-9)


def test_dask_gives_the_same(counts, rng):
    da = pytest.importorskip("dask.array")
    X = counts.toarray()
    W, Ht = rng.random((80, 3)) + 0.1, rng.random((50, 3)) + 0.1
    data = as_data_matrix(da.from_array(X, chunks=(33, 20)), weights=np.arange(80.0))
    local = as_data_matrix(X, weights=np.arange(80.0))
    value = objective(data, data.to_sample_array(W), Ht, beta=1.0)
    np.testing.assert_allclose(value, objective(local, W, Ht, beta=1.0), rtol=1e-12)


def test_the_offset_raises_data_and_model(low_rank, factors):
    (W, Ht), data = factors, as_data_matrix(low_rank)
    value = BetaLoss.of(data, 0.0, offset=0.7).value(data, W, Ht)
    ratio = (low_rank + 0.7) / (W @ Ht.T + 0.7)
    np.testing.assert_allclose(value, np.sum(ratio - np.log(ratio) - 1), rtol=1e-12)
