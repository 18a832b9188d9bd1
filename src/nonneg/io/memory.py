"""Amount of memory that a job may use: what the user says, or half of what the process may have."""

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

_GROUPS = Path("/sys/fs/cgroup")  # where Linux has the limits of control groups
_DEFAULT_BYTES = 8 * 10**9  # where the system does not say how much it has


def memory_limit() -> int:
    """Return the bytes of memory that this process may have: the machine's, or its control group's."""
    limits = [_DEFAULT_BYTES]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for place in _limit_files():
        with contextlib.suppress(OSError, ValueError):  # "max" is no limit
            limits.append(int(place.read_text(encoding="ascii")))
    return min(limits)


def _limit_files() -> Iterator[Path]:
    """Yield the files that limit this process: those of its control group and of the groups around it."""
    try:
        name = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()[0].split(":", 2)[2]
    except (OSError, IndexError):
        return
    # In a container the name may be that of the host, and the root stands for the group.
    inner = _GROUPS / name.lstrip("/")
    yield from (folder / "memory.max" for folder in (inner, *inner.parents) if folder.is_relative_to(_GROUPS))


def checked_memory(memory: Any) -> int:
    """Return a budget in bytes: from a number, from text such as "2GB", or half of the limit for None."""
    if memory is None:
        return memory_limit() // 2
    text = memory
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if match is not None:
            number, unit, binary = match.groups()
            memory = float(number) * (1024 if binary else 1000) ** " kmgt".find(unit or " ")
    number = isinstance(memory, int | float) and not isinstance(memory, bool)
    if not number or not 1 <= memory < float("inf"):
        raise InvalidParameterError(
            f"memory={text!r} (--memory) is not an amount of memory. Expected a number of bytes, or text "
            "such as '2GB' or '500MB'."
        )
    return int(memory)


def written_bytes(n_bytes: float) -> str:
    """Write a number of bytes as a person would."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if n_bytes >= 1000:
            n_bytes, unit = n_bytes / 1000, larger
    return f"{n_bytes:.0f} {unit}" if n_bytes >= 100 or unit == "bytes" else f"{n_bytes:.3g} {unit}"


def temporary_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array in a temporary file that vanishes with it; TMPDIR says where."""
    if 0 in shape:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile(prefix="nonneg-") as file:  # the mapping keeps it alive
        return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=shape))
