"""Downloads of data sets: fetch the source, convert it to the stored files, verify and store them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from nonneg.exceptions import FileFormatError, MissingDependencyError
from reproduction.data.catalog import MADE, check_contents, known_arrays, look_up, offline_instructions
from reproduction.data.content import Known, differences
from reproduction.data.conversion.recipes import Origin, Recipe, recipe_of
from reproduction.data.download import DownloadError, fetch, locked

HOSTS = {
    "github": "https://raw.githubusercontent.com",
    "github-names": "https://api.github.com",
    "pypi": "https://pypi.org",
}
"""Base addresses of the hosts."""


def acquire(file: str, home: Path) -> Path:
    """Download a file from its source and convert it."""
    name, stored = file.split("/")
    recipe = recipe_of(file)
    folder = home / name
    lock = folder / f".{recipe.files[0]}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(lock):
            if not (folder / stored).is_file():  # another process may have stored it meanwhile
                _acquired(recipe, file, home)
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"The data set file {file} cannot be stored in {folder}: {error.strerror or error}. Pass a "
            f"writable folder as data_home. {offline_instructions(file)}"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # folders that are not empty stay
            lock.unlink(missing_ok=True)
            folder.rmdir()
            home.rmdir()
    return folder / stored


def _needed(file: str, home: Path) -> Path:
    return look_up(file, home) or acquire(file, home)


def _acquired(recipe: Recipe, file: str, home: Path) -> None:
    name = file.split("/")[0]
    folder = home / name
    needed = {one: _needed(f"{name}/{one}", home) for one in recipe.needs}
    raw = folder / ".fetched" / recipe.files[0]
    try:
        paths = {origin.key: _fetched(origin, raw) for origin in recipe.origins}
    except DownloadError as error:
        raise DownloadError(f"{error} {offline_instructions(file)}") from error
    try:
        _made(recipe, name, folder, {**paths, **needed})
    except MissingDependencyError:
        raise  # the download is used once the library is installed
    except BaseException:
        # The download is not the expected one; if kept, it would be used again.
        _removed(raw)
        raise
    _removed(raw)


def _removed(raw: Path) -> None:
    """Remove a folder of downloads, and its parent where that is empty."""
    shutil.rmtree(raw, ignore_errors=True)
    with contextlib.suppress(OSError):  # other downloads are running
        raw.parent.rmdir()


def address_of(origin: Origin) -> tuple[str, str | None]:
    """Return the address of a file and its sha256, where the host gives one."""
    if origin.host == "github":
        return f"{HOSTS['github']}/{origin.repository}/{origin.revision}/{quote(origin.path)}", None
    listing = f"{HOSTS['pypi']}/pypi/{origin.repository}/{origin.revision}/json"
    found = _json(listing)
    try:
        for entry in found["urls"]:
            if entry["packagetype"] == "bdist_wheel":
                return str(entry["url"]), str(entry["digests"]["sha256"])
    except (KeyError, TypeError) as error:
        raise DownloadError(f"{listing} has no list of files: {error}.") from error
    raise DownloadError(f"{listing} lists no wheel.")


def _full_revision(origin: Origin) -> str:
    address = f"{HOSTS['github-names']}/repos/{origin.repository}/commits/{origin.revision}"
    found = _json(address)
    sha = str(found.get("sha", "")) if isinstance(found, dict) else ""
    if not sha.startswith(origin.revision):
        raise DownloadError(f"{address} names no commit {origin.revision}.")
    return sha


def _json(address: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        text = fetch(address, Path(folder) / "answer.json").read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError as error:
        raise DownloadError(f"{address} is not JSON: {error}.") from error


def _fetched(origin: Origin, folder: Path) -> Path:
    target = folder / origin.key
    if target.is_file():
        return target
    address, sha256 = address_of(origin)
    try:
        return fetch(address, target, sha256=sha256, git_blob=origin.git_blob)
    except DownloadError:
        if origin.host != "github" or len(origin.revision) == 40:
            raise
        # Revisions are abbreviated; a host may need the full one.
        whole = replace(origin, revision=_full_revision(origin))
        return fetch(address_of(whole)[0], target, git_blob=origin.git_blob)


def _made(recipe: Recipe, name: str, folder: Path, paths: Mapping[str, Path]) -> None:
    if recipe.convert is None:
        (file,), (path,) = recipe.files, paths.values()
        check_contents(path, f"{name}/{file}")
        path.replace(folder / file)
        return
    wanted = {file: known_arrays(f"{name}/{file}") for file in recipe.files}
    made = recipe.convert(paths, wanted)
    for file in recipe.files:
        _check(made[file], wanted[file], f"{name}/{file}")
    for file in recipe.files:
        _write(made[file], folder / file)
        if not wanted[file]:
            _write_down(folder / file)


def _write_down(path: Path) -> None:
    """Record the digest of a file of which no other is known, so that later damage is detected."""
    record = path.parent / MADE
    made = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    made[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    fresh = record.with_name(f"{record.name}.{os.getpid()}")
    fresh.write_text(json.dumps(made, indent=1), encoding="utf-8")
    fresh.replace(record)


def _check(arrays: Mapping[str, Any], known: Mapping[str, Known], file: str) -> None:
    wrong = differences(arrays, known) if known else []
    if wrong:
        raise FileFormatError(
            f"The source of {file} does not have the expected contents: {'; '.join(wrong)}. The source has "
            f"changed. {offline_instructions(file)}"
        )


def _write(arrays: Mapping[str, np.ndarray[Any, Any]], target: Path) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez_compressed(stream, **dict(arrays))  # type: ignore[arg-type]
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
