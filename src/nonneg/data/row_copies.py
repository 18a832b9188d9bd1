"""On workers and the scheduler of a cluster: values that the scheduler keeps, and second copies of rows.

Tasks get both by name. What a task is given travels in messages, of which Dask keeps the last thousand for
each worker.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed import get_worker, secede
from distributed.protocol import Serialize, to_serialize
from distributed.protocol.pickle import dumps, loads
from distributed.utils import sync
from distributed.worker import get_data_from_worker

from nonneg._arrays import to_numpy
from nonneg.data.block_tasks import Result, mapped
from nonneg.exceptions import LostRowsError

BUSY_RETRIES, BUSY_SECONDS = 200, 0.05
# States of a task that has or will have a result.
COMING = {"waiting", "no-worker", "queued", "processing", "memory"}


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


def take_over(names: str) -> Result:
    """Return rows by their names: of some results, or, at the end of the line, of the other copy of all."""
    *keys, other = names.split()
    worker = get_worker()
    for wanted in (keys, [other]):
        if all(key in worker.data for key in wanted):
            return _joined([worker.data[key] for key in wanted])
    secede()  # the worker goes on with its next task meanwhile
    return sync(worker.loop, _fetch, worker, keys, other)


def _joined(results: Sequence[Result]) -> Result:
    return Result({chunk: rows for result in results for chunk, rows in result.rows.items()}, {})


async def _fetch(worker: Any, keys: list[str], other: str) -> Result:
    # Not by a dependency: that would register a third copy, and Dask might then drop one of the other two.
    while True:
        for names in ([other], keys):
            holders = await worker.scheduler.who_has(keys=names)
            found: dict[str, Result] = {key: worker.data[key] for key in names if key in worker.data}
            for address in {address for key in names for address in holders.get(key, ())}:
                wanted = [key for key in names if key not in found and address in holders[key]]
                found |= await _get(worker, wanted, address) if wanted else {}
            if len(found) == len(names):
                return _joined([found[key] for key in names])
        # While the client wants the results, Dask computes those again that were lost.
        states = await worker.scheduler.get_task_status(keys=keys)
        if not all(states.get(key) in COMING for key in keys):
            raise LostRowsError()
        await asyncio.sleep(BUSY_SECONDS)


async def _get(worker: Any, keys: list[str], address: str) -> dict[str, Result]:
    for _ in range(BUSY_RETRIES):
        try:
            found = await get_data_from_worker(worker.rpc, keys, address, who=worker.address)
        except OSError:
            break  # it was lost meanwhile
        if found["status"] == "OK":
            return dict(found["data"])
        await asyncio.sleep(BUSY_SECONDS)  # it serves others
    return {}


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
