"""Documents from files: texts, lines, columns of tables, JSON lines, and matrices of counts."""

from __future__ import annotations

import codecs
import csv
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.io.limits import open_gzip
from nonneg.io.read import known_suffixes, read_table

TEXTS = (".txt", ".text", ".md", ".rst", ".txt.gz")
"""Endings of files that are one document each."""
JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
TABLES = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""How a text is encoded, by the bytes with which it begins; the longer ones first."""
LONGEST_CELL = (1 << 31) - 1


@dataclass(frozen=True)
class Documents:
    """Documents and what they are called."""

    contents: Any  # texts, or counts of words
    names: list[str]  # one per document
    words: list[str] | None  # what the columns of counts are called
    source: str  # where they came from, in a few words
    times: list[Any] | None = None  # when each was written, where a column says so

    @property
    def are_texts(self) -> bool:
        """Whether the contents are texts."""
        return isinstance(self.contents, list)


def read_documents(
    paths: Sequence[Path],
    *,
    column: str | None = None,
    lines: bool = False,
    vocabulary: Path | None = None,
    time_column: str | None = None,
    at_least: int = 2,
) -> Documents:
    """Read documents from files and folders."""
    if not paths:
        raise InvalidParameterError("No files were given. Name text files, folders, or a table.")
    first = Path(paths[0])
    if lines:
        _check_lines(paths)
    if len(paths) == 1 and column is None and _is_matrix(first):
        if time_column is not None:
            raise InvalidParameterError(
                f"--time-column names a column of a table of texts, but {first} is read as word counts. Name "
                "the column of texts with --text-column; in Python, TopicModel.over_time takes counts."
            )
        return _matrix(first, vocabulary)
    if vocabulary is not None:
        raise InvalidParameterError(
            "A vocabulary belongs to one matrix of counts; texts bring their own words."
        )
    names: list[str] = []
    texts: list[str] = []
    times: list[Any] = []
    for path in paths:
        for name, text, time in _texts(Path(path), column, lines, time_column):
            names.append(name)
            texts.append(text)
            times.append(time)
    if time_column is not None and all(time is None for time in times):
        raise InvalidParameterError(f"No document has an entry under {time_column!r} (--time-column).")
    if len(texts) < at_least:
        found = f"{'one document' if texts else 'no document'} in {', '.join(map(str, paths))}"
        hint = "" if lines else ", or use --lines where every line is a document"
        needed = "; topics need several" if at_least > 1 else ""
        raise FileFormatError(f"There is {found}{needed}. Name more files{hint}.")
    source = first.name if len(paths) == 1 else f"{first.name} and {len(paths) - 1} more"
    return Documents(texts, names, None, source or str(first), None if time_column is None else times)


def _ending(path: Path) -> str:
    name = path.name.lower()
    known = (*TEXTS, *JSON_LINES, *TABLES, *known_suffixes())
    return next((ending for ending in sorted(known, key=len, reverse=True) if name.endswith(ending)), "")


def _is_matrix(path: Path) -> bool:
    return not path.is_dir() and _ending(path) in known_suffixes()


def _check_lines(paths: Sequence[Path]) -> None:
    for path in paths:
        if not Path(path).is_dir() and (ending := _ending(Path(path))) and ending not in TEXTS:
            raise InvalidParameterError(
                f"--lines belongs to texts ({', '.join(TEXTS)}), but {path} is not one. Leave it out, or "
                f"rename the file if its lines are documents."
            )


def _counts(path: Path) -> Any:
    try:
        return read_table(path)
    except FileFormatError as error:
        headings = next(_rows(path, TABLES[_ending(path)]), []) if _ending(path) in TABLES else []
        if len(headings) < 1:
            raise
        reason = str(error).partition(". ")[0]
        raise FileFormatError(
            f"{reason}. A table without --text-column is read as word counts; if one of its columns "
            f"contains texts, name it with --text-column: {headings[:20]}."
        ) from error


def _matrix(path: Path, vocabulary: Path | None) -> Documents:
    table = _counts(path)
    words = None if table.column_names is None else list(table.column_names)
    if vocabulary is not None:
        words = [line.strip() for line in _read_text(vocabulary).splitlines() if line.strip()]
        if len(words) != table.X.shape[1]:
            raise FileFormatError(
                f"{vocabulary} has {len(words)} words, but {path} has {table.X.shape[1]} columns. Expected "
                f"one word per line, in the order of the columns."
            )
    names = table.row_names or [f"row {at}" for at in range(table.X.shape[0])]
    return Documents(table.X, list(names), words, path.name)


def _texts(
    path: Path, column: str | None, lines: bool, time_column: str | None
) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, the text and the time of every document."""
    if time_column is not None and (path.is_dir() or _ending(path) in TEXTS):
        raise InvalidParameterError(
            f"--time-column names a column of a table or a key of JSON lines, but {path} has neither."
        )
    if path.is_dir():
        found = sorted(entry for entry in path.rglob("*") if entry.is_file() and _ending(entry) in TEXTS)
        if not found:
            raise FileFormatError(f"{path} contains no text files ({', '.join(TEXTS)}).")
        for entry in found:
            for name, text, _ in _texts(entry, None, lines, None):
                yield f"{entry.relative_to(path)}{name.removeprefix(entry.name)}", text, None
        return
    if not path.exists():
        raise FileFormatError(f"{path} does not exist.")
    ending = _ending(path)
    if ending in JSON_LINES:
        yield from _json_lines(path, column or "text", time_column)
    elif ending in TABLES:
        yield from _column(path, TABLES[ending], column, time_column)
    elif ending in TEXTS:
        text = _read_text(path)
        if not lines:
            yield path.name, text, None
        else:
            for at, line in enumerate(_lines(text), 1):
                if line.strip():
                    yield f"{path.name}:{at}", line.rstrip("\n"), None
    else:
        raise FileFormatError(
            f"{path} has an unknown file type. Expected texts ({', '.join(TEXTS)}), a table "
            f"({', '.join(TABLES)}) with --text-column, JSON lines ({', '.join(JSON_LINES[:2])}), or one "
            f"matrix of counts ({', '.join(known_suffixes())})."
        )


def _read_text(path: Path) -> str:
    try:
        raw = open_gzip(path).read() if path.name.endswith(".gz") else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path} cannot be read: {reason}.") from error
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)
    # Old texts are in one byte a letter; in the last of these every byte stands for one.
    for encoding in (marked or "utf-8", "cp1252", "latin-1"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 takes every byte")


def _lines(text: str) -> Iterator[str]:
    # str.splitlines also ends lines at marks that stand within sentences, such as U+2028 and U+0085.
    return iter(io.StringIO(text, newline=None))


def _rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    before = csv.field_size_limit(LONGEST_CELL)  # a document may be longer than the limit of the library
    try:
        return iter(list(csv.reader(io.StringIO(_read_text(path), newline=""), delimiter=delimiter)))
    except csv.Error as error:
        raise FileFormatError(f"{path} could not be read as a table: {error}.") from error
    finally:
        csv.field_size_limit(before)


def _json_lines(path: Path, key: str, time_column: str | None) -> Iterator[tuple[str, str, Any]]:
    for at, line in enumerate(_lines(_read_text(path)), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(
                f"{path}, line {at}: not JSON ({error}). Expected one object per line."
            ) from error
        if isinstance(entry, dict) and key in entry and not isinstance(entry[key], str):
            raise FileFormatError(
                f"{path}, line {at}: expected a text under {key!r}, found {json.dumps(entry[key])[:40]}. "
                'Leave the line out, or write "" for an empty document.'
            )
        if not isinstance(entry, dict) or key not in entry:
            keys = sorted(entry) if isinstance(entry, dict) else type(entry).__name__
            raise FileFormatError(
                f"{path}, line {at}: no text under {key!r}; found {keys}. Name the key with --text-column."
            )
        name = next((str(entry[word]) for word in ("name", "title", "id") if word in entry), f"line {at}")
        time = None if time_column is None else entry.get(time_column)
        yield name, entry[key], time


def _column(
    path: Path, delimiter: str, column: str | None, time_column: str | None
) -> Iterator[tuple[str, str, Any]]:
    rows = _rows(path, delimiter)
    headings = next(rows, None)
    if headings is None:
        raise FileFormatError(f"{path} is empty; expected a line of headings.")
    if column is None:
        raise InvalidParameterError(
            f"Name the column of {path} that contains the texts with --text-column: one of {headings}."
        )
    for wanted in (column, time_column):
        if wanted is not None and wanted not in headings:
            raise InvalidParameterError(f"{path} has no column {wanted!r}; its columns are {headings}.")
    at = headings.index(column)
    when = None if time_column is None else headings.index(time_column)
    named = next((headings.index(word) for word in ("name", "title", "id") if word in headings), None)
    for number, row in enumerate(rows, 2):
        if row:
            if len(row) <= at:
                raise FileFormatError(
                    f"{path}, row {number}: {len(row)} cells, but the texts are in column {at + 1}."
                )
            name = row[named] if named is not None and named < len(row) else f"row {number}"
            yield name, row[at], row[when] if when is not None and when < len(row) else None
