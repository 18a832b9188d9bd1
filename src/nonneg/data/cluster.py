"""Passes over chunked data on the workers of a Dask cluster, whose scheduler does not grow with the passes.

Neighboring chunks form groups, a few for each thread, so that many small chunks are few tasks. A pass is one
task per group. It depends on the chunks, on one small task that holds the shared arguments (H among them),
and on the rows of W that an earlier pass left beside the chunks. Small results are added in a tree on the
workers, and one of them comes to the client.

If W depended on its predecessor for good, the scheduler would remember every pass, and a lost worker would
cost all of them. So every few passes the rows are *detached*: a task without dependencies takes them over on
the worker where they are, and a second worker gets a copy (the scheduler, where there is only one). If one of
the two is lost, Dask runs its task again, which finds the other copy; the passes since then are repeated for
the lost chunks alone. The answer is the same to the last digit. If both are lost, `LostRowsError` is raised
and the caller recomputes W for the last H.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import dask
import numpy as np
from distributed import Client, futures_of, get_worker, wait
from distributed.utils import sync
from distributed.worker import get_data_from_worker

from nonneg.data.block_tasks import (
    FAN_IN,
    Result,
    Rows,
    add_results,
    as_result,
    free_tasks,
    load_and_run,
    make_block,
    make_blocks,
    moves,
    packed,
    run_blocks,
    same,
    size_of,
    unpacked,
)
from nonneg.data.matrix import RowFunction
from nonneg.exceptions import InvalidParameterError, LostRowsError

# Groups of chunks for each thread. When a worker is lost, the others and its successor share its groups: with
# one or two for each thread, the time of two more iterations was lost than with eight (two workers).
GROUPS_PER_THREAD = 8
# By how much the thread with the most chunks may be above the mean because of groups, against single chunks.
UNEVEN = 1.05
# Lost groups repeat the passes since their rows were detached, on the workers that are left. That may take as
# long as this many iterations. More than ten passes would keep more copies of H in the scheduler than they
# save in copies of W.
REPEATED_ITERATIONS, MOST_PASSES = 2, 10
# The part of the workers' memory that X may take to be kept there. Dask begins to spill at 60%.
KEPT_FRACTION = 0.5
# Seconds for which copies are awaited; they take as long as sending W once.
LONGEST_WAIT = 30.0
LOOK_SECONDS = 0.2  # between two looks whether all workers are there
# Seconds until tasks that Dask forgot are looked for, and at most between two searches. A worker takes longer
# to start than the first, and a search is short against the second.
FIRST_SEARCH, LAST_SEARCH = 1.0, 30.0
CONNECT_SECONDS = 15
BUSY_RETRIES = 200  # of a twentieth of a second


class Cluster:
    """The chunks of a matrix on the workers of a cluster."""

    def __init__(self, client: Any, entries: list[Any], weights: list[Any], masks: list[Any]) -> None:
        self.client = client
        self.entries, self.weights, self.masks = entries, weights, masks
        self.group_size = 1
        self.blocks: list[Any] | None = None  # futures of the groups, where they are kept in memory
        self.places: list[str | None] = [None] * len(entries)  # the worker of each kept group
        self.workers: dict[str, int] = {}  # threads of the workers, as of the last pass
        self.moved: list[Any] = []  # groups that went to another worker since the last pass
        self.is_lost = False  # whether the cluster forgot all of it
        self.is_outgrown = False  # whether there are more threads than groups for them
        self._asking = ThreadPoolExecutor(1)
        self._name = uuid.uuid4().hex[:12]
        self._count = count()

    def keep(self, n_bytes: int | None) -> bool:
        """Load the chunks into the workers' memory if they fit; `n_bytes` is None where only they know."""
        sizes = worker_sizes(self.client)
        limit = sum(memory or np.inf for memory, _ in sizes)
        if n_bytes is None:
            one = (self.entries[0], self.weights[0], self.masks[0])
            first = dask.delayed(size_of)(dask.delayed(make_block)(*one))
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
                self.blocks = self.client.compute(self._place() if placed else self._make(0, self.n_groups))
            self._finish(self.blocks)
            self._free(self.blocks)
            self._find_blocks()
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

    def _make(self, start: int, stop: int) -> list[Any]:
        call = dask.delayed(make_blocks, pure=False)
        parts = (self.entries, self.weights, self.masks)
        return [call(*(part[self._members(group)] for part in parts)) for group in range(start, stop)]

    def run(
        self, function: RowFunction, states: Sequence[Rows], picks: list[tuple[int, int]], shared: Any
    ) -> tuple[Rows, Result]:
        """Call the function on every chunk; return its rows, and the sum of its small results."""
        items, total = self._submit(function, states, picks, shared)
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
            return Rows([]), summed
        depth = 1 + max((state.depth for state in states), default=0)
        made = Rows(items, depth, {one for state in states for one in state.copies})
        # Now, and not with the next pass: until here the workers hold the states as well. Then they let go of
        # them, and where Dask had moved a task to the worker with the copy, both would be lost with it.
        if depth >= passes_between_copies(len(items), len(self.workers)) or not all(
            self._are_apart(items, copies) for copies in made.copies
        ):
            made = self._detach(made)
        return made, summed

    def _submit(
        self, function: RowFunction, states: Sequence[Rows], picks: list[tuple[int, int]], shared: Any
    ) -> tuple[list[Any], Any]:
        name = f"{self._name}-{next(self._count)}"
        parts = [state.items for state in states]
        with _quietly():
            sent = self.client.submit(same, shared, key=f"nonneg-shared-{name}", pure=False)
            options = {"function": function, "picks": picks, "shared": sent}
            if self.blocks is not None:
                keys = [f"nonneg-pass-{name}-{index}" for index in range(len(self.blocks))]
                results = self.client.map(run_blocks, self.blocks, *parts, key=keys, pure=False, **options)
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
        # At the bottom, neighbors on one worker are added there, and the rows are left behind.
        level, leaves, width = 0, list(results), FAN_IN
        places = self.places if self.blocks is not None else [None] * len(results)
        while width > 1 and not all(
            None not in (group := set(places[at : at + width])) and len(group) == 1
            for at in range(0, len(places), width)
        ):
            width //= 2
        while level == 0 or len(leaves) > 1:
            groups = [leaves[at : at + width] for at in range(0, len(leaves), width)]
            keys = [f"nonneg-sum-{name}-{level}-{index}" for index in range(len(groups))]
            leaves = self.client.map(add_results, groups, key=keys, pure=False)
            level, width = level + 1, FAN_IN
        return leaves[0]

    def _detach(self, rows: Rows) -> Rows:
        name = f"{self._name}-{next(self._count)}"
        if len(self.workers) < 2:
            # The copies stay in the scheduler, as arguments of tasks.
            keys = [f"nonneg-packed-{name}-{index}" for index in range(len(rows.items))]
            values = self.client.gather(self.client.map(packed, rows.items, key=keys, pure=False))
            keys = [f"nonneg-rows-{name}-{index}" for index in range(len(values))]
            with _quietly():
                return Rows(self.client.map(unpacked, values, key=keys, pure=False))
        # Keys are chosen here, because each of the two copies names the other. Each kind of task has its own
        # prefix: Dask does not move tasks of a kind that takes no time.
        holders = self.client.who_has(rows.items)
        where = [next(iter(holders.get(item.key, ())), None) for item in rows.items]
        ring = sorted(self.workers)
        detached: list[Any] = [None] * len(rows.items)
        copies: list[Any] = [None] * len(rows.items)
        for holder in dict.fromkeys(where):
            group = [index for index, place in enumerate(where) if place == holder]
            sources = [(rows.items[index].key, f"nonneg-copy-{name}-{index}") for index in group]
            keys = [f"nonneg-rows-{name}-{index}" for index in group]
            placed = {"workers": [holder], "allow_other_workers": True} if holder else {}
            found = self.client.map(take_over, sources, key=keys, pure=False, **placed)
            # The next worker around: each keeps copies for one other. No other may take these tasks.
            neighbor = ring[(ring.index(holder) + 1) % len(ring)] if holder in ring else ring[0]
            sources = [(rows.items[index].key, f"nonneg-rows-{name}-{index}") for index in group]
            keys = [f"nonneg-copy-{name}-{index}" for index in group]
            made = self.client.map(take_over, sources, key=keys, pure=False, workers=[neighbor])
            for index, one, other in zip(group, found, made, strict=True):
                detached[index], copies[index] = one, other
        # The rows stay as they were, and the next pass tries again, if a worker is lost meanwhile.
        done = self._await(detached + copies) and self._are_apart(detached, copies)
        if not done:
            return rows
        # Not by `_free`, which leaves a line in the scheduler's log. They are unknown after a restart.
        with suppress(KeyError):
            self.client.sync(self.client.scheduler.set_restrictions, worker={one.key: [] for one in detached})
        return Rows(detached, 0, {tuple(copies)})

    def _free(self, futures: list[Any]) -> None:
        # A task keeps the worker it was meant for. If it is run again while no worker is there, Dask waits
        # for that one, though others were allowed.
        if futures:
            self.client.run_on_scheduler(free_tasks, [one.key for one in futures])

    def _finish(self, futures: list[Any]) -> None:
        seconds = FIRST_SEARCH
        while True:
            try:
                wait(futures, timeout=seconds)
                return
            except TimeoutError:
                self._free(futures)
                seconds = min(2 * seconds, LAST_SEARCH)

    def _await(self, futures: list[Any]) -> bool:
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
            time.sleep(0.002)
        return True

    def _are_apart(self, rows: Sequence[Any], copies: Sequence[Any]) -> bool:
        # Dask may move a task to the worker where the other copy is, and a worker may be gone.
        places = self.client.who_has([*rows, *copies])
        return all(
            (there := places.get(other.key, ())) and not set(there) >= set(places.get(one.key, ()))
            for one, other in zip(rows, copies, strict=True)
        )

    def rows_of(self, blocks: list[Any]) -> Rows:
        """Return the rows of an array that did not come out of a pass."""
        call = dask.delayed(as_result, pure=False)
        with _quietly():
            groups = (blocks[self._members(group)] for group in range(self.n_groups))
            return Rows(self.client.compute([call(group) for group in groups]))

    def _place(self) -> list[Any]:
        # Consecutive groups on one worker, so that their sums need not travel. They are bound loosely, with
        # all that they depend on, until they are loaded.
        edges = np.cumsum([0, *self.workers.values()]) * self.n_groups / sum(self.workers.values())
        cuts = np.round(edges).astype(int).tolist()
        blocks: list[Any] = []
        for worker, start, stop in zip(self.workers, cuts[:-1], cuts[1:], strict=True):
            with dask.annotate(workers=[worker], allow_other_workers=True):
                blocks += self._make(start, stop)
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
                key=f"nonneg-moved-{self._name}-{next(self._count)}",
                pure=False,
                workers=[target],
                allow_other_workers=True,
            )
            self.blocks[index], self.places[index] = moved, target
            self.moved.append(moved)


def group_size(n_chunks: int, workers: dict[str, int]) -> int:
    """Return how many neighboring chunks are worked on in one task: a power of two, for the tree of sums."""
    n_threads = sum(workers.values())
    wanted = n_threads * GROUPS_PER_THREAD

    def most_chunks(size: int) -> int:
        return size * -(-n_chunks // (size * n_threads))

    size = 1
    while n_chunks // (2 * size) >= wanted and most_chunks(2 * size) <= UNEVEN * most_chunks(1):
        size *= 2
    return size


def passes_between_copies(n_groups: int, n_workers: int) -> int:
    """Return after how many passes rows are detached from those before."""
    if n_workers < 2:
        return MOST_PASSES
    lost = -(-n_groups // n_workers)
    for_one = -(-lost // (n_workers - 1))  # of those, for each of the others
    return max(1, min(MOST_PASSES, REPEATED_ITERATIONS * lost // for_one))


def take_over(sources: tuple[str, str]) -> Result:
    """Return rows by their name: those on this worker, or those on another."""
    worker = get_worker()
    for key in sources:
        if key in worker.data:
            return Result(worker.data[key].rows, ())
    return sync(worker.loop, _fetch, worker, sources)


async def _fetch(worker: Any, sources: tuple[str, str]) -> Result:
    # Not by a dependency: that would register a third copy, and Dask might then drop one of the other two.
    holders = await worker.scheduler.who_has(keys=list(sources))
    for key in sources:
        for address in holders.get(key, ()):
            for _ in range(BUSY_RETRIES):
                try:
                    found = await get_data_from_worker(worker.rpc, [key], address, who=worker.address)
                except OSError:
                    break  # it was lost meanwhile
                if found["status"] == "OK":
                    if key in found["data"]:
                        return Result(found["data"][key].rows, ())
                    break
                await asyncio.sleep(0.05)  # it serves others
    raise LostRowsError()


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Use a running cluster inside the block."""
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InvalidParameterError(
            f"No Dask scheduler answers at {address} ({error or type(error).__name__}). Expected an address "
            "such as tcp://host:8786, which `dask scheduler` prints when it starts."
        ) from error
    with client:
        if not client.nthreads():
            raise InvalidParameterError(
                f"The Dask scheduler at {address} has no workers. Start some: dask worker {address}"
            )
        yield client


def worker_sizes(client: Any) -> list[tuple[int, int]]:
    """Return memory limit (0: none) and number of threads of every worker."""
    workers = client.scheduler_info()["workers"].values()
    return [(int(worker["memory_limit"] or 0), int(worker["nthreads"])) for worker in workers]


def _quietly() -> Any:
    # H and rows of W travel inside of tasks on purpose: a task can be run again, what is scattered cannot.
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"})
