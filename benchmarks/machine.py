"""On what a record was made: processor, memory, versions, threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reproduction.machine import machine_facts, present_facts
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import peers


def describe() -> dict[str, Any]:
    """Return what a reader needs to judge a record."""
    about, now = machine_facts(), present_facts()
    about["versions"] |= peers.versions()
    return about | {"date": now["date"], "load_before": now["load"]}


@contextmanager
def limited(threads: int) -> Iterator[dict[str, int]]:
    """Hold every library to `threads` threads, after all of them are loaded."""
    peers.load_all()
    with threadpool_limits(limits=threads):
        told: dict[str, int] = {}
        for library in threadpool_info():
            name = f"{library['internal_api']} {library.get('version') or ''}".strip()
            told[name] = max(told.get(name, 0), int(library["num_threads"]))
        yield told
