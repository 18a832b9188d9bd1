"""The catalog of real data sets: their sources, their known contents, and the folders that hold them."""

from __future__ import annotations

import hashlib
import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

from nonneg.datasets.store import read_archive, user_cache
from nonneg.exceptions import FileFormatError, UnknownNameError
from reproduction.data.content import Known, differences

ENVIRONMENT_VARIABLE = "NONNEG_DATA"
DOWNLOAD_VARIABLE = "NONNEG_DOWNLOAD"
MADE = ".made.json"
"""Next to files that were converted here: their sha256, where no published one is known."""

SOURCES: dict[str, dict[str, Any]] = json.loads(
    resources.files("reproduction.data").joinpath("sources.json").read_text(encoding="utf-8")
)
"""By name of a data set: its license, its sources, and the size and sha256 of each of its files."""

CHECKSUMS: dict[str, str] = {
    f"{name}/{file}": facts["sha256"]
    for name, entry in SOURCES.items()
    for file, facts in entry["files"].items()
    if "sha256" in facts
}
"""The sha256 of files, by path inside the data home; of a few none is known."""

FILES: tuple[str, ...] = tuple(f"{name}/{file}" for name, entry in SOURCES.items() for file in entry["files"])
"""Every file that a loader reads, by path inside the data home."""


def data_home(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder that holds the data sets."""
    if given is None:
        given = os.environ.get(ENVIRONMENT_VARIABLE) or None
    return None if given is None else Path(given).expanduser()


def homes(given: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders that are searched, in this order."""
    named = [data_home(given), data_home() if given is not None else None]
    return [folder for folder in named if folder is not None] + [user_cache()]


def downloads_allowed() -> bool:
    """Tell whether missing data sets may be downloaded."""
    return os.environ.get(DOWNLOAD_VARIABLE, "").strip().lower() not in {"never", "no", "off", "0", "false"}


def download_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder for downloads: the one given, or the user's cache."""
    return user_cache() if given is None else Path(given).expanduser()


def is_available(name: str, home: str | os.PathLike[str] | None = None) -> bool:
    """Tell whether every file of a data set is on this machine; nothing is read or downloaded."""
    known = [file for file in FILES if name in (file, file.split("/")[0])]
    if not known:
        raise UnknownNameError.of("name", name, SOURCES)
    return all(any((folder / file).is_file() for folder in homes(home)) for file in known)


def look_up(file: str, home: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the path of a file on this machine after verifying its contents; None where it is missing."""
    for path in (folder / file for folder in homes(home)):
        if path.is_file():
            check_contents(path, file)
            return path
    return None


def known_arrays(file: str) -> dict[str, Known]:
    """Return what is known of the arrays of a file."""
    name, stored = file.split("/")
    listed = SOURCES[name]["files"][stored].get("arrays", {})
    return {key: Known(dtype, tuple(shape), sha256) for key, (dtype, shape, sha256) in listed.items()}


def check_contents(path: Path, file: str) -> None:
    """Verify that a file has the known contents."""
    expected = CHECKSUMS.get(file) or _sha256_when_made(path)
    if expected is None:
        return  # nothing is known of it
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found in (expected, _sha256_when_made(path)):
        return
    # Another version of NumPy packs the same arrays into other bytes.
    known = known_arrays(file)
    try:
        same = bool(known) and not differences(read_archive(path), known)
    except FileFormatError:
        same = False
    if not same:
        raise FileFormatError(
            f"{path} is not the expected file: its sha256 is {found}, expected {expected}. It is damaged or "
            f"a different version; replace it, or remove it to download it again."
        )


def _sha256_when_made(path: Path) -> str | None:
    """Return the digest that was recorded when the file was converted on this machine."""
    try:
        made = json.loads((path.parent / MADE).read_text(encoding="utf-8"))
        return str(made[path.name])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def offline_instructions(file: str) -> str:
    """Explain how to get a file onto a machine without a network."""
    checked = f" (sha256 {CHECKSUMS[file]})" if file in CHECKSUMS else ""
    origins = "; ".join(
        f"{source['host']} {source['repository']} at {source['revision']}: {', '.join(source['paths'][:3])}"
        for source in SOURCES[file.split("/")[0]]["sources"]
    )
    return (
        f"Offline, put the file at FOLDER/{file}{checked}, copied from the cache ({user_cache()}) of a "
        "machine that downloaded it, and pass data_home=FOLDER or set the environment variable "
        f"{ENVIRONMENT_VARIABLE}=FOLDER. The source: {origins}."
    )
