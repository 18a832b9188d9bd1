"""Passes on a cluster: what the scheduler remembers, what travels, and where chunks are."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from unittest.mock import patch

import cloudpickle
import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, factorize
from nonneg.data import as_data_matrix
from nonneg.exceptions import LostRowsError, NonnegWarning
from nonneg.solvers.registry import SOLVERS

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
chunked = pytest.importorskip("nonneg.data.chunked")
cluster = pytest.importorskip("nonneg.data.cluster")


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(0.5, size=(64, 3)) @ rng.gamma(0.5, size=(3, 8)) + 0.01 * rng.random((64, 8))


LOADED = []  # in the module, so that workers in this process find it


def load(block):
    LOADED.append(len(block))
    return block


def remembered(client):
    """How many tasks the scheduler knows."""
    return len(client.cluster.scheduler.tasks)


def test_the_scheduler_forgets_earlier_iterations(dask_client, X):
    counts, groups = [], []
    spans = dask_client.cluster.scheduler.extensions["spans"].spans

    def callback(progress):
        counts.append(remembered(dask_client))
        groups.append(sum(len(span.groups) for span in spans.values()))

    factorize(
        da.from_array(X, chunks=(8, 8)), 3, solver="hals", init="random", rng=0, max_iter=24, tol=0,
        callback=callback,
    )  # fmt: skip
    # A lineage would add several tasks per iteration. Dask forgets with a delay, so a few may be left.
    assert max(counts[-8:]) - max(counts[3:12]) < 50
    assert groups[-1] == groups[12]  # of tasks, which Dask never forgets


def test_a_pass_brings_one_small_result_to_the_client(dask_client, X, monkeypatch):
    data = as_data_matrix(da.from_array(X, chunks=(4, 8)))
    W = data.to_sample_array(np.ones((64, 2)))
    data.squared_norm()
    gathered = []
    gather = type(dask_client).gather
    monkeypatch.setattr(
        type(dask_client),
        "gather",
        lambda self, futures, **options: gathered.append(futures) or gather(self, futures, **options),
    )
    np.testing.assert_allclose(data.transposed_times(W), X.T @ np.ones((64, 2)))
    assert len(gathered) == 1
    assert not isinstance(gathered[0], list)


def test_chunks_are_loaded_once(dask_client, X):
    LOADED.clear()
    array = da.from_array(X, chunks=(4, 8)).map_blocks(load, meta=np.empty((0, 0)))
    data = as_data_matrix(array)
    for _ in range(3):
        data.times(np.ones((8, 2)))
    assert len(LOADED) == 16
    np.testing.assert_array_equal(data.take_rows([63, 0, 17, -2]), X[[63, 0, 17, 62]])
    assert len(LOADED) == 16


def test_chunks_that_do_not_fit_are_loaded_in_every_pass(dask_client, X, monkeypatch):
    monkeypatch.setattr("nonneg.data.cluster.KEPT_FRACTION", 0.0)
    for array in (X, sp.csr_array(np.where(X > 0.2, X, 0))):
        dense = array if array is X else array.toarray()
        chunked = da.from_array(dense, chunks=(27, 8)).map_blocks(
            type(array) if array is not X else np.asarray
        )
        result = factorize(chunked, 2, max_iter=4, tol=0, init="random", rng=0, solver="hals")
        expected = factorize(dense, 2, max_iter=4, tol=0, init="random", rng=0, solver="hals")
        np.testing.assert_allclose(result.W.compute(), expected.W, rtol=1e-8, atol=1e-9)


def logged(client):
    """The pickled messages that Dask's scheduler remembers."""
    streams = client.cluster.scheduler.stream_comms.values()
    return b"".join(cloudpickle.dumps(list(stream.recent_message_log)) for stream in streams)


def test_what_dask_logs_of_a_pass_is_small(dask_client):
    """The last thousand messages to each worker stay in the scheduler's memory."""
    X = np.random.default_rng(0).random((32, 3000))
    known = dask_client.cluster.scheduler
    lengths, before = [], len(known.task_metadata)

    def callback(progress):
        lengths.append(len(logged(dask_client)))
        assert len(known.task_metadata) <= before + cluster.DETACHED_PASSES + 4  # H of so many, and W

    options = {"solver": "hals", "init": "random", "rng": 0, "max_iter": 10, "tol": 0}
    factorize(da.from_array(X, chunks=(4, -1)), 4, callback=callback, **options)
    assert np.median(np.diff(lengths)) < 12_000  # H takes 96,000 bytes
    gc.collect()
    for _ in range(1000):
        if len(known.task_metadata) <= before:  # what an earlier test left may be gone by now
            break
        time.sleep(0.02)
    assert len(known.task_metadata) <= before


def test_rows_stay_beside_their_chunks(dask_client):
    """And do not travel to where the sums are added."""
    X = np.random.default_rng(0).random((4000, 8))
    data = as_data_matrix(da.from_array(X, chunks=(500, 8)))
    data.squared_norm()

    def sent():
        moved = dask_client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        return sum(moved.values())

    before = sent()
    W = data.times(np.ones((8, 10)))
    assert sent() - before < 0.2 * W.nbytes


def test_tasks_that_dask_forgot_are_found(dask_client, X, monkeypatch):
    """Bound to a worker that is gone, they were run again while no other was there."""
    monkeypatch.setattr("nonneg.data.cluster.FIRST_SEARCH", 0.05)
    data = as_data_matrix(da.from_array(X, chunks=(32, 8)))
    data.squared_norm()
    shard = data._held.shards[0]
    gone = "inproc://gone/1/1"
    data._held.shards[0] = stuck = dask_client.submit(
        lambda one: one, shard, workers=[gone], allow_other_workers=False
    )

    def forget(dask_scheduler):
        task = dask_scheduler.tasks.get(stuck.key)
        if task is None or task.state != "no-worker":
            return False
        task.loose_restrictions = True
        return True

    while not dask_client.run_on_scheduler(forget):
        time.sleep(0.01)
    np.testing.assert_allclose(
        data.transposed_times(data.times(np.ones((8, 2)))), X.T @ (X @ np.ones((8, 2)))
    )


def test_restarts_go_on_where_all_copies_are_lost(X):
    """The one that lost its workers takes W anew; the others never notice."""
    plain, calls = SOLVERS["anls"].run, []

    def losing(data, W, Ht, *, max_iter, **options):
        calls.append(max_iter)
        if len(calls) > 1:
            return plain(data, W, Ht, max_iter=max_iter, **options)
        error = LostRowsError()
        error.run = plain(data, W, Ht, max_iter=3, **options)
        raise error

    settings = {"n_init": 2, "rng": 0, "max_iter": 10, "tol": 0.0, "n_jobs": 1}
    expected = factorize(X, 3, solver="anls", **settings)
    with (
        patch.dict(SOLVERS, {"losing": replace(SOLVERS["anls"], implementation=losing)}),
        pytest.warns(NonnegWarning, match="in iteration 4. W is recomputed"),
    ):
        found = factorize(X, 3, solver="losing", **settings)
    assert calls == [10, 7, 10]
    assert found.n_iter == 10
    assert found.loss < 1.1 * expected.loss


def test_transform_on_the_cluster(dask_client, X):
    array = da.from_array(X, chunks=(10, 8))
    model = NMF(2, init="random", random_state=0, max_iter=5, tol=1.0).fit(array)
    np.testing.assert_allclose(model.transform(array).compute(), model.transform(X), rtol=1e-8, atol=1e-10)
