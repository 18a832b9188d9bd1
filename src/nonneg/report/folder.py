"""Folder of results that is replaced as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nonneg.exceptions import NonnegWarning, OutputError
from nonneg.report.records import MODEL, REPORT, RESULT, Record, as_json, clean


def write_run(
    folder: Path, record: Record, page: Callable[[Record], str] | None, *, known: frozenset[str] = frozenset()
) -> tuple[list[Path], BaseException | None]:
    """Write the files, the model, the record and the report of a run: all of them, or none.

    `known` names further files that an earlier run may have left. If the page cannot be drawn, the rest is
    written without it, because the fit may have taken hours, and the error is returned beside the files.
    """
    failure: BaseException | None = None
    stale = frozenset({RESULT, MODEL, REPORT, *known, *record.files})
    with replaced_folder(folder, stale) as fresh:
        for name, write in record.files.items():
            write(fresh / name)
        if record.model is not None:
            with warnings.catch_warnings():
                # It says that the checkpoint folder is not part of a saved model.
                warnings.simplefilter("ignore", NonnegWarning)
                record.model.save(fresh / MODEL)
        (fresh / RESULT).write_text(as_json(record.as_dict(), indent=1) + "\n", encoding="utf-8")
        if page is not None:
            try:
                text = page(record)
            except BaseException as error:
                failure = error
            else:
                (fresh / REPORT).write_text(clean(text), encoding="utf-8")
        written = sorted((entry.name for entry in fresh.iterdir()), key=lambda name: (name == REPORT, name))
    return [folder / name for name in written], failure


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
    except _HalfReplacedError as error:
        # The old files are not thrown away with the hidden folder.
        raise OutputError(
            f"The results could not be written to {folder}: {error}. Some of its files are new and some are "
            f"of the earlier run, all of whose files are in {staging}. Move them back, or run again with "
            "another folder (-o)."
        ) from error
    except OSError as error:
        _remove(staging)
        # A writer inside may have explained itself already, with the name of the hidden folder.
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise OutputError(
            f"The results could not be written to {folder}: {cause.strerror or cause}. What was there before "
            "is unchanged. Free some space or choose another folder with -o, and run again."
        ) from error
    except BaseException:
        _remove(staging)
        raise
    _remove(staging)


class _HalfReplacedError(Exception):
    """Moving the new files failed, and so did moving the old ones back."""


def _remove(staging: Path | None) -> None:
    if staging is not None:
        shutil.rmtree(staging, ignore_errors=True)


def _exchange(fresh: Path, place: Path, staging: Path, known: frozenset[str]) -> None:
    """Move complete files over the old ones, which are kept until all are in place."""
    written = sorted(entry.name for entry in fresh.iterdir())
    stale = sorted(name for name in known.difference(written) if (place / name).is_file())
    old = staging / "old"
    old.mkdir()
    for name in [*written, *stale]:
        if (place / name).is_file():
            _keep(place / name, old / name)
    try:
        for name in written:
            (fresh / name).replace(place / name)
        for name in stale:
            (place / name).unlink()
    except BaseException as error:
        try:
            for name in [*written, *stale]:
                if (old / name).exists():
                    (old / name).replace(place / name)
                else:
                    (place / name).unlink(missing_ok=True)
        except OSError:
            raise _HalfReplacedError(str(error)) from error
        raise


def _keep(old: Path, copy: Path) -> None:
    try:
        copy.hardlink_to(old)  # costs nothing, and the old name stays in place all the time
    except OSError:
        shutil.copy2(old, copy)
