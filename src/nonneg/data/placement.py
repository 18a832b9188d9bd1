"""Which chunks of a matrix go where on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

# Groups of chunks for each thread. They are loaded group by group: when a worker is lost, the others and its
# successor share its groups.
GROUPS_PER_THREAD = 4
# By how much the thread with the most chunks may be above the mean because of groups, against single chunks.
UNEVEN = 1.05


def worker_sizes(client: Any) -> list[tuple[int, int]]:
    """Return memory limit (0: none) and number of threads of every worker."""
    workers = client.scheduler_info()["workers"].values()
    return [(int(worker["memory_limit"] or 0), int(worker["nthreads"])) for worker in workers]


def group_size(n_chunks: int, workers: dict[str, int]) -> int:
    """Return how many neighboring chunks are loaded by one task: a power of two, for the tree of sums."""
    n_threads = sum(workers.values())
    wanted = n_threads * GROUPS_PER_THREAD

    def most_chunks(size: int) -> int:
        return size * -(-n_chunks // (size * n_threads))

    size = 1
    while n_chunks // (2 * size) >= wanted and most_chunks(2 * size) <= UNEVEN * most_chunks(1):
        size *= 2
    return size


def shares(n_groups: int, workers: dict[str, int]) -> list[tuple[str, range]]:
    """Return consecutive groups for each worker, in proportion to its threads."""
    edges = np.cumsum([0, *workers.values()]) * n_groups / sum(workers.values())
    cuts = np.round(edges).astype(int).tolist()
    return [(one, range(*cut)) for one, cut in zip(workers, pairwise(cuts), strict=True)]


def passes_at_risk(n_groups: int, workers: dict[str, int]) -> int:
    """Return how many passes others repeat for the groups of a lost worker in the time of one pass."""
    n_threads = sum(workers.values())
    own = max(1, n_groups // n_threads)  # groups of a thread
    return max(1, own // -(-own // (len(workers) - 1)))


def bundles(places: Sequence[str | None], workers: dict[str, int]) -> list[list[int]]:
    """Return the groups that one task works on: a part of those on a worker for each of its threads."""
    held: dict[str, list[int]] = {}
    found: list[list[int]] = []
    for group, place in enumerate(places):
        if place in workers:
            held.setdefault(str(place), []).append(group)
        else:
            found.append([group])  # it is being loaded again, on whatever workers
    for worker, groups in held.items():
        found += [part.tolist() for part in np.array_split(groups, min(workers[worker], len(groups)))]
    return sorted(found)


def moves(places: Sequence[str | None], workers: dict[str, int]) -> list[tuple[int, str]]:
    """Return which groups go to which workers, so that each has a part in proportion to its threads."""
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
