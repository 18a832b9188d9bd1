"""Worker processes that are killed, join, pause and are restarted: the answer stays what it was."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

from nonneg import NMF, factorize
from nonneg.exceptions import NonnegError
from nonneg.iteration.checkpoint import Checkpoint

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")
MAX_ITER = 20
FIT = {"n_components": 3, "init": "random", "max_iter": MAX_ITER, "tol": 0.0}


@pytest.fixture(autouse=True)
def _ends():
    """End a test that waits for a cluster in vain."""

    def give_up(number, frame):
        raise TimeoutError("the cluster did not answer for three minutes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(180)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(0.5, size=(600, 3)) @ rng.gamma(0.5, size=(3, 20)) + 0.01 * rng.random((600, 20))


def chunked(X):
    return da.from_array(X, chunks=(60, 20))  # more than are added at once


def kill(client, number):
    """Kill a worker process; its nanny will start another."""
    pids = client.run(os.getpid, on_error="ignore")
    os.kill(pids[sorted(pids)[number % len(pids)]], signal.SIGKILL)


def fit(X, callback=None, **options):
    result = factorize(X, solver="hals", rng=0, callback=callback, **FIT, **options)
    return result.W.compute() if hasattr(result.W, "compute") else result.W, result


@pytest.fixture(scope="module")
def undisturbed(process_cluster, X):
    """What a fit on the cluster gives if nothing happens."""
    with process_cluster.as_current():
        W, result = fit(chunked(X))
    return W, np.asarray(result.H), result.history.loss


@pytest.mark.covering(0)
@pytest.mark.parametrize("kills", [(10,), (10, 11), (5, 10, 11, 18)])
def test_kills_change_no_digit(kills, dask_processes, X, undisturbed):
    local, in_memory = fit(X)
    np.testing.assert_allclose(undisturbed[0], local, rtol=1e-8, atol=1e-10)
    assert undisturbed[2][-1] == pytest.approx(in_memory.history.loss[-1], rel=1e-6)
    killed = []

    def callback(progress):
        # At 50% of the fit the other one as well, before the first is back.
        if progress.n_iter in set(kills) - {11}:
            dask_processes.wait_for_workers(2, timeout=120)
        if progress.n_iter in kills:
            kill(dask_processes, len(killed) % 2)
            killed.append(progress.n_iter)

    W, result = fit(chunked(X), callback)
    assert killed == list(kills)
    np.testing.assert_array_equal(W, undisturbed[0])
    np.testing.assert_array_equal(result.H, undisturbed[1])
    assert result.history.loss == undisturbed[2]


@pytest.mark.slow
def test_kills_of_one_of_three_workers_change_no_digit(X, undisturbed):
    from benchmarks.cluster import cluster

    killed = []

    def callback(progress):
        if progress.n_iter in (4, 9, 16):
            client.wait_for_workers(3, timeout=120)
            pids = client.run(os.getpid, on_error="ignore")
            killed.append(pids[sorted(pids)[progress.n_iter % 3]])
        if progress.n_iter in (5, 10, 17):  # at once
            os.kill(killed[-1], signal.SIGKILL)

    with cluster(3, "600MB", set_as_default=False) as client, client.as_current():
        expected, right = fit(chunked(X))  # shards of their own, as there are more workers
        W, result = fit(chunked(X), callback)
    assert len(killed) == 3
    np.testing.assert_array_equal(W, expected)
    assert result.history.loss == right.history.loss
    np.testing.assert_allclose(W, undisturbed[0], rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@pytest.mark.torch
def test_tensors_on_worker_processes(dask_processes, torch, X):
    options = {"n_components": 3, "solver": "hals", "init": "random", "rng": 0, "max_iter": 4, "tol": 0}
    result = factorize(chunked(X).map_blocks(torch.asarray), **options)
    W = result.W.compute()
    assert isinstance(W, torch.Tensor)
    np.testing.assert_allclose(W, factorize(X, **options).W, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_kills_during_the_last_encoding_and_transform(dask_processes, X):
    model = NMF(random_state=0, **FIT | {"max_iter": 5})
    expected = model.fit_transform(X)

    def callback(progress):
        if progress.n_iter == 5:
            threading.Timer(0.03, kill, (dask_processes, 0)).start()

    model.set_params(callback=callback)
    W = model.fit_transform(chunked(X))
    np.testing.assert_allclose(W.compute(), expected, rtol=1e-7, atol=1e-9)
    dask_processes.wait_for_workers(2, timeout=120)
    threading.Timer(0.03, kill, (dask_processes, 1)).start()
    np.testing.assert_allclose(model.transform(chunked(X)).compute(), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_a_moment_without_workers_changes_no_digit(X):
    """The only worker is killed in the middle of the fit, and once more when W waits there."""
    from benchmarks.cluster import cluster

    killed = []

    def callback(progress):
        if progress.n_iter == 13:  # some passes after the rows went to the scheduler
            kill(client, 0)
            killed.append(progress.n_iter)

    with cluster(1, "900MB", set_as_default=False) as client, client.as_current():
        expected, right = fit(chunked(X))
        result = factorize(chunked(X), solver="hals", rng=0, callback=callback, **FIT)
        assert killed == [13]
        client.wait_for_workers(1, timeout=120)
        kill(client, 0)
        np.testing.assert_array_equal(result.W.compute(), expected)
    np.testing.assert_array_equal(result.H, right.H)
    assert result.history.loss == right.history.loss


def test_a_cluster_whose_workers_stay_away_ends_the_fit(monkeypatch, X):
    monkeypatch.setattr("nonneg.data.cluster.FIRST_SEARCH", 0.2)
    monkeypatch.setattr("nonneg.data.cluster.NO_WORKERS", 0.5)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):

        def callback(progress):
            if progress.n_iter == 3:
                cluster.sync(cluster.workers[0].close)

        with pytest.raises(NonnegError, match="has had no workers"):
            factorize(chunked(X), rng=0, callback=callback, **FIT)


def hog(seconds, fraction):
    """Take memory until Dask pauses this worker, and give it back some time later."""
    import psutil
    from distributed import get_worker

    worker = get_worker()
    wanted = int(fraction * worker.memory_manager.memory_limit) - psutil.Process().memory_info().rss
    held = [np.ones(max(wanted, 0) // 8)]
    threading.Timer(seconds, held.clear).start()
    return worker.address


@pytest.mark.slow
def test_a_paused_worker_changes_no_digit(dask_processes, X, undisturbed):
    paused = []

    def status():
        workers = dask_processes.scheduler_info()["workers"].values()
        return sum(worker["status"] == "paused" for worker in workers)

    def callback(progress):
        if progress.n_iter == 4:
            address = next(iter(dask_processes.nthreads()))
            dask_processes.submit(hog, 1.0, 0.88, workers=[address], pure=False).result()
            for _ in range(40):
                if status():
                    break
                time.sleep(0.05)
        paused.append(status())

    W, _ = fit(chunked(X), callback)
    assert max(paused) == 1, "no worker was paused"
    np.testing.assert_array_equal(W, undisturbed[0])


@pytest.mark.slow
def test_a_restarted_cluster_resumes(dask_processes, X, undisturbed, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)

    def restart(progress):
        if progress.n_iter == 12 and not (tmp_path / "restarted").exists():
            (tmp_path / "restarted").touch()
            dask_processes.restart(timeout=120)

    # Where the restart is noticed decides whether this call or the next one resumes.
    with contextlib.suppress(CancelledError, asyncio.CancelledError):
        fit(chunked(X), restart, checkpoint=tmp_path / "saved")
    assert (tmp_path / "restarted").exists()
    W, result = fit(chunked(X), checkpoint=tmp_path / "saved")
    np.testing.assert_array_equal(W, undisturbed[0])
    assert result.n_iter == MAX_ITER
    assert result.history.loss == undisturbed[2]
