"""Documents from files: texts, lines, columns of tables, JSON lines, and matrices of counts."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.io.limits import open_bytes
from nonneg.io.read import FORMATS, read_table

TEXTS = (".txt", ".text", ".md", ".rst", ".txt.gz")
JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
TABLES = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
MATRICES = FORMATS.keys() - TEXTS
# The encoding of a text by the bytes with which it begins; the longer ones first.
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
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
    if len(paths) == 1 and column is None and not lines and _ending(first) in MATRICES:
        if time_column is not None:
            raise InvalidParameterError(
                f"--time-column names a column of a table of texts, but {first} is read as word counts. Name "
                "the column of texts with --text-column; in Python, TopicModel.over_time takes counts."
            )
        return _matrix(first, vocabulary)
    if vocabulary is not None:
        raise InvalidParameterError("A vocabulary is for a matrix of counts; texts bring their own words.")
    documents = [one for path in paths for one in _texts(Path(path), column, lines, time_column)]
    names, texts, times = ([one[at] for one in documents] for at in range(3))
    if time_column is not None and all(time is None for time in times):
        raise InvalidParameterError(f"No document has an entry under {time_column!r} (--time-column).")
    if len(texts) < at_least:
        number = f"{'one document' if texts else 'no document'} in {', '.join(map(str, paths))}"
        hint = "" if lines else ", or use --lines where every line is a document"
        needed = "; topics need several" if at_least > 1 else ""
        raise FileFormatError(f"There is {number}{needed}. Name more files{hint}.")
    source = first.name if len(paths) == 1 else f"{first.name} and {len(paths) - 1} more"
    return Documents(texts, names, None, source or str(first), None if time_column is None else times)


def _ending(path: Path) -> str:
    known = sorted((*TEXTS, *JSON_LINES, *TABLES, *MATRICES), key=len, reverse=True)
    name = "" if path.is_dir() else path.name.lower()
    return next((ending for ending in known if name.endswith(ending)), "")


def _matrix(path: Path, vocabulary: Path | None) -> Documents:
    try:
        table = read_table(path)
    except FileFormatError as error:
        if _ending(path) not in TABLES:
            raise
        raise FileFormatError(
            f"{path} is not a table of word counts. If it contains texts, name their column with "
            f"--text-column: one of {(_table_rows(path) or [[]])[0]}. ({str(error).partition('. ')[0]}.)"
        ) from error
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
    if not path.exists():
        raise FileFormatError(f"{path} does not exist.")
    ending = _ending(path)
    plain = path.is_dir() or ending in TEXTS
    if plain:
        files = sorted(one for one in path.rglob("*") if one.is_file() and _ending(one) in TEXTS)
        if path.is_dir() and not files:
            raise FileFormatError(f"{path} contains no text files ({', '.join(TEXTS)}).")
        for file in files or [path]:
            name = str(file.relative_to(path)) if files else path.name
            if not lines:
                yield name, _read_text(file), None
                continue
            for at, line in enumerate(_lines(_read_text(file)), 1):
                if line.strip():
                    yield f"{name}:{at}", line.rstrip("\n"), None
        return
    if ending not in JSON_LINES and ending not in TABLES:
        raise FileFormatError(
            f"{path} is not read as texts. Expected texts ({', '.join(TEXTS)}), a table "
            f"({', '.join(TABLES)}) with --text-column, JSON lines ({', '.join(JSON_LINES[:2])}), or, alone "
            f"and without --text-column, a matrix of counts ({', '.join(sorted(MATRICES))})."
        )
    column = column or "text"
    for place, entries in _records(path, ending):
        if not isinstance(entries, dict) or not isinstance(entries.get(column), str):
            there = f"there are {list(entries)}" if isinstance(entries, dict) else "it is no object"
            if isinstance(entries, dict) and column in entries:
                there = f"it is {str(entries[column])[:40]}"
            raise FileFormatError(
                f"{path}, {place}: no text under {column!r}; {there}. Name the column or key of the texts "
                'with --text-column, and write "" for an empty document.'
            )
        name = next((str(entries[key]) for key in ("name", "title", "id") if key in entries), place)
        yield name, entries[column], entries.get(time_column)


def _read_text(path: Path) -> str:
    try:
        with open_bytes(path) as stream:
            raw = stream.read()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path} cannot be read: {reason}.") from error
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8")
    # Old texts are in one byte a letter; in the last of these every byte stands for one.
    for encoding in (marked, "cp1252"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")


def _lines(text: str) -> Iterator[str]:
    # str.splitlines also ends lines at marks that stand within sentences, such as U+2028 and U+0085.
    return iter(io.StringIO(text, newline=None))


def _table_rows(path: Path) -> list[list[str]]:
    before = csv.field_size_limit(LONGEST_CELL)  # a document may be longer than the limit of the library
    try:
        text = re.sub(r"\Asep=.\s*\n", "", _read_text(path))  # in which Excel names the delimiter
        # Spreadsheets write semicolons where the comma stands before decimals.
        delimiter = max((TABLES[_ending(path)], ";"), key=text.partition("\n")[0].count)
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise FileFormatError(f"{path} could not be read as a table: {error}.") from error
    finally:
        csv.field_size_limit(before)


def _records(path: Path, ending: str) -> Iterator[tuple[str, Any]]:
    """Yield the place of every row or line, and its entries by name."""
    if ending in TABLES:
        headings, *rows = _table_rows(path) or [[]]
        yield from (
            (f"row {at}", dict(zip(headings, row, strict=False))) for at, row in enumerate(rows, 2) if row
        )
        return
    for at, line in enumerate(_lines(_read_text(path)), 1):
        if line.strip():
            try:
                yield f"line {at}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FileFormatError(
                    f"{path}, line {at}: not JSON ({error}). Expected one object per line."
                ) from error
