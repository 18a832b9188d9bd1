"""Folder of results whose files are complete before they replace those of an earlier run."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nonneg.exceptions import NonnegError, NonnegWarning, OutputError
from nonneg.report.records import MODEL, REPORT, RESULT, Record, as_json, clean, read_object


def write_run(
    folder: Path, record: Record, page: Callable[[Record], str] | None
) -> tuple[list[Path], BaseException | None]:
    """Write the files, the model, the record and the report of a run: all of them, or none.

    If the page cannot be drawn, the rest is written without it, because the fit may have taken hours, and the
    error is returned beside the files.
    """
    failure: BaseException | None = None
    with replaced_folder(folder, earlier_files(folder)) as fresh:
        for name, write in record.files.items():
            write(fresh / name)
        if record.model is not None:
            with warnings.catch_warnings():
                # It says that the checkpoint folder is not part of a saved model.
                warnings.simplefilter("ignore", NonnegWarning)
                record.model.save(fresh / MODEL)
        names = sorted(entry.name for entry in fresh.iterdir())
        content = record.as_dict() | {"files": names}
        (fresh / RESULT).write_text(as_json(content, indent=1) + "\n", encoding="utf-8")
        if page is not None:
            try:
                text = page(record)
            except BaseException as error:
                failure = error
            else:
                (fresh / REPORT).write_text(clean(text), encoding="utf-8")
        written = sorted((entry.name for entry in fresh.iterdir()), key=lambda name: (name == REPORT, name))
    return [folder / name for name in written], failure


def earlier_files(folder: Path) -> set[str]:
    """Return the files of an earlier run in a folder, as its record names them."""
    try:
        names = read_object(folder / RESULT).get("files")
    except (NonnegError, OSError):
        return set()
    listed = names if isinstance(names, list) else []
    # A record may come from elsewhere: only files beside it count.
    plain = {name for name in listed if isinstance(name, str) and Path(name).name == name}
    return plain | {RESULT, REPORT}


@contextmanager
def replaced_folder(folder: str | os.PathLike[str], known: Iterable[str] = ()) -> Iterator[Path]:
    """Write files into a hidden folder, and move them into place when all are complete.

    Files of an earlier run, which `known` names, are removed unless they are replaced.
    """
    place, state = Path(folder).absolute(), "What was there before is unchanged."
    staging: Path | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        yield staging
        written = {entry.name for entry in staging.iterdir()}
        place.mkdir(exist_ok=True)
        state = "Some of its files may be new and some of the earlier run."
        for name in sorted(written):
            (staging / name).replace(place / name)
        for name in set(known) - written:
            (place / name).unlink(missing_ok=True)
    except OSError as error:
        # A writer inside may have explained itself already, with the name of the hidden folder.
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise OutputError(
            f"The results could not be written to {folder}: {cause.strerror or cause}. {state} Free some "
            "space or choose another folder with -o, and run again."
        ) from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
