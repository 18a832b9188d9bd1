"""How many cores this process may use, and what is measured once per machine and kept in the user's cache."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path


def user_cache() -> Path:
    """Return the folder that caches what belongs to this user."""
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(home / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(home / ".cache")
    return Path(base) / "nonneg"


def available_cores() -> int:
    """Return the number of cores: those of the process, within the quota of its container or worker."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, math.floor(min(count, _quota(), _share_of_worker())))


@functools.cache
def _quota() -> float:
    return cgroup_quota()


def cgroup_quota(groups: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the number of cores that the control groups of Linux allow, rounded up; infinity without one."""
    # A group may use what it and all groups above it may. Inside of a container the path of the group need
    # not exist: what is mounted at the top is its own then.
    found = [math.inf]
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return math.inf
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:  # version 2
            found += [_limit_v2(group) for group in _upward(mounted, path)]
        elif "cpu" in controllers.split(","):
            tops = {mounted / controllers, mounted / "cpu"}
            found += [_limit_v1(group) for top in tops for group in _upward(top, path)]
    return math.ceil(min(found)) if min(found) < math.inf else math.inf


def _upward(top: Path, path: str) -> list[Path]:
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [top.joinpath(*parts[:count]) for count in range(len(parts) + 1)]


def _limit_v2(group: Path) -> float:
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def _limit_v1(group: Path) -> float:
    try:
        quota = int((group / "cpu.cfs_quota_us").read_text())
        period = int((group / "cpu.cfs_period_us").read_text())
        return quota / period if quota > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def _share_of_worker() -> float:
    """Return the part of the cores that joblib gives to this process, where it is one of its workers."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None or type(processes.current_process()).__name__ != "LokyProcess":
        return math.inf
    with contextlib.suppress(KeyError, ValueError):
        return max(1, int(os.environ["OMP_NUM_THREADS"]))  # joblib sets it for each worker
    return math.inf


def remembered(name: str, measure: Callable[[], float]) -> float:
    """Return a number that is measured once per machine; measured again where it cannot be kept."""
    # A home folder may be shared by many machines.
    about = [platform.node(), platform.machine(), os.cpu_count(), platform.python_version()]
    key = hashlib.sha256(json.dumps([name, *about]).encode()).hexdigest()[:16]
    try:
        file = user_cache() / "machine" / f"{name}-{key}.json"
        value = json.loads(file.read_text())
        if isinstance(value, int | float) and 0 < value < math.inf:
            return float(value)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: there is no home folder
        pass
    value = measure()
    with contextlib.suppress(OSError, RuntimeError, UnboundLocalError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w") as stream:
            json.dump(value, stream)
        Path(temporary).replace(file)
    return value
