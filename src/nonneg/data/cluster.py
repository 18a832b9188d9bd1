"""Passes over chunked data on the workers of a Dask cluster, whose scheduler does not grow with the passes.

A pass submits one task per chunk. It depends on the chunk, on one small task that holds the shared arguments
(H among them), and on the rows of W that an earlier pass left beside the chunk. Small results are added in a
tree on the workers, and one of them comes to the client.

If W depended on its predecessor for good, the scheduler would remember every pass, and a lost worker would
cost all of them. So every few passes the rows are *detached*: a task without dependencies takes them over on
the worker where they are, and a second worker gets a copy (the scheduler, where there is only one). If one of
the two is lost, Dask runs its task again, which finds the other copy; the passes since then are repeated for
the lost chunks alone. The answer is the same to the last digit. If both are lost, `LostRowsError` is raised
and the caller computes W anew for the last H.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import count
from typing import Any

import dask
import numpy as np
from distributed import Future, get_client, get_worker, wait

from nonneg.data.block_tasks import (
    FAN_IN,
    Result,
    Rows,
    add_results,
    as_result,
    load_and_run,
    make_block,
    run_block,
    same,
    size_of,
    without_rows,
)
from nonneg.data.matrix import RowFunction
from nonneg.exceptions import LostRowsError

# A lost chunk repeats the passes since its rows were detached, on the workers that are left: this many
# passes for each of these cost about the time of two iterations. More than ten would keep more copies of H
# in the scheduler than they save in copies of W.
PASSES_PER_WORKER, MOST_PASSES = 2, 10
# The part of the workers' memory that X may take to be kept there. Dask begins to spill at 60%.
KEPT_FRACTION = 0.5


class Copies:
    """The second copies of detached rows; until they are there, the rows as the pass left them."""

    def __init__(self, detached: list[Any], copies: list[Any], origin: list[Any], older: set[Copies]) -> None:
        self.detached, self.copies = detached, copies
        self.origin, self.older = origin, older

    def settle(self) -> bool:
        """Let go of what is no longer needed, and tell whether the copies are complete."""
        done = not self.origin or all(one.status == "finished" for one in (*self.detached, *self.copies))
        if done:
            self.origin, self.older = [], set()
        return done


class Cluster:
    """The chunks of a matrix on the workers of a cluster."""

    def __init__(self, client: Any, entries: list[Any], weights: list[Any], masks: list[Any]) -> None:
        self.client = client
        self.entries, self.weights, self.masks = entries, weights, masks
        self.blocks: list[Any] | None = None  # futures of the chunks, where they are kept in memory
        self.places: list[str | None] = [None] * len(entries)  # the worker of each kept chunk
        self.workers: dict[str, int] = {}  # threads of the workers when the chunks were last distributed
        self._copy_next = False  # whether the next rows are copied at once, because a worker was lost
        self._name = f"nonneg-{uuid.uuid4().hex[:12]}"
        self._count = count()

    def keep(self, n_bytes: int | None) -> bool:
        """Load the chunks into the workers' memory if they fit; `n_bytes` is None where only they know."""
        limit = sum(memory or np.inf for memory, _ in worker_sizes(self.client))
        call = dask.delayed(make_block, pure=False)
        parts = zip(self.entries, self.weights, self.masks, strict=True)
        blocks = [call(*part) for part in parts]
        if n_bytes is None:
            first = self.client.compute(dask.delayed(size_of)(blocks[0])).result()
            n_bytes = first * len(blocks)
        if n_bytes <= KEPT_FRACTION * limit:
            with _quietly():
                self.blocks = self.client.compute(blocks)
        return self.blocks is not None

    def run(
        self, function: RowFunction, states: Sequence[Rows], picks: list[tuple[int, int]], shared: Any
    ) -> tuple[Rows, Result]:
        """Call the function on every chunk; return its rows, and the sum of its small results."""
        self._follow_workers()
        for _ in range(2):
            items, total = self._submit(function, states, picks, shared)
            try:
                summed = self.client.gather(total)
                break
            except LostRowsError:
                # Rows that went with their worker while they were being copied: begin where they came from.
                if not self._restore(states):
                    raise
        else:
            raise LostRowsError()
        if summed.forms:
            depth = 1 + max((state.depth for state in states), default=0)
            older = {one for state in states for one in state.copies}
            copies = {one for one in older if not one.settle() or one.copies}
            made = Rows(items, depth, copies)
            others = len(self.workers) - 1
            limit = min(MOST_PASSES, PASSES_PER_WORKER * others) if others > 0 else MOST_PASSES
            if depth >= limit or self._copy_next:
                made = self._detach(made)
                if self._copy_next:
                    # The next loss may be near: go on when there are two copies of everything again.
                    wait([future for one in made.copies for future in one.copies])
                self._copy_next = False
            return made, summed
        return Rows([]), summed

    def _submit(
        self, function: RowFunction, states: Sequence[Rows], picks: list[tuple[int, int]], shared: Any
    ) -> tuple[list[Any], Any]:
        name = f"{self._name}-{next(self._count)}"
        parts = [state.items for state in states]
        with _quietly():
            sent = self.client.submit(same, shared, key=f"{name}-shared", pure=False)
            options = {"function": function, "picks": picks, "shared": sent}
            if self.blocks is not None:
                keys = [f"{name}-{index}" for index in range(len(self.blocks))]
                results = self.client.map(run_block, self.blocks, *parts, key=keys, pure=False, **options)
            else:
                call = dask.delayed(load_and_run, pure=False)
                blocks = zip(self.entries, self.weights, self.masks, strict=True)
                results = self.client.compute(
                    [
                        call(*block, *(part[index] for part in parts), **options)
                        for index, block in enumerate(blocks)
                    ]
                )
        return results, self._tree(name, results)

    def _tree(self, name: str, results: list[Any]) -> Any:
        # A group whose chunks are on one worker is added there. Otherwise the rows are left behind first.
        level, leaves = 0, list(results)
        places = self.places if self.blocks is not None else [None] * len(results)
        scattered = [
            index
            for at in range(0, len(results), FAN_IN)
            if None in (group := set(places[at : at + FAN_IN])) or len(group) > 1
            for index in range(at, min(at + FAN_IN, len(results)))
        ]
        if scattered:
            keys = [f"{name}-small-{index}" for index in scattered]
            small = self.client.map(
                without_rows, [results[index] for index in scattered], key=keys, pure=False
            )
            for index, one in zip(scattered, small, strict=True):
                leaves[index] = one
        while level == 0 or len(leaves) > 1:
            groups = [leaves[at : at + FAN_IN] for at in range(0, len(leaves), FAN_IN)]
            keys = [f"{name}-sum-{level}-{index}" for index in range(len(groups))]
            leaves = self.client.map(add_results, groups, key=keys, pure=False)
            level += 1
        return leaves[0]

    def _detach(self, rows: Rows) -> Rows:
        name = f"{self._name}-{next(self._count)}"
        if len(self.workers) < 2:
            # The copies stay in the scheduler, as arguments of tasks.
            values = self.client.gather(rows.items)
            keys = [f"{name}-rows-{index}" for index in range(len(values))]
            with _quietly():
                return Rows(
                    self.client.map(same, [Result(one.rows, ()) for one in values], key=keys, pure=False)
                )
        # Keys are chosen here, because each of the two copies names the other.
        holders = self.client.who_has(rows.items)
        where = [next(iter(holders.get(item.key, ())), None) for item in rows.items]
        ring = sorted(self.workers)
        detached: list[Any] = [None] * len(rows.items)
        copies: list[Any] = [None] * len(rows.items)
        for holder in dict.fromkeys(where):
            group = [index for index, place in enumerate(where) if place == holder]
            sources = [(rows.items[index].key, f"{name}-copy-{index}") for index in group]
            keys = [f"{name}-rows-{index}" for index in group]
            placed = {"workers": [holder], "allow_other_workers": True} if holder else {}
            found = self.client.map(take_over, sources, key=keys, pure=False, **placed)
            for index, one in zip(group, found, strict=True):
                detached[index] = one
            if holder is None:
                continue
            # The next worker around: each keeps copies for one other.
            neighbor = ring[(ring.index(holder) + 1) % len(ring)] if holder in ring else ring[0]
            keys = [f"{name}-copy-{index}" for index in group]
            made = self.client.map(
                same, found, key=keys, pure=False, workers=[neighbor], allow_other_workers=True
            )
            for index, one in zip(group, made, strict=True):
                copies[index] = one
        kept = [one for one in copies if one is not None]
        return Rows(detached, 0, {Copies(detached, kept, rows.items, rows.copies)})

    def _restore(self, states: Sequence[Rows]) -> bool:
        restored = False
        for state in states:
            for one in state.copies:
                if one.origin and state.items is one.detached:
                    state.items, state.depth, state.copies = one.origin, MOST_PASSES, one.older
                    restored = True
                    break
        return restored

    def rows_of(self, blocks: list[Any]) -> Rows:
        """Return the rows of an array that did not come out of a pass."""
        call = dask.delayed(as_result, pure=False)
        with _quietly():
            return Rows(self.client.compute([call(block) for block in blocks]))

    def _follow_workers(self) -> None:
        # Workers that joined or came back get their part of the kept chunks.
        workers = self.client.nthreads()
        self._copy_next = self._copy_next or not set(self.workers) <= set(workers)
        if self.blocks is None or not workers:
            self.workers = workers
            return
        if workers == self.workers and None not in self.places:
            return
        if not self.workers:
            wait(self.blocks)
        holders = self.client.who_has(self.blocks)
        places = [next(iter(holders.get(block.key, ())), None) for block in self.blocks]
        # Where chunks are still being computed again, the next pass looks once more.
        if None not in places:
            for index, target in moves(places, workers):
                self.blocks[index] = self.client.submit(
                    same,
                    self.blocks[index],
                    key=f"{self._name}-{next(self._count)}-moved-{index}",
                    pure=False,
                    workers=[target],
                    allow_other_workers=True,
                )
                places[index] = target
        self.places, self.workers = places, workers


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


def take_over(sources: tuple[str, str]) -> Result:
    """Return rows by their name: those that a pass left on this worker, or a copy of them on another."""
    here = get_worker().data
    for key in sources:
        if key in here:
            return Result(here[key].rows, ())
    client = get_client()
    for future in [Future(key, client) for key in sources]:
        if any(client.who_has([future]).values()):
            return Result(future.result().rows, ())
    raise LostRowsError()


def worker_sizes(client: Any) -> list[tuple[int, int]]:
    """Return memory limit (0: none) and number of threads of every worker."""
    workers = client.scheduler_info()["workers"].values()
    return [(int(worker["memory_limit"] or 0), int(worker["nthreads"])) for worker in workers]


def _quietly() -> Any:
    # H and rows of W travel inside of tasks on purpose: a task can be run again, what is scattered cannot.
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"})
