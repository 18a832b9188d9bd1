"""Chunks on a GPU, on worker processes: the loss is that of NumPy arrays, also after a worker was killed."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from nonneg import factorize
from nonneg._arrays import to_numpy

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]


def to_torch(rows):
    import torch

    return torch.asarray(rows, device="cuda")


def to_cupy(rows):
    import cupy

    return cupy.asarray(rows)


@pytest.fixture(scope="module", params=[to_torch, to_cupy], ids=["torch", "cupy"])
def to_gpu(request):
    """Move rows to the GPU; skip where there is none."""
    library = pytest.importorskip(request.param.__name__.removeprefix("to_"))
    if not (library.cuda.is_available() if library.__name__ == "torch" else library.is_available()):
        pytest.skip("there is no GPU")
    return request.param


@pytest.fixture(scope="module")
def gpu_cluster():
    """A client of two worker processes that share the GPU."""
    from benchmarks.cluster import cluster

    with cluster(2, "12GB", set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(0.5, size=(600, 3)) @ rng.gamma(0.5, size=(3, 20)) + 0.01 * rng.random((600, 20))


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
def test_worker_processes_keep_chunks_on_the_gpu(to_gpu, gpu_cluster, X, beta_loss):
    options = {"beta_loss": beta_loss, "max_iter": 12, "tol": 0, "init": "random", "rng": 0}
    with gpu_cluster.as_current():
        result = factorize(da.from_array(X, chunks=(60, 20)).map_blocks(to_gpu), 3, **options)
        W = result.W.compute()
    expected = factorize(X, 3, solver=result.solver, **options)
    assert type(W).__module__.partition(".")[0] == to_gpu.__name__.removeprefix("to_")
    assert str(W.device) != "cpu"
    assert result.history.loss == pytest.approx(expected.history.loss, rel=1e-6)
    assert result.loss == pytest.approx(expected.loss, rel=1e-6)
    np.testing.assert_allclose(to_numpy(W), expected.W, rtol=1e-5, atol=1e-7)


def test_a_killed_worker_loses_no_rows(to_gpu, gpu_cluster, X):
    killed = []

    def kill(progress):
        if progress.n_iter == 5:
            killed.append(min(gpu_cluster.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    options = {"max_iter": 12, "tol": 0, "init": "random", "rng": 0}
    with gpu_cluster.as_current():
        gpu_cluster.wait_for_workers(2, timeout=120)
        result = factorize(da.from_array(X, chunks=(60, 20)).map_blocks(to_gpu), 3, callback=kill, **options)
    assert killed
    assert result.loss == pytest.approx(factorize(X, 3, solver=result.solver, **options).loss, rel=1e-6)
