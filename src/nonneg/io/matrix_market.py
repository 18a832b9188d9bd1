"""Readers of Matrix Market files, and of 10x Genomics folders with matrix.mtx, barcodes and features."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import IO

from scipy import io, sparse

from nonneg._typing import MatrixLike
from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import unique_names
from nonneg.io.limits import check_rows, open_gzip, open_gzip_text
from nonneg.io.table import ReadOptions, Table, read_matrices

_NUMBER = (
    rb"[+-]?+(?:(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?"
    rb"|[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)
# SciPy's reader trusts the text: a truncated exponent, a NUL or one more number in the last line makes it
# read beyond its buffer. Lines have one to four numbers; possessive quantifiers keep the check linear. The
# only group with such a quantifier is a line: before Python 3.11.5 a group that fails keeps what it consumed
# (python/cpython#100061), so a match may end inside a bad line, but never at its end.
_BODIES = {
    n: re.compile(rb"(?:[ \t]*+(?:%s(?:[ \t]++%s){%d}[ \t]*+)?\r?+\n)*+" % (_NUMBER, _NUMBER, n - 1))
    for n in (1, 2, 3, 4)
}
_HEADER = re.compile(
    rb"%%MatrixMarket[ \t]+matrix[ \t]+(coordinate|array)[ \t]+(real|double|integer|complex|pattern|"
    rb"unsigned-integer)[ \t]+(general|symmetric|skew-symmetric|hermitian)[ \t]*\r?\n",
    re.IGNORECASE,
)
_BLOCK = 1 << 24
_LONGEST_LINE = 1 << 16


def read(path: Path, options: ReadOptions) -> Table:
    """Read the matrix."""
    return Table(read_matrix(path))


def read_matrix(path: Path) -> MatrixLike:
    """Check that the text is a Matrix Market file, and read it."""

    def opened() -> IO[bytes]:
        return open_gzip(path) if path.name.lower().endswith(".gz") else path.open("rb")

    with opened() as stream:
        last = _check_text(stream, path)
    if last != last.rstrip():  # which SciPy reads on from, too
        with opened() as stream:
            matrix = read_matrices(io.mmread, BytesIO(stream.read().rstrip()))
    else:
        matrix = read_matrices(io.mmread, path)
    return sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix


def _check_text(stream: IO[bytes], path: Path) -> bytes:
    """Reject a text that is damaged, and return the last line if it does not end with a newline."""
    header = _HEADER.fullmatch(stream.readline(_LONGEST_LINE))
    if header is None:
        raise FileFormatError(
            f"{path} is not a Matrix Market file: its first line must read "
            "'%%MatrixMarket matrix coordinate real general' or the like. Write it again from its source."
        )
    number, line = 2, stream.readline(_LONGEST_LINE)
    while line.startswith(b"%") or (line and not line.strip()):
        number, line = number + 1, stream.readline(_LONGEST_LINE)
    coordinate = header.group(1).lower() == b"coordinate"
    sizes = line.split()
    if len(sizes) != (3 if coordinate else 2) or not all(size.isdigit() for size in sizes):
        wanted = "rows, columns and entries" if coordinate else "rows and columns"
        raise FileFormatError(
            f"{path}, line {number}: expected {wanted} as whole numbers, got {line[:60]!r}."
        )
    if coordinate:
        check_rows(int(sizes[0]), path)
    kind, symmetry = header.group(2).lower(), header.group(3).lower()
    body = _BODIES[2 * coordinate + {b"pattern": 0, b"complex": 2}.get(kind, 1) or 1]
    is_triangle = not coordinate and symmetry != b"general"
    n_bytes, n_entries, rest, number = 0, 0, b"", number + 1
    while block := stream.read(_BLOCK):
        n_bytes += len(block)
        block = rest + block
        end = block.rfind(b"\n") + 1
        number = _check_lines(block[:end], path, number, body)
        n_entries += _count_filled(block[:end]) if is_triangle else 0
        rest = block[end:]
        if len(rest) > _LONGEST_LINE:
            raise FileFormatError(f"{path}, line {number}: a line of over {_LONGEST_LINE} characters.")
    if rest:
        _check_lines(rest + b"\n", path, number, body)
        n_entries += _count_filled(rest)
    if is_triangle:
        # SciPy leaves at zero what a triangle lacks.
        n = int(sizes[0])
        declared = n * (n - 1) // 2 if symmetry == b"skew-symmetric" else n * (n + 1) // 2
        found, enough = f"{n_entries}", n_entries == declared
    else:
        # An entry takes two characters at least, one with indices four.
        declared = int(sizes[2]) if coordinate else int(sizes[0]) * int(sizes[1])
        found = f"only {n_bytes} bytes for them"
        enough = (4 if coordinate else 2) * declared <= n_bytes + 4
    if not enough:
        raise FileFormatError(
            f"{path} declares {declared} entries but has {found}: it is truncated, or its header is wrong. "
            "Write it again from its source."
        )
    return rest


def _count_filled(text: bytes) -> int:
    return sum(1 for line in text.split(b"\n") if line.strip())


def _check_lines(text: bytes, path: Path, first: int, body: re.Pattern[bytes]) -> int:
    """Reject lines that are not the numbers of an entry, and return the number of the next line."""
    good = body.match(text)
    assert good is not None
    if good.end() < len(text):
        line = first + text.count(b"\n", 0, good.end())
        bad = text[text.rfind(b"\n", 0, good.end()) + 1 :].split(b"\n", 1)[0]
        raise FileFormatError(
            f"{path}, line {line}: expected the numbers of one entry, got {bad[:60]!r}. The "
            "file is damaged; write it again from its source."
        )
    return first + text.count(b"\n")


def read_tenx_folder(path: Path, options: ReadOptions) -> Table:
    """Read the counts; cells become rows and features columns."""
    matrix = _find(path, "matrix.mtx")
    features = _lines(_find(path, "features.tsv", "genes.tsv"))
    barcodes = [cells[0] for cells in _lines(_find(path, "barcodes.tsv"))]
    counts = sparse.csr_array(read_matrix(matrix).T)
    if counts.shape != (len(barcodes), len(features)):
        raise FileFormatError(
            f"{matrix} has {counts.shape[1]} features and {counts.shape[0]} barcodes, but {len(features)} "
            f"features and {len(barcodes)} barcodes are named next to it. The files do not belong together, "
            "or one is truncated."
        )
    identifiers = [cells[0] for cells in features]
    symbols = [cells[1] if len(cells) > 1 else cells[0] for cells in features]
    return Table(counts, barcodes, unique_names(symbols, identifiers))


def _find(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    raise FileFormatError(
        f"{folder} is a folder without {' or '.join(names)} (or .gz). A folder is read as a 10x Genomics "
        "matrix: matrix.mtx, barcodes.tsv, and features.tsv or genes.tsv. Otherwise give a file."
    )


def _lines(path: Path) -> list[list[str]]:
    compressed = path.suffix == ".gz"
    with open_gzip_text(path) if compressed else path.open(encoding="utf-8") as stream:
        return [line.rstrip("\r\n").split("\t") for line in stream if line.strip()]
