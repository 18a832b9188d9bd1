"""Downloads: resumed where a broken transfer ended, verified, and moved into place when complete."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import importlib
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nonneg._version import __version__
from nonneg.datasets.dataset import DatasetNotFoundError

# Seconds without a byte after which a connection counts as broken: longer than any server needs to answer.
TIMEOUT = 30.0
# Maximum number of connections in a row without data; one that brings data resets the count.
ATTEMPTS = 4
# Seconds before the second attempt; each further pause is twice as long (exponential backoff).
PAUSE = 0.5
_CHUNK = 1 << 16
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})

Watcher = Callable[[int, "int | None"], None]
"""Called with the number of bytes received and the total, where it is known."""


class DownloadError(DatasetNotFoundError):
    """A file could not be downloaded."""

    status: int | None = None
    """The status code of the server, where it answered."""


class _Broken(Exception):
    """A transfer ended early; another attempt may complete it."""


def fetch(
    address: str,
    target: Path,
    *,
    sha256: str | None = None,
    git_blob: str | None = None,
    watch: Watcher | None = None,
) -> Path:
    """Download a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with locked(target.with_name(target.name + ".lock")):
        if target.is_file():
            return target
        _transfer(address, part, watch)
        wrong = _difference(part, sha256, git_blob)
        if wrong is not None:
            part.unlink()
            raise DownloadError(
                f"{address} does not have the expected contents: {wrong}. Nothing was kept. Try again; if "
                "the error persists, the source has changed."
            )
        part.replace(target)
    return target


def _transfer(address: str, part: Path, watch: Watcher | None) -> None:
    """Retry until the file is complete, or until several attempts in a row brought nothing."""
    idle, reason = 0, ""
    while idle < ATTEMPTS:
        if idle:
            time.sleep(PAUSE * 2 ** (idle - 1))
        before = _size(part)
        try:
            _one_connection(address, part, watch)
            return
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416:  # the requested range does not exist: start over
                    part.unlink(missing_ok=True)
                elif error.code not in _PASSING:
                    final = DownloadError(f"{address} answers {error.code} ({error.reason}).")
                    final.status = error.code
                    raise final from error
            reason = f"it answers {error.code} ({error.reason})"
        except (_Broken, http.client.HTTPException, OSError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        idle = 0 if _size(part) > before else idle + 1
    kept = f" The {_size(part)} bytes received are kept for the next attempt." if _size(part) else ""
    raise DownloadError(f"{address} could not be downloaded: {reason}.{kept}")


def _one_connection(address: str, part: Path, watch: Watcher | None) -> None:
    """Append the data of one connection."""
    start, mark = _size(part), part.with_name(part.name + ".etag")
    headers = {"User-Agent": f"nonneg/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        tag = mark.read_text(encoding="utf-8") if mark.is_file() else ""
        if tag.startswith('"'):
            headers["If-Range"] = tag  # a file that changed is sent in full instead
    with _opener().open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT) as answer:
        start, total = _extent(answer, start)
        mark.write_text(answer.headers.get("ETag") or "", encoding="utf-8")
        with part.open("r+b" if start else "wb") as stream:
            stream.truncate(start)
            stream.seek(start)
            arrived = start
            while chunk := answer.read1(_CHUNK):
                stream.write(chunk)
                arrived += len(chunk)
                if watch is not None:
                    watch(arrived, total)
    if total is not None and arrived < total:
        raise _Broken(f"the connection ended after {arrived} of {total} bytes")
    if total is not None and arrived > total:
        part.unlink()
        raise _Broken(f"{arrived} bytes arrived, but {total} were announced")
    mark.unlink(missing_ok=True)


def _extent(answer: Any, wanted: int) -> tuple[int, int | None]:
    """Say where the answer begins in the file, and how long the file is."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range") or "")
    if answer.status == 206 and found is not None and int(found[1]) == wanted:
        return wanted, None if found[2] == "*" else int(found[2])
    if answer.status == 206:
        raise _Broken("the server sent a range other than the requested one")
    length = answer.headers.get("Content-Length")
    return 0, int(length) if length is not None and length.isdecimal() else None


def _difference(path: Path, sha256: str | None, git_blob: str | None) -> str | None:
    if sha256 is not None:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != sha256:
            return f"the sha256 is {found}, expected {sha256}"
    if git_blob is not None:
        # The git blob identifies the file; it is not a safeguard.
        name = hashlib.sha1(f"blob {_size(path)}\0".encode(), usedforsecurity=False)
        name.update(path.read_bytes())
        if not name.hexdigest().startswith(git_blob):
            return f"the git blob is {name.hexdigest()}, expected {git_blob}"
    return None


class _Redirections(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = (urllib.parse.urlsplit(place).scheme for place in (req.full_url, newurl))
        if new not in ("http", "https") or (old, new) == ("https", "http"):
            raise DownloadError(f"{req.full_url} redirects to {newurl}, which is not followed.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    # HTTP only: the default opener would also open local files.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirections(),
    ):
        opener.add_handler(handler)
    return opener


@contextlib.contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold a file lock, which is released when the process ends."""
    with lock.open("ab") as stream:
        if os.name == "posix":
            fcntl: Any = importlib.import_module("fcntl")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


class TransferLine:
    """A progress line on standard error."""

    # On a terminal it is rewritten a few times per second; elsewhere each file gets a line when it begins.

    def __init__(self, name: str, n_files: int) -> None:
        self.name, self.n_files = name, n_files
        self._stream, self._shown, self._file, self._width = sys.stderr, 0.0, 0, 0
        self._live = bool(getattr(self._stream, "isatty", lambda: False)())

    def begin(self, file: int) -> None:
        """Begin a file."""
        self._file = file
        if not self._live and (file == 1 or file % 100 == 0 or file == self.n_files):
            self._stream.write(f"nonneg: downloading {self.name}, file {file} of {self.n_files}\n")
            self._stream.flush()

    def __call__(self, arrived: int, total: int | None) -> None:
        """Show how much of the file has arrived."""
        now = time.monotonic()
        if not self._live or (now - self._shown < 0.2 and arrived != total):
            return
        self._shown = now
        share = f"{arrived / 1e6:.1f} MB" if total is None else f"{arrived / 1e6:.1f} of {total / 1e6:.1f} MB"
        text = f"nonneg: downloading {self.name}, file {self._file} of {self.n_files}: {share}"
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def close(self) -> None:
        """End the line."""
        if self._live and self._width:
            self._stream.write("\n")
            self._stream.flush()
