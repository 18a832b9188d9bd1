"""Finished restarts on disk, each in a small file, so that a killed run resumes where it stopped."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arrays import write_npz
from nonneg.exceptions import OutputError
from nonneg.iteration.checkpoint import UNREADABLE

PLAN = "plan.json"


@dataclass(frozen=True)
class RestartStore:
    """A folder of restarts that share data and parameters, which `key` identifies."""

    # Seeds of restarts follow from the root. Runs with other data or parameters have folders of their own.
    folder: Path
    root: int

    @classmethod
    def open(cls, folder: Path, key: str, root: int | None) -> RestartStore:
        """Open the folder of a run; without a root, the one that the folder has, or a new one."""
        place = folder / key[:16]
        try:
            place.mkdir(parents=True, exist_ok=True)
            for plan in [place / PLAN] if root is None else []:
                if plan.exists():
                    root = int(json.loads(plan.read_text())["root"])
            if root is None:
                root = int(np.random.default_rng().integers(2**62))
            if not (place / PLAN).exists():
                _replace(place / PLAN, json.dumps({"root": root}).encode())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(
                f"The folder of restarts {place} cannot be used: {error}. Name another folder in checkpoint."
            ) from error
        return cls(place / f"{root:016x}", root)

    def load(self, k: int, number: int) -> dict[str, Any] | None:
        """Return a stored restart, or None; a damaged file counts as none, since it can be computed again."""
        path = self._path(k, number)
        if not path.exists():
            return None
        try:
            # NumPy leaves a damaged file open that it has opened itself.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (*UNREADABLE, zipfile.BadZipFile):
            return None

    def save(self, k: int, number: int, **arrays: Any) -> None:
        """Store a restart; the file appears whole or not at all."""
        path = self._path(k, number)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as stream:
                    write_npz(stream, arrays)
                Path(name).replace(path)
            finally:
                Path(name).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"A restart could not be written to {path}: {error}. Those before it are intact. Free some "
                "space or name another folder in checkpoint."
            ) from error

    def _path(self, k: int, number: int) -> Path:
        return self.folder / f"rank-{k:03d}" / f"{number:05d}.npz"


def _replace(path: Path, content: bytes) -> None:
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)
