"""On what a record was made: processor, memory, versions, threads."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import peers

LIBRARIES = ("nonneg", "numpy", "scipy", "scikit-learn", "numba", "threadpoolctl")


def processor() -> str:
    """Return the name of the processor.

    Returns
    -------
    str
        As the system tells it.
    """
    try:
        told = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, timeout=10).stdout
        names = [line.split(":", 1)[1].strip() for line in told.splitlines() if line.startswith("Model name")]
        vendors = [
            line.split(":", 1)[1].strip() for line in told.splitlines() if line.startswith("Vendor ID")
        ]
    except (OSError, subprocess.SubprocessError):
        names, vendors = [], []
    if not names:
        return platform.processor() or platform.machine()
    maker = f"{vendors[0]} " if vendors and vendors[0].lower() not in names[0].lower() else ""
    return f"{maker}{names[0]} ({platform.machine()})"


def describe() -> dict[str, Any]:
    """Return what a reader needs to judge a record.

    Returns
    -------
    dict
        Plain values; nothing that names the machine itself.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "from source"
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "versions": versions | peers.versions(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


@contextmanager
def limited(threads: int) -> Iterator[dict[str, int]]:
    """Hold every library to `threads` threads, after all of them are loaded.

    Parameters
    ----------
    threads : int
        The limit.

    Yields
    ------
    dict of str to int
        The number of threads that each library reports under the limit.
    """
    peers.load_all()
    with threadpool_limits(limits=threads):
        told: dict[str, int] = {}
        for library in threadpool_info():
            name = f"{library['internal_api']} {library.get('version') or ''}".strip()
            told[name] = max(told.get(name, 0), int(library["num_threads"]))
        yield told
