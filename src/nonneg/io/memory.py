"""How much memory a job may use: what the user says, or half of what the process may have."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import InvalidParameterError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
# Where versions 2 and 1 of Linux's control groups keep their limits: root, and name of the file.
_GROUPS = {"": ("/sys/fs/cgroup", "memory.max"), "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")}
_DEFAULT_BYTES = 8 * 10**9  # where the system does not say how much it has


def memory_limit() -> int:
    """Return the bytes of memory that this process may have: the machine's, or its control group's."""
    found = [_DEFAULT_BYTES]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for place in _limit_files():
        with contextlib.suppress(OSError):
            said = place.read_text(encoding="ascii").strip()
            found += [int(said)] if said.isdecimal() else []
    return min(found)


def _limit_files() -> Iterator[Path]:
    """Yield the files that limit this process: those of its control group and of the groups around it."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for _, kinds, name in (line.split(":", 2) for line in lines):
        for kind in set(kinds.split(",")) & _GROUPS.keys():
            root, file = Path(_GROUPS[kind][0]), _GROUPS[kind][1]
            inner = root / name.lstrip("/")
            # In a container the name may be that of the host, and the root stands for the group.
            yield from (folder / file for folder in (inner, *inner.parents) if folder.is_relative_to(root))


def checked_memory(memory: Any) -> int:
    """Return a budget in bytes: from a number, from text such as "2GB", or half of the limit for None."""
    if memory is None:
        return memory_limit() // 2
    given = memory
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if found is not None:
            number, unit, binary = found.groups()
            power = " kmgt".find(unit)
            memory = float(number) * (1024**power if binary else _UNITS[unit])
    number = isinstance(memory, int | float) and not isinstance(memory, bool)
    if not number or not 1 <= memory < float("inf"):
        raise InvalidParameterError(
            f"memory={given!r} (--memory) is not an amount of memory. Expected a number of bytes, or text "
            "such as '2GB' or '500MB'."
        )
    return int(memory)


def written_bytes(n_bytes: float) -> str:
    """Write a number of bytes as a person would."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            break
        n_bytes, unit = n_bytes / 1000, {"bytes": "kB", "kB": "MB", "MB": "GB", "GB": "TB"}[unit]
    return f"{n_bytes:.0f} {unit}" if n_bytes >= 100 or unit == "bytes" else f"{n_bytes:.3g} {unit}"


def temporary_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array in a temporary file that vanishes with it; TMPDIR says where."""
    if 0 in shape:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile(prefix="nonneg-") as file:  # the mapping keeps it alive
        return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=shape))
