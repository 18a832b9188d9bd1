"""On what a record was made: processor, memory, versions; nothing that names the machine itself."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any

from nonneg._version import __version__

LIBRARIES = ("nonneg", "numpy", "scipy", "scikit-learn", "threadpoolctl")


def processor() -> str:
    """Return the name of the processor."""
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
    name = names[0].replace("(R)", "").replace("(TM)", "")
    vendor = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}.get(vendors[0], vendors[0]) if vendors else ""
    maker = f"{vendor} " if vendor.lower() not in name.lower() else ""
    return f"{maker}{name} ({platform.machine()})"


def machine_facts(libraries: Sequence[str] = LIBRARIES) -> dict[str, Any]:
    """Return what a reader needs to judge a record, as far as it stays the same during a run."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    versions = {}
    for name in libraries:
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
        "versions": versions,
    }


def versions() -> dict[str, str]:
    """Return the versions of the libraries that take part in a run."""
    found = {name: _version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"nonneg": __version__, "python": platform.python_version(), **found}


_version = cache(metadata.version)  # it looks through all that is installed


def present_facts() -> dict[str, Any]:
    """Return what changes from record to record."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
