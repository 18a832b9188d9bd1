"""Passes over chunked data on the workers of a Dask cluster, whose scheduler does not grow with the passes.

Neighboring chunks are loaded in groups. A pass is one task for each thread, over the groups on its worker. It
depends on them, on one small task that fetches the shared arguments (H among them) from the scheduler, and on
the rows of W that an earlier pass left beside the chunks. Small results are added in a tree on the workers,
and one of them comes to the client.

If W depended on its predecessor for good, the scheduler would remember every pass, and a lost worker would
cost all of them. So after some passes the rows are *detached*: a task without dependencies takes them over
on the worker where they are, and a second worker gets a copy while the next pass runs (the scheduler, where
there is only one). If one of the two is lost, Dask runs its task again, which finds the other copy, or, where
that was on its way, waits until Dask has repeated the pass that made the rows. The passes since then are
repeated for the lost chunks alone. The answer is the same to the last digit. If both are lost,
`LostRowsError` is raised and the caller recomputes W for the last H.

Dask keeps its last thousand messages to each worker, and so the tasks in them. Therefore these are few, and
large values are not in them.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any

import dask
import numpy as np
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import futures_of, wait

from nonneg.data.block_tasks import (
    Result,
    Rows,
    Work,
    as_result,
    flattened,
    load_and_run,
    make_block,
    make_blocks,
    run_blocks,
    same,
    size_of,
    sum_tree,
)
from nonneg.data.matrix import RowFunction
from nonneg.data.placement import bundles, group_size, moves, passes_at_risk, shares, worker_sizes
from nonneg.data.row_copies import free_tasks, packed, store, stored, take_over, unpacked
from nonneg.exceptions import LostRowsError, NonnegError

# The part of the workers' memory that X may take to be kept there. Dask begins to spill at 60%.
KEPT_FRACTION = 0.5
# Passes after which the rows of a single worker are copied: the scheduler gets all of W. For more workers see
# `passes_at_risk`.
LONE_PASSES = 10
# Workers from which copies travel during the next pass. When one of two is lost, the other loads its chunks
# and does all of the current pass, which takes two iterations; to repeat one before it would be a third.
FEWEST_BESIDE = 3
# Seconds for which copies are awaited; they take as long as sending W once.
LONGEST_WAIT = 30.0
LOOK_SECONDS = 0.2  # between two looks whether all workers are there
# Seconds until tasks that Dask forgot are looked for, and at most between two searches. A worker takes longer
# to start than the first, and a search is short against the second.
FIRST_SEARCH, LAST_SEARCH = 1.0, 30.0
NO_WORKERS = 600.0  # seconds without a worker after which a fit ends; a batch system may take minutes for one
KINDS = ("shared", "pass", "small", "sum", "rows", "copy")  # of tasks


class Cluster:
    """The chunks of a matrix on the workers of a cluster."""

    def __init__(self, client: Any, entries: list[Any], weights: list[Any], masks: list[Any]) -> None:
        self.client = client
        self.entries, self.weights, self.masks = entries, weights, masks
        self.group_size = 1
        self.blocks: list[Any] | None = None  # futures of the groups, where they are kept in memory
        self.places: list[str | None] = [None] * len(entries)  # the worker of each kept group
        self.ranks: Sequence[int] = range(len(entries))  # of the chunks, in the tree of sums
        self.workers: dict[str, int] = {}  # threads of the workers, as of the last pass
        self.moved: list[Any] = []  # groups that went to another worker since the last pass
        self.is_lost = False  # whether the cluster forgot all of it
        self.is_outgrown = False  # whether there are more threads than groups for them
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
            if placed:
                self.group_size = group_size(len(self.entries), self.workers)
            with _quietly():
                made = self._place() if placed else self._make(range(self.n_groups))
                self.blocks = self.client.compute(made)
            self._finish(self.blocks)
            self._free(self.blocks)
            self._find_blocks()
            if not placed:  # neighbors on one worker, so that their sums need not travel
                order = sorted(range(self.n_groups), key=lambda group: (str(self.places[group]), group))
                self.ranks = np.argsort(order).tolist()
        return self.blocks is not None

    @property
    def n_groups(self) -> int:
        """The number of groups of chunks."""
        return -(-len(self.entries) // self.group_size)

    @property
    def chunk_places(self) -> list[tuple[int, int]]:
        """The group of every chunk, and its place in it."""
        return [divmod(chunk, self.group_size) for chunk in range(len(self.entries))]

    def _members(self, group: int) -> slice:
        return slice(group * self.group_size, (group + 1) * self.group_size)

    def _chunks(self, groups: Sequence[int]) -> list[int]:
        chunks = range(len(self.entries))
        return [chunk for group in groups for chunk in chunks[self._members(group)]]

    def _make(self, groups: Sequence[int]) -> list[Any]:
        call = dask.delayed(make_blocks, pure=False)
        parts = (self.entries, self.weights, self.masks)
        return [
            call(group * self.group_size, *(part[self._members(group)] for part in parts)) for group in groups
        ]

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
        made = Rows(items, members, depth, frozenset().union(*(state.copies for state in states)))
        if len(self.workers) > 1:
            self._unbind([item.key for item in items])
        return self._secured(made), summed

    def _secured(self, made: Rows) -> Rows:
        # Now, and not with the next pass: until here the workers hold the states as well. Then they let go of
        # them, and where Dask had moved a task to the worker with the copy, both would be lost with it.
        if len(self.workers) > 1:
            n_passes = passes_at_risk(self.n_groups, self.workers)
        else:
            n_passes = LONE_PASSES
        due = made.depth >= n_passes
        there = [self._await(copies.items, patient=due) for copies in made.copies]
        if None in there:
            return made  # copies of the rows before these are on their way
        apart = all(there) and all(self._are_apart(made, copies) for copies in made.copies)
        if apart:
            for copies in made.copies:
                self._settle(copies)
        return self._detach(made) if due or not apart else made

    def _settle(self, copies: Rows) -> None:
        if copies.before is not None:
            copies.before = None
            self._unbind(copies.twins)

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
            parts = bundles(self.places, self.workers)
            members = [self._chunks(part) for part in parts]
            results = keys = [f"nonneg-pass-{name}-{index}" for index in range(len(parts))]
            for one, part, chunks in zip(keys, parts, members, strict=True):
                given = [[self.blocks[group] for group in part], *(state.of(chunks) for state in states)]
                graph.append(({one: (run_blocks, key, *flattened(given))}, self._bound(self.places[part[0]])))
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

    def _detach(self, rows: Rows) -> Rows:
        name = self._new_name()
        if len(self.workers) < 2:
            # The scheduler keeps the copies.
            values = self.client.gather(self.client.map(packed, rows.items, pure=False))
            keys = [f"nonneg-rows-{name}-{index}" for index in range(len(values))]
            for key, value in zip(keys, values, strict=True):
                store(self.client, key, value)
            return Rows(launch(self.client, [(dict.fromkeys(keys, (unpacked,)), {})], keys), rows.members)
        # Keys are chosen here, because each of the two copies names the other. Each kind of task has its own
        # prefix: Dask does not move tasks of a kind that takes no time.
        holders = self.client.who_has(rows.items)
        where = [next(iter(holders.get(item.key, ())), None) for item in rows.items]
        ring = sorted(self.workers)
        keys, graph, members = [], [], []
        for at, holder in enumerate(dict.fromkeys(where)):
            inside = [index for index, place in enumerate(where) if place == holder]
            members.append([chunk for index in inside for chunk in rows.members[index]])
            old = " ".join(rows.items[index].key for index in inside)
            one, other = f"nonneg-rows-{name}-{at}", f"nonneg-copy-{name}-{at}"
            # The next worker around: each keeps copies for one other. No other may take these tasks.
            neighbor = ring[(ring.index(holder) + 1) % len(ring)] if holder in ring else ring[0]
            graph.append(({one: (take_over, f"{old} {other}")}, self._bound(holder)))
            graph.append(({other: (take_over, f"{old} {one}")}, {"workers": [neighbor]}))
            keys += [one, other]
        futures = launch(self.client, graph, keys)
        twins = Rows(futures[1::2], members)
        twins.before, twins.twins = rows, keys[::2]
        made = Rows(futures[::2], members, copies=frozenset({twins}))
        if len(self.workers) < FEWEST_BESIDE:
            # The rows stay as they were, and the next pass tries again, if a worker is lost meanwhile.
            if not (self._await(futures, patient=True) and self._are_apart(made, twins)):
                return rows
            self._settle(twins)
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

    def _await(self, futures: list[Any], patient: bool) -> bool | None:
        """Tell whether copies are there; None if they may still come and nobody is to wait for them."""
        look = time.monotonic()
        end = look + LONGEST_WAIT
        while (states := {one.status for one in futures}) != {"finished"}:
            now = time.monotonic()
            if states - {"finished", "pending"} or now > end:
                return False
            if now > look:
                look = now + LOOK_SECONDS
                if not set(self.workers) <= set(self.client.nthreads()):
                    return False
            if not patient:
                return None
            time.sleep(0.002)
        return True

    def _are_apart(self, rows: Rows, copies: Rows) -> bool:
        # Dask may move a task to the worker where the other copy is, and a worker may be gone.
        places = self.client.who_has([*rows.items, *copies.items])
        pairs = {(rows.places[chunk], at) for at, inside in enumerate(copies.members) for chunk in inside}
        return all(
            (there := places.get(copies.items[other].key, ()))
            and not set(there) >= set(places.get(rows.items[one].key, ()))
            for one, other in pairs
        )

    def rows_of(self, blocks: list[Any]) -> Rows:
        """Return the rows of an array that did not come out of a pass."""
        call = dask.delayed(as_result, pure=False)
        with _quietly():
            members = [self._chunks([group]) for group in range(self.n_groups)]
            items = [call(inside[0], [blocks[chunk] for chunk in inside]) for inside in members]
            return Rows(self.client.compute(items), members)

    def _place(self) -> list[Any]:
        # Consecutive groups on one worker, so that their sums need not travel. They are bound loosely, with
        # all that they depend on, until they are loaded.
        blocks: list[Any] = []
        for worker, groups in shares(self.n_groups, self.workers):
            with dask.annotate(workers=[worker], allow_other_workers=True):
                blocks += self._make(groups)
        return blocks

    def _find_blocks(self) -> None:
        assert self.blocks is not None
        holders = self.client.who_has(self.blocks)
        self.places = [next(iter(holders.get(block.key, ())), None) for block in self.blocks]

    def _follow_workers(self, workers: dict[str, int]) -> None:
        # Workers that joined or came back get their part of the kept chunks.
        changed = workers != self.workers
        self.workers = workers
        self.is_outgrown = self.group_size > 1 and sum(workers.values()) > self.n_groups
        if self.blocks is None or not workers or not (changed or None in self.places):
            return
        self._find_blocks()
        if None in self.places:
            return  # groups are being computed again; the next pass looks once more
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
