"""Shards of chunks in the memory of a Dask cluster, passes over them, and the connection to it.

A shard is a few neighboring chunks, on one worker. H and what else all shards share is kept by the scheduler;
one small task fetches it, and the tasks of the shards depend on that one, on the shard, and on the rows of W
that an earlier pass left beside it.

A lost worker is Dask's to replace: it runs the tasks again whose results are gone. If W depended on its
predecessor for good, the scheduler would remember every pass, and a lost worker would cost all of them. So
after some passes the rows are *detached*: they go through the client to the scheduler, which keeps them, and
tasks without dependencies take their place. The answer is the same to the last digit, whatever is lost and on
any number of workers. After a restart comes `LostRowsError`, and the caller recomputes W for the last H.

Dask keeps its last thousand messages to each worker, and so the tasks in them. Therefore large values are
not in them: tasks get them by name.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from sys import getsizeof
from typing import Any
from weakref import WeakSet

import dask
import numpy as np
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import Client, Security, WorkerPlugin, get_worker, rpc, wait
from distributed.protocol import Serialize, to_serialize
from distributed.protocol.pickle import dumps, loads
from distributed.protocol.serialize import dask_serialize
from distributed.utils import sync

from nonneg._arrays import to_numpy
from nonneg._version import __version__
from nonneg.data.block_tasks import Result, Rows, Work, added, mapped, pass_tasks, run_shard, same
from nonneg.exceptions import InvalidParameterError, LostRowsError, NonnegError

# The part of the workers' memory that X may take to be kept there. Dask begins to spill at 60%.
KEPT_FRACTION = 0.5
# Passes after which rows are detached. W then travels once, and a lost worker costs at most this number of
# passes over its chunks, which the others share.
DETACHED_PASSES = 10
# At least two for each thread: workers that join get their part as long as there are no more than before.
SHARDS_PER_THREAD = 2
# Seconds until tasks that Dask forgot are looked for, and at most between two searches. A worker takes longer
# to start than the first, and a search is short against the second.
FIRST_SEARCH, LAST_SEARCH = 1.0, 30.0
NO_WORKERS = 600.0  # seconds without a worker after which a fit ends; a batch system may take minutes for one
CONNECT_SECONDS = 8.0  # a scheduler answers in milliseconds, a busy one in a second or two
KINDS = ("work", "pass", "small", "sum", "packed", "rows")  # of tasks
FAN_IN = 8  # results that one task adds up: a power of two, see `added`

_checked: WeakSet[Any] = WeakSet()


class Cluster:
    """The chunks of a matrix on the workers of a cluster."""

    def __init__(
        self, client: Any, single: list[Any], cut: Callable[[int], list[Any]], n_bytes: int | None
    ) -> None:
        # `single` are tasks that load one chunk each, `cut` returns some that load a number of shards;
        # `n_bytes` is None where only the workers know the size of the chunks.
        self.client = client
        self.is_lost = False  # whether the cluster forgot all of it
        self.places: list[str | None] = []  # the worker of each shard, where they are kept
        self.workers: dict[str, int] = client.nthreads()  # threads of the workers, as of the last pass
        self._name, self._count = uuid.uuid4().hex[:12], count()
        # The scheduler never forgets a group of tasks (those with keys that begin alike), and begins another
        # one when all tasks of it were forgotten: so one of each kind stays.
        groups = {f"nonneg-{kind}-{self._name}": (same, None) for kind in KINDS}
        self._groups = self._launch([(groups, {})], list(groups))
        self.shards = single
        self.keeps = self._fits(n_bytes)  # whether the shards are in the workers' memory
        if self.keeps:
            n_shards = max(1, SHARDS_PER_THREAD * sum(self.workers.values()))
            self.shards = self.compute(cut(min(n_shards, len(single))))
            self._finish(self.shards)
            self._find_shards()

    def _fits(self, n_bytes: int | None) -> bool:
        if n_bytes is None:
            n_bytes = len(self.shards) * dask.delayed(getsizeof)(self.shards[0]).compute()
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return n_bytes <= KEPT_FRACTION * sum(worker["memory_limit"] or np.inf for worker in workers)

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Begin to compute tasks; return what stands for their results."""
        # Rows of W travel inside of tasks on purpose: a task can be run again, what is scattered cannot.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"}):
            return list(self.client.compute(list(tasks), optimize_graph=False))

    def run(self, work: Work, rows: Sequence[Rows]) -> tuple[Rows, Result]:
        """Call the function on every chunk; return its rows, and the sum of its small results."""
        try:
            for held in rows:
                if held.depth >= DETACHED_PASSES:
                    self._detach(held)
            made, total = self._begin(work, rows)
            workers = self.client.nthreads()  # asked while the workers compute, because it takes its time
            self._finish([total])
            summed = self.client.gather(total)
        except (CancelledError, asyncio.CancelledError) as error:
            self.is_lost = True  # the cluster was restarted
            raise LostRowsError() from error
        self._follow_workers(workers)
        return made, summed

    def _begin(self, work: Work, rows: Sequence[Rows]) -> tuple[Rows, Any]:
        """Send the tasks of a pass; return what stands for their rows and for the sum."""
        name, key = self._stored("work", work)
        graph: list[tuple[dict[str, Any], dict[str, Any]]] = [({key: (stored,)}, {})]
        if self.keeps:
            results = keys = [f"nonneg-pass-{name}-{number}" for number in range(len(self.shards))]
            for number, (own, shard) in enumerate(zip(keys, self.shards, strict=True)):
                task = (run_shard, key, shard, *(held.items[number] for held in rows))
                graph.append(({own: task}, self._near(self.places[number])))
        else:
            (sent,) = self._launch(graph, [key])
            results = self.compute(pass_tasks(self.shards, sent, rows))
            graph, keys = [], []
        sums = sum_tree(name, results)
        *made, total = self._launch([*graph, (sums, {})], [*keys, next(reversed(sums))])
        return Rows(made or results, 1 + max((held.depth for held in rows), default=0)), total

    def _launch(self, graph: list[tuple[dict[str, Any], dict[str, Any]]], keys: list[str]) -> list[Any]:
        """Send parts of a graph, each with its annotations, in one message; return futures of some keys."""
        layers = {next(iter(tasks)): MaterializedLayer(tasks, notes) for tasks, notes in graph}
        return self.client.get(HighLevelGraph(layers, {name: set() for name in layers}), keys, sync=False)

    def _stored(self, kind: str, value: Any) -> tuple[str, str]:
        """Let the scheduler keep a value until the task of a key is forgotten; return a name and the key."""
        name = f"{self._name}-{next(self._count)}"
        self.client.set_metadata([f"nonneg-{kind}-{name}"], to_serialize(dumps(value)))
        return name, f"nonneg-{kind}-{name}"

    def _detach(self, rows: Rows) -> None:
        pack = {f"nonneg-packed-{uuid.uuid4().hex}": (packed, item) for item in rows.items}
        values = self.client.gather(self._launch([(pack, {})], list(pack)))
        keys = [self._stored("rows", value)[1] for value in values]
        near = map(self._near, self.places or [None] * len(keys))
        graph = [({key: (stored,)}, notes) for key, notes in zip(keys, near, strict=True)]
        rows.items, rows.depth = self._launch(graph, keys), 0

    def _near(self, place: str | None) -> dict[str, Any]:
        # Dask would send shards to workers that have less to do at the moment, in every pass. The only worker
        # needs no word, and a task that waits for it would wait for good when another takes its place.
        there = place in self.workers and len(self.workers) > 1
        return {"workers": [place], "allow_other_workers": True} if there else {}

    def _finish(self, futures: list[Any]) -> None:
        seconds, seen = FIRST_SEARCH, time.monotonic()
        while True:
            try:
                wait(futures, timeout=seconds)
                return
            except TimeoutError:
                seen = time.monotonic() if self.client.nthreads() else seen
                if time.monotonic() - seen > NO_WORKERS:
                    raise NonnegError(
                        f"The cluster has had no workers for {NO_WORKERS:g} s. Start workers and fit again; "
                        "with checkpoint= (--checkpoint), a fit resumes where it stopped."
                    ) from None
                self.client.run_on_scheduler(free_tasks, [future.key for future in futures])
                seconds = min(2 * seconds, LAST_SEARCH)

    def _find_shards(self) -> None:
        holders = self.client.who_has(self.shards)
        self.places = [next(iter(holders.get(shard.key, ())), None) for shard in self.shards]

    def _follow_workers(self, workers: dict[str, int]) -> None:
        # Workers that joined or came back get their part of the kept shards.
        changed = workers != self.workers
        self.workers = workers
        if not self.keeps or not workers or not (changed or None in self.places):
            return
        self._find_shards()
        if None in self.places:
            return  # shards are being loaded again; the next pass looks once more
        for number, target in moves(self.places, workers):
            options = {"workers": [target], "allow_other_workers": True}
            self.shards[number] = self.client.submit(same, self.shards[number], pure=False, **options)
            self.places[number] = target


def sum_tree(name: str, results: Sequence[Any]) -> dict[str, Any]:
    """Return tasks that add up results; the last one has the sum.

    Rows stay on their workers: to the first of a few, only the small results of the others come.
    """
    tasks: dict[str, Any] = {f"nonneg-small-{name}-{i}": (added, small) for i, small in enumerate(results)}
    level = list(tasks)
    while len(level) > 1:
        above = []
        for start in range(0, len(level), FAN_IN):
            above.append(f"nonneg-sum-{name}-{len(tasks)}")
            tasks[above[-1]] = (added, *level[start : start + FAN_IN])
        level = above
    return tasks


def moves(places: Sequence[str | None], workers: dict[str, int]) -> list[tuple[int, str]]:
    """Return which shards go to which workers, so that each has a part in proportion to its threads."""
    held: dict[str, list[int]] = {worker: [] for worker in workers}
    for index, place in enumerate(places):
        if place in held:
            held[place].append(index)
    planned: list[tuple[int, str]] = []
    while True:
        most = max(held, key=lambda worker: len(held[worker]) / workers[worker])
        least = min(held, key=lambda worker: (len(held[worker]) + 1) / workers[worker])
        if (len(held[least]) + 1) / workers[least] >= len(held[most]) / workers[most]:
            return planned
        index = held[most].pop()
        held[least].append(index)
        planned.append((index, least))


def stored() -> Any:
    """Return the value that the scheduler keeps for the task that runs."""
    worker = get_worker()
    key = worker.get_current_task()
    value = sync(worker.loop, worker.scheduler.get_metadata, keys=[key], default=None)
    if value is None:
        raise LostRowsError()
    return loads(value.data if isinstance(value, Serialize) else value)  # as it was, within one process


def packed(result: Result) -> Result:
    """Return rows as NumPy arrays, which pass through a client that has no GPU."""
    return result._replace(rows=mapped(to_numpy, result.rows), sums=())


def free_tasks(keys: Sequence[str], dask_scheduler: Any) -> None:
    """On the scheduler: let tasks and all that they depend on run anywhere, if they are done or forgotten."""
    tasks = {dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks}
    open_ = list(tasks)
    while open_:
        new = open_.pop().dependencies - tasks
        tasks |= new
        open_ += new
    bound = [task for task in tasks if task.loose_restrictions and task.worker_restrictions]
    # Not those that are about to run: they are where they should be.
    bound = [task for task in bound if task.state in ("memory", "released", "no-worker")]
    for task in bound:
        task.worker_restrictions = None
    forgotten = {task.key: "processing" for task in bound if task.state == "no-worker"}
    dask_scheduler.transitions(forgotten, stimulus_id=f"nonneg-free-{time.time()}")


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Use a running cluster inside the block."""
    _check_address(address)
    with Client(address, timeout=CONNECT_SECONDS) as client:
        if not client.nthreads():
            raise InvalidParameterError(
                f"The Dask scheduler at {address} has no workers. Start some: dask worker {address}"
            )
        check_versions(client)
        yield client


def _check_address(address: str) -> None:
    # Not left to `Client`, which waits for ever for some servers that are no schedulers.
    async def ask() -> str:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
            return str((await server.identity())["type"])

    try:
        reply = asyncio.run(asyncio.wait_for(ask(), CONNECT_SECONDS))
    except Exception as error:  # bytes of another protocol can mean anything
        reply = str(error) or type(error).__name__
    if reply != "Scheduler":
        raise InvalidParameterError(
            f"No Dask scheduler answers at {address} ({reply}). Expected an address such as "
            "tcp://host:8786, which `dask scheduler` prints when it starts."
        )


def check_versions(client: Any) -> None:
    """Refuse a cluster, when it is first used, whose scheduler or workers have another `nonneg` or none."""
    if client in _checked:
        return
    answers = client.get_versions(packages=["nonneg"])
    processes = {"the scheduler": answers["scheduler"], **answers["workers"]}
    # A worker that is lost meanwhile has no answer.
    packages = {address: known["packages"] for address, known in processes.items() if known}
    others = [address for address, known in packages.items() if known.get("nonneg") != __version__]
    if others:
        raise NonnegError(
            f"Some processes of the Dask cluster have another version of nonneg, or none: "
            f"{', '.join(others[:3])}. Install nonneg=={__version__}, the version here, where the "
            "scheduler and the workers run, and start them again."
        )
    _checked.add(client)


class SendFromGPU(WorkerPlugin):  # type: ignore[misc]
    """Let workers, also those to come, send arrays that are on a GPU."""

    # Dask converts tensors to NumPy arrays, which fails on a GPU, and then it asks for them again and again.
    # For arrays of CuPy it needs another library. Both can be pickled.

    name = "nonneg-send-from-gpu"

    def __init__(self, library: str) -> None:
        self.library = library

    def setup(self, worker: Any) -> None:
        """Called by Dask on every worker."""
        library = import_module(self.library)
        dask_serialize.register(library.Tensor if self.library == "torch" else library.ndarray, _pickled)


def _pickled(array: Any) -> Any:
    raise NotImplementedError("Dask tries one serializer after another: the next one pickles the array")
