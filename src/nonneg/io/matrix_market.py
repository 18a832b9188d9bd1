"""Reader of .mtx and .mtx.gz: Matrix Market, dense or sparse."""

from __future__ import annotations

from pathlib import Path

from scipy import io, sparse

from nonneg._scipy import read_matrices
from nonneg.io.table import Contents, ReadOptions


def read(path: Path, options: ReadOptions) -> Contents:
    """Read the matrix."""
    matrix = read_matrices(io.mmread, path)
    return Contents(sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix)
