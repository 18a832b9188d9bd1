"""Consensus on a GPU: the restarts of a rank are one batch and give the programs of the processor."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg._devices as devices
from nonneg import ConsensusNMF
from nonneg.applications import MutationalSignatures
from nonneg.consensus import restarts
from nonneg.solvers import batched

pytestmark = pytest.mark.torch


@pytest.fixture
def batches(torch, monkeypatch):
    """The sizes of batches on a GPU, or else on the processor with PyTorch."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(devices, "checked_device", lambda device: torch.device("cpu") if device else None)
        monkeypatch.setattr(batched, "_on_gpu", lambda data: data.container == "array")
    sizes = []
    run = batched.run_batched
    for module in (batched, restarts):
        monkeypatch.setattr(module, "run_batched", lambda *given: sizes.append(len(given[2])) or run(*given))
    return sizes


@pytest.fixture
def catalog(rng):
    """Counts of three patterns, 60 x 30."""
    return rng.poisson(30 * rng.gamma(0.3, size=(60, 3)) @ rng.gamma(0.3, size=(3, 30)) + 0.01)


@pytest.mark.parametrize("options", [{}, {"beta_loss": "kullback-leibler", "resample": "poisson"}])
def test_programs_are_those_of_the_processor(batches, catalog, options):
    X = catalog[catalog.sum(axis=1) > 0][:, catalog.sum(axis=0) > 0]
    given = {"n_init": 3, "random_state": 0, "max_iter": 300, **options}
    host, device = (ConsensusNMF([3], device=at, **given).fit(X) for at in (None, "cuda"))
    assert batches == [3]
    assert isinstance(device.components_, np.ndarray)
    assert isinstance(device.transform(X), np.ndarray)
    np.testing.assert_array_equal(host.restarts_.seed, device.restarts_.seed)
    np.testing.assert_allclose(device.restarts_.loss, host.restarts_.loss, rtol=1e-3)
    np.testing.assert_allclose(
        device.components_, host.components_, rtol=0.05, atol=0.01 * host.components_.max()
    )


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    "options", [{}, {"beta_loss": "kullback-leibler", "resample": "poisson"}, {"resample": "bootstrap"}]
)
@pytest.mark.parametrize("dense", [True, False])
def test_sparse_counts_are_one_batch_where_they_fit(batches, catalog, monkeypatch, options, dense):
    X = sp.csr_array(catalog[catalog.sum(axis=1) > 0][:, catalog.sum(axis=0) > 0].astype(float))
    if not dense:
        monkeypatch.setattr(restarts, "DENSE_MEMORY", 0.0)
        monkeypatch.setattr(restarts, "free_memory", lambda device: 1.0)
    given = {"n_init": 3, "random_state": 0, "max_iter": 300, "density_threshold": 2.0, **options}
    host, device = (ConsensusNMF([3], device=at, **given).fit(X) for at in (None, "cuda"))
    assert batches == ([3] if dense and options.get("resample") != "bootstrap" else [])
    assert isinstance(device.transform(X), np.ndarray)
    np.testing.assert_allclose(device.restarts_.loss, host.restarts_.loss, rtol=1e-3)
    np.testing.assert_allclose(
        device.components_, host.components_, rtol=0.05, atol=0.01 * host.components_.max()
    )


def test_signatures_pass_the_device_on(batches, rng):
    signatures = rng.dirichlet(np.full(96, 0.1), size=2)
    X = rng.poisson(rng.gamma(1.0, 500.0, size=(20, 2)) @ signatures)
    model = MutationalSignatures([2], n_init=4, random_state=0, device="cuda").fit(X)
    assert batches == [4]
    assert model.signatures_.shape == (2, 96)


def test_a_bootstrap_runs_one_restart_after_another(batches, catalog):
    model = ConsensusNMF(
        [2], n_init=3, random_state=0, resample="bootstrap", device="cuda", density_threshold=2.0,
        max_iter=50, tol=1e-2,
    )  # fmt: skip
    model.fit(catalog + 1)
    assert batches == []
