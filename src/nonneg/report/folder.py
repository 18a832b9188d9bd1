"""A folder of results that is replaced as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nonneg.exceptions import OutputError


def check_output_folder(folder: str | os.PathLike[str]) -> None:
    """Make sure before a long run that its results can be written."""
    place = Path(folder).absolute()
    if place.exists() and not place.is_dir():
        raise OutputError(
            f"{folder} is a file; expected a folder for the results. Choose another one with -o."
        )
    existing = place
    while not existing.is_dir():
        existing = existing.parent
        if existing.exists() and not existing.is_dir():
            raise OutputError(
                f"{existing} is a file, not a folder. Choose a folder other than {folder} with -o."
            )
    for needed in {existing, place.parent if place.is_dir() else existing}:
        if not os.access(needed, os.W_OK | os.X_OK):
            raise OutputError(f"{needed} is not writable. Choose another folder with -o.")
        try:
            # Rights alone do not tell: a file system may be mounted for reading, or make no folders.
            Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=needed)).rmdir()
        except OSError as error:
            raise OutputError(
                f"{needed} is not writable: {error.strerror}. Choose another folder with -o."
            ) from None


@contextmanager
def replaced_folder(folder: str | os.PathLike[str], known: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Write files into a hidden folder, and move them into place when all are complete."""
    place = Path(folder).absolute()
    staging: Path | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        fresh = staging / "new"
        fresh.mkdir()
        yield fresh
        if place.exists():
            _exchange(fresh, place, staging, known)
        else:
            fresh.replace(place)
    except OSError as error:
        # A writer inside may have explained itself already, with the name of the hidden folder.
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        reason = cause.strerror or str(cause)
        raise OutputError(
            f"The results could not be written to {folder}: {reason}. What was there before is unchanged. "
            "Free some space or choose another folder with -o, and run again."
        ) from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)


def _exchange(fresh: Path, place: Path, staging: Path, known: frozenset[str]) -> None:
    """Move complete files over the old ones, which are kept until all are in place."""
    written = sorted(entry.name for entry in fresh.iterdir())
    stale = sorted(name for name in known.difference(written) if (place / name).is_file())
    kept = staging / "old"
    kept.mkdir()
    for name in [*written, *stale]:
        if (place / name).is_file():
            _keep(place / name, kept / name)
    try:
        for name in written:
            (fresh / name).replace(place / name)
        for name in stale:
            (place / name).unlink()
    except BaseException:
        for name in [*written, *stale]:
            if (kept / name).exists():
                (kept / name).replace(place / name)
            else:
                (place / name).unlink(missing_ok=True)
        raise


def _keep(old: Path, copy: Path) -> None:
    try:
        copy.hardlink_to(old)  # costs nothing, and the old name stays in place all the time
    except OSError:
        shutil.copy2(old, copy)
