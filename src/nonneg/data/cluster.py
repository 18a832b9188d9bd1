"""Passes over chunked data on the workers of a Dask cluster, whose scheduler does not grow with the passes.

A pass is one task for each thread, over the chunks on its worker. It depends on them, on one small task that
fetches the shared arguments (H among them) from the scheduler, and on the rows of W that an earlier pass left
beside the chunks. Small results are added in a tree on the workers, and one of them comes to the client.

A lost worker is Dask's to replace: it runs the tasks again whose results are gone. If W depended on its
predecessor for good, the scheduler would remember every pass, and a lost worker would cost all of them. So
after some passes the rows are *detached*: they go through the client to the scheduler, which keeps them, and
tasks without dependencies take their place. The answer is the same to the last digit, whatever is lost.
`LostRowsError` is raised where the cluster was restarted, and the caller recomputes W for the last H.

Dask keeps its last thousand messages to each worker, and so the tasks in them. Therefore these are few, and
large values are not in them: tasks get them by name.
"""

from __future__ import annotations

import asyncio
import importlib
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from itertools import count, pairwise
from typing import Any

import dask
import numpy as np
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import futures_of, get_worker, wait
from distributed.protocol import Serialize, to_serialize
from distributed.protocol.pickle import dumps, loads
from distributed.utils import sync

from nonneg._arrays import to_numpy
from nonneg.data.block_tasks import (
    Result,
    Rows,
    Work,
    as_result,
    flattened,
    load_and_run,
    make_block,
    mapped,
    run_blocks,
    same,
    size_of,
    sum_tree,
)
from nonneg.data.matrix import RowFunction
from nonneg.exceptions import LostRowsError, NonnegError

# The part of the workers' memory that X may take to be kept there. Dask begins to spill at 60%.
KEPT_FRACTION = 0.5
# Passes after which rows are detached. W then travels once, and a lost worker costs at most this number of
# passes over its chunks, which the others share.
DETACHED_PASSES = 10
# Seconds until tasks that Dask forgot are looked for, and at most between two searches. A worker takes longer
# to start than the first, and a search is short against the second.
FIRST_SEARCH, LAST_SEARCH = 1.0, 30.0
NO_WORKERS = 600.0  # seconds without a worker after which a fit ends; a batch system may take minutes for one
KINDS = ("shared", "pass", "small", "sum", "packed", "rows")  # of tasks


class Cluster:
    """The chunks of a matrix on the workers of a cluster."""

    def __init__(self, client: Any, entries: list[Any], weights: list[Any], masks: list[Any]) -> None:
        self.client = client
        self.entries, self.weights, self.masks = entries, weights, masks
        self.blocks: list[Any] | None = None  # futures of the chunks, where they are kept in memory
        self.places: list[str | None] = [None] * len(entries)  # the worker of each kept chunk
        self.ranks: Sequence[int] = range(len(entries))  # of the chunks, in the tree of sums
        self.workers: dict[str, int] = {}  # threads of the workers, as of the last pass
        self.moved: list[Any] = []  # chunks that went to another worker since the last pass
        self.is_lost = False  # whether the cluster forgot all of it
        self._asking = ThreadPoolExecutor(1)
        self._name = uuid.uuid4().hex[:12]
        self._count = count()
        # The scheduler never forgets a group of tasks (those with keys that begin alike), and begins another
        # one when all tasks of it were forgotten: so one of each kind stays.
        keys = [f"nonneg-{kind}-{self._new_name()}" for kind in KINDS]
        self._kinds = launch(client, [(dict.fromkeys(keys, (same, None)), {})], keys)

    def keep(self, n_bytes: int | None) -> bool:
        """Load the chunks into the workers' memory if they fit; `n_bytes` is None where only they know."""
        sizes = worker_sizes(self.client)
        limit = sum(memory or np.inf for memory, _ in sizes)
        if n_bytes is None:
            one = (self.entries[0], self.weights[0], self.masks[0])
            first = dask.delayed(size_of)(dask.delayed(make_block)(0, *one))
            of_first, of_device = self.client.compute(first).result()
            n_bytes = of_first * len(self.entries)
            if of_device is not None:  # one GPU for each worker, which has its first chunk already
                limit = (of_device + of_first) * len(sizes)
        if n_bytes <= KEPT_FRACTION * limit:
            self.workers = self.client.nthreads()
            # What is in the workers' memory already stays where it is.
            placed = not futures_of(self.entries) and self.workers
            with _quietly():
                made = self._place() if placed else self._make(range(len(self.entries)))
                self.blocks = self.client.compute(made)
            self._finish(self.blocks)
            self._free(self.blocks)
            self._find_blocks()
            if not placed:  # neighbors on one worker, so that their sums need not travel
                order = sorted(range(len(self.places)), key=lambda chunk: (str(self.places[chunk]), chunk))
                self.ranks = np.argsort(order).tolist()
        return self.blocks is not None

    def _make(self, chunks: Sequence[int]) -> list[Any]:
        call = dask.delayed(make_block, pure=False)
        return [call(at, self.entries[at], self.weights[at], self.masks[at]) for at in chunks]

    def run(
        self, function: RowFunction, states: Sequence[Rows], picks: list[tuple[int, int]], shared: Any
    ) -> tuple[Rows, Result]:
        """Call the function on every chunk; return its rows, and the sum of its small results."""
        items, members, total = self._submit(function, states, picks, shared)
        # Asked while the workers compute, because the answer takes its time.
        asked = self._asking.submit(self.client.nthreads)
        try:
            self._finish([total])
            summed = self.client.gather(total)
        except (CancelledError, asyncio.CancelledError) as error:
            self.is_lost = True  # the cluster was restarted
            raise LostRowsError() from error
        self._free(self.moved)
        self.moved = []
        self._follow_workers(asked.result())
        if not summed.forms:
            return Rows([], []), summed
        depth = 1 + max((state.depth for state in states), default=0)
        if len(self.workers) > 1:
            self._unbind([item.key for item in items])
        made = Rows(items, members, depth)
        return self._detached(made) if depth >= DETACHED_PASSES else made, summed

    def _submit(
        self, function: RowFunction, states: Sequence[Rows], picks: list[tuple[int, int]], shared: Any
    ) -> tuple[list[Any], list[list[int]], Any]:
        name = self._new_name()
        key = f"nonneg-shared-{name}"
        store(self.client, key, Work(function, picks, shared, self.ranks))
        graph: list[tuple[dict[str, Any], dict[str, Any]]] = [({key: (stored,)}, {})]
        if self.blocks is None:
            members = [[chunk] for chunk in range(len(self.entries))]
            (work,) = launch(self.client, graph, [key])
            results = self._load_and_run(work, states)
            graph, keys = [], []
        else:
            members = bundles(self.places, self.workers)
            results = keys = [f"nonneg-pass-{name}-{index}" for index in range(len(members))]
            for one, chunks in zip(keys, members, strict=True):
                given = [[self.blocks[at] for at in chunks], *(state.of(chunks) for state in states)]
                task = {one: (run_blocks, key, *flattened(given))}
                graph.append((task, self._bound(self.places[chunks[0]])))
        sums, last = sum_tree(name, results)
        *made, total = launch(self.client, [*graph, (sums, {})], [*keys, last])
        return made or results, members, total

    def _bound(self, worker: str | None) -> dict[str, Any]:
        # Where rows are large for Dask's idea of a network, it would run all tasks on one worker. The only
        # worker needs no word, and a task that waits for it would wait for good when another takes its place.
        there = worker in self.workers and len(self.workers) > 1
        return {"workers": [worker], "allow_other_workers": True} if there else {}

    def _unbind(self, keys: Sequence[str]) -> None:
        # Not by `_free`, which leaves a line in the scheduler's log. They are unknown after a restart.
        with suppress(KeyError):
            self.client.sync(self.client.scheduler.set_restrictions, worker=dict.fromkeys(keys, ()))

    def _load_and_run(self, work: Any, states: Sequence[Rows]) -> list[Any]:
        call = dask.delayed(load_and_run, pure=False)
        blocks = zip(self.entries, self.weights, self.masks, strict=True)
        with _quietly():
            return self.client.compute(
                [
                    call(chunk, *block, work, *flattened([state.of([chunk]) for state in states]))
                    for chunk, block in enumerate(blocks)
                ]
            )

    def _new_name(self) -> str:
        return f"{self._name}-{next(self._count)}"

    def _detached(self, rows: Rows) -> Rows:
        name = self._new_name()
        calls = {f"nonneg-packed-{name}-{at}": (packed, item) for at, item in enumerate(rows.items)}
        values = self.client.gather(launch(self.client, [(calls, {})], list(calls)))
        keys = [f"nonneg-rows-{name}-{index}" for index in range(len(values))]
        graph = []
        for key, value, members in zip(keys, values, rows.members, strict=True):
            store(self.client, key, value)
            graph.append(({key: (unpacked,)}, self._bound(self.places[members[0]])))
        made = Rows(launch(self.client, graph, keys), rows.members)
        if len(self.workers) > 1:
            self._finish(made.items)
            self._unbind(keys)
        return made

    def _free(self, futures: list[Any]) -> None:
        # A task keeps the worker it was meant for. If it is run again while no worker is there, Dask waits
        # for that one, though others were allowed.
        if futures:
            self.client.run_on_scheduler(free_tasks, [one.key for one in futures])

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
                self._free(futures)
                seconds = min(2 * seconds, LAST_SEARCH)

    def rows_of(self, blocks: list[Any]) -> Rows:
        """Return the rows of an array that did not come out of a pass."""
        call = dask.delayed(as_result, pure=False)
        with _quietly():
            items = [call(chunk, block) for chunk, block in enumerate(blocks)]
            return Rows(self.client.compute(items), [[chunk] for chunk in range(len(items))])

    def _place(self) -> list[Any]:
        # Consecutive chunks on one worker, so that their sums need not travel. They are bound loosely, with
        # all that they depend on, until they are loaded.
        blocks: list[Any] = []
        for worker, chunks in shares(len(self.entries), self.workers):
            with dask.annotate(workers=[worker], allow_other_workers=True):
                blocks += self._make(chunks)
        return blocks

    def _find_blocks(self) -> None:
        assert self.blocks is not None
        holders = self.client.who_has(self.blocks)
        self.places = [next(iter(holders.get(block.key, ())), None) for block in self.blocks]

    def _follow_workers(self, workers: dict[str, int]) -> None:
        # Workers that joined or came back get their part of the kept chunks.
        changed = workers != self.workers
        self.workers = workers
        if self.blocks is None or not workers or not (changed or None in self.places):
            return
        self._find_blocks()
        if None in self.places:
            return  # chunks are being computed again; the next pass looks once more
        for index, target in moves(self.places, workers):
            moved = self.client.submit(
                same,
                self.blocks[index],
                key=f"nonneg-moved-{self._new_name()}",
                pure=False,
                workers=[target],
                allow_other_workers=True,
            )
            self.blocks[index], self.places[index] = moved, target
            self.moved.append(moved)


def launch(client: Any, graph: list[tuple[dict[str, Any], dict[str, Any]]], keys: list[str]) -> list[Any]:
    """Send parts of a graph, each with its annotations, in one message; return futures of some keys."""
    layers = {next(iter(tasks)): MaterializedLayer(tasks, notes) for tasks, notes in graph}
    return client.get(HighLevelGraph(layers, {name: set() for name in layers}), keys, sync=False)


def _quietly() -> Any:
    # H and rows of W travel inside of tasks on purpose: a task can be run again, what is scattered cannot.
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"})


def worker_sizes(client: Any) -> list[tuple[int, int]]:
    """Return memory limit (0: none) and number of threads of every worker."""
    workers = client.scheduler_info()["workers"].values()
    return [(int(worker["memory_limit"] or 0), int(worker["nthreads"])) for worker in workers]


def shares(n_chunks: int, workers: dict[str, int]) -> list[tuple[str, range]]:
    """Return consecutive chunks for each worker, in proportion to its threads."""
    edges = np.cumsum([0, *workers.values()]) * n_chunks / sum(workers.values())
    cuts = np.round(edges).astype(int).tolist()
    return [(one, range(*cut)) for one, cut in zip(workers, pairwise(cuts), strict=True)]


def bundles(places: Sequence[str | None], workers: dict[str, int]) -> list[list[int]]:
    """Return the chunks that one task works on: a part of those on a worker for each of its threads."""
    held: dict[str, list[int]] = {}
    found: list[list[int]] = []
    for chunk, place in enumerate(places):
        if place in workers:
            held.setdefault(str(place), []).append(chunk)
        else:
            found.append([chunk])  # it is being loaded again, on whatever workers
    for worker, chunks in held.items():
        found += [part.tolist() for part in np.array_split(chunks, min(workers[worker], len(chunks)))]
    return sorted(found)


def moves(places: Sequence[str | None], workers: dict[str, int]) -> list[tuple[int, str]]:
    """Return which chunks go to which workers, so that each has a part in proportion to its threads."""
    held: dict[str, list[int]] = {worker: [] for worker in workers}
    for index, place in enumerate(places):
        if place in held:
            held[place].append(index)
    found: list[tuple[int, str]] = []
    while True:
        most = max(held, key=lambda worker: len(held[worker]) / workers[worker])
        least = min(held, key=lambda worker: (len(held[worker]) + 1) / workers[worker])
        if (len(held[least]) + 1) / workers[least] >= len(held[most]) / workers[most]:
            return found
        index = held[most].pop()
        held[least].append(index)
        found.append((index, least))


def store(client: Any, key: str, value: Any) -> None:
    """Let the scheduler keep a value for the task of this name, until that is forgotten."""
    client.set_metadata([key], to_serialize(dumps(value)))


def stored() -> Any:
    """Return the value that the scheduler keeps for the task that runs."""
    worker = get_worker()
    key = worker.get_current_task()
    found = sync(worker.loop, worker.scheduler.get_metadata, keys=[key], default=None)
    if found is None:
        raise LostRowsError()
    return loads(found.data if isinstance(found, Serialize) else found)  # as it was, within one process


def packed(result: Result) -> tuple[Any, Any]:
    """Return rows as NumPy arrays, which pass through a client that has no GPU, and where they belong."""
    first = next(iter(result.rows.values()))[0]
    return mapped(to_numpy, result.rows), None if isinstance(first, np.ndarray) else _place_of(first)


def _place_of(array: Any) -> tuple[str, str]:
    return type(array).__module__.partition(".")[0], str(array.device)


def unpacked() -> Result:
    """Return rows that the scheduler keeps to where they were."""
    rows, place = stored()
    if place is None:
        return Result(rows, {})
    library, device = place
    xp = importlib.import_module(library)
    options = {"device": device} if library == "torch" else {}
    return Result(mapped(lambda array: xp.asarray(array, **options), rows), {})


def free_tasks(keys: Sequence[str], dask_scheduler: Any) -> None:
    """On the scheduler: let tasks and all that they depend on run anywhere, if they are done or forgotten."""
    found = {dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks}
    left = list(found)
    while left:
        new = left.pop().dependencies - found
        found |= new
        left += new
    bound = [one for one in found if one.loose_restrictions and one.worker_restrictions]
    # Not those that are about to run: they are where they should be.
    bound = [one for one in bound if one.state in ("memory", "released", "no-worker")]
    for one in bound:
        one.worker_restrictions = None
    forgotten = {one.key: "processing" for one in bound if one.state == "no-worker"}
    dask_scheduler.transitions(forgotten, stimulus_id=f"nonneg-free-{time.time()}")
