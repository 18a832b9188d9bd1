"""A reader of saved R workspaces (.RData): data only; code in a file is rejected, never run.

R writes a tree of typed items in big-endian order, which the section "Serialization Formats" of "R Internals"
describes.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import FileFormatError

_OPENERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}
# Places without contents: the global, base and empty environments, a missing argument, and their like.
_MARKERS = frozenset({241, 242, 247, 251, 252, 253, 254})
_PAIRED = frozenset({2, 3, 5, 6, 17})


def read_rdata(path: Path) -> dict[str, Any]:
    """Return the variables of a saved workspace."""
    raw = path.read_bytes()
    try:
        for mark, opened in _OPENERS.items():
            if raw.startswith(mark):
                raw = opened(raw)
                break
        if raw[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise FileFormatError(f"{path.name} is not a saved R workspace: it begins with {raw[:7]!r}.")
        found = _Reader(raw, 7).workspace()
    except (struct.error, EOFError, ValueError, OSError, IndexError, lzma.LZMAError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"{path.name} could not be read as a saved R workspace: {error}. It is damaged; download "
            "it again."
        ) from error
    return found


class _Pairs(list[tuple[Any, Any]]):
    """A list of R whose items have tags."""


class _Reader:
    def __init__(self, raw: bytes, at: int) -> None:
        self.raw, self.at = raw, at
        self.known: list[Any] = []  # symbols and environments, which later items refer to by number

    def workspace(self) -> dict[str, Any]:
        version, _, _ = self.integers(3)
        if version == 3:
            (length,) = self.integers(1)
            self.at += int(length)  # the name of an encoding
        return {str(tag): value for tag, value in self.item() or ()}

    def integers(self, count: int) -> Any:
        return self.numbers(count, ">i4")

    def numbers(self, count: int, kind: str) -> Any:
        size = np.dtype(kind).itemsize * count
        if count < 0 or self.at + size > len(self.raw):
            raise ValueError("it ends before its contents do")
        found = np.frombuffer(self.raw, dtype=kind, count=count, offset=self.at)
        self.at += size
        return found.astype(np.dtype(kind).newbyteorder("="))

    def length(self) -> int:
        (count,) = self.integers(1)
        if count == -1:
            high, low = self.integers(2)
            return (int(high) << 32) + int(low)
        return int(count)

    def item(self) -> Any:
        flags = int(self.integers(1)[0])
        kind, attributed = flags & 0xFF, bool(flags & 0x200)
        if kind in _MARKERS:
            return None
        if kind == 255:  # a symbol or environment seen before
            number = flags >> 8 or int(self.integers(1)[0])
            return self.known[number - 1]
        if kind == 1:
            return self.remember(self.item())
        if kind in _PAIRED:
            return self.pairs(flags)
        if kind == 4:
            self.integers(1)
            place = self.remember({})
            for _ in range(4):
                self.item()
            return place
        if kind in (248, 249, 250):
            self.integers(1)
            return self.remember([self.item() for _ in range(self.length())])
        if kind == 9:
            return self.text(flags >> 12)
        if kind == 238:
            return self.compact()
        value = self.vector(kind)
        return _with_attributes(value, self.item() or ()) if attributed or kind == 25 else value

    def remember(self, value: Any) -> Any:
        self.known.append(value)
        return value

    def pairs(self, flags: int) -> _Pairs:
        found = _Pairs()
        while True:
            if flags & 0x200:
                self.item()
            tag = self.item() if flags & 0x400 else None
            found.append((tag, self.item()))
            flags = int(self.integers(1)[0])
            if flags & 0xFF == 254:
                return found
            if flags & 0xFF not in _PAIRED:
                raise ValueError(f"a list ends in an item of kind {flags & 0xFF}")

    def text(self, levels: int) -> str | None:
        (size,) = self.integers(1)
        if size == -1:
            return None
        found = bytes(self.numbers(int(size), "u1"))
        return found.decode("latin-1" if levels & 4 else "utf-8", errors="replace")

    def vector(self, kind: int) -> Any:
        if kind == 25:
            return {}
        if kind in (10, 13):
            return self.integers(self.length())
        if kind == 14:
            return self.numbers(self.length(), ">f8")
        if kind == 24:
            return self.numbers(self.length(), "u1")
        if kind in (16, 19, 20):
            return [self.item() for _ in range(self.length())]
        raise ValueError(f"it contains an item of kind {kind}, which is not supported")

    def compact(self) -> Any:
        """Read a compact vector: a sequence, or a reference to another vector."""
        (_, name), *_ = self.item()
        state, attributes = self.item(), self.item() or ()
        value: Any
        if name in ("compact_intseq", "compact_realseq"):
            count, first, step = state
            value = first + step * np.arange(int(count))
            value = value.astype(np.int32) if name == "compact_intseq" else value
        elif name == "deferred_string":
            value = [str(number) for number in state[0][1]]
        elif str(name).startswith("wrap_"):
            value = state[0]
        else:
            raise ValueError(f"it contains a vector of the unknown class {name}")
        return _with_attributes(value, attributes)


def _with_attributes(value: Any, attributes: Any) -> Any:
    named = {str(tag): entry for tag, entry in attributes}
    if isinstance(value, dict):
        return named
    if "factor" in (named.get("class") or ()):
        levels = named["levels"]
        return [None if code < 1 else levels[code - 1] for code in value.tolist()]
    names = named.get("names")
    if isinstance(value, list) and names is not None and not all(isinstance(entry, str) for entry in value):
        return dict(zip(names, value, strict=True))
    return value
