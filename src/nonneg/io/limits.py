"""Limits of what a compressed file may expand to: a small file from elsewhere must not fill the memory."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from nonneg.exceptions import FileFormatError

MAX_EXPANSION = "NONNEG_MAX_EXPANSION"
"""The environment variable that raises the limit."""
# Tables of numbers shrink to a half or a tenth, mostly zeros to a hundredth; gzip can reach a thousand.
_RATIO = 200.0
# So much is read of any file: it fits into memory.
_ALWAYS = 1 << 30
_BUFFER = 1 << 20


def expansion_limit(path: Path) -> float:
    """Return the number of bytes that the file may expand to."""
    return max(float(_ALWAYS), float(os.environ.get(MAX_EXPANSION, _RATIO)) * path.stat().st_size)


def check_expansion(n_bytes: float, path: Path) -> None:
    """Reject a file that expands too far."""
    if n_bytes > (limit := expansion_limit(path)):
        raise FileFormatError(
            f"{path} expands to more than {limit / 1e9:.3g} GB, over {_RATIO:g} times its own "
            f"size, and is rejected. If you trust it, set the environment variable {MAX_EXPANSION} to a "
            "larger ratio, or decompress it first."
        )


def check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """Reject a zip archive that expands too far."""
    check_expansion(sum(member.file_size for member in archive.infolist()), path)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, decompressed if its name ends in .gz, with a limit on what it expands to."""
    if path.name.lower().endswith(".gz"):
        return io.BufferedReader(_LimitedGzip(path, "rb"), _BUFFER)
    return path.open("rb")


def open_text(path: Path, encoding: str = "utf-8", newline: str | None = None) -> IO[str]:
    """Open a text, decompressed if its name ends in .gz, with a limit on what it expands to."""
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline=newline)


class _LimitedGzip(gzip.GzipFile):
    def read(self, size: int | None = -1) -> bytes:
        content = super().read(_BUFFER if size is None or size < 0 else size)
        check_expansion(self.tell(), Path(self.name))
        return content

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)
