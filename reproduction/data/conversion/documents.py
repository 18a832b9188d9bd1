"""Collections of documents in text formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import FileFormatError
from reproduction.data.content import narrowed, sparse_arrays
from reproduction.data.conversion.matlab import Made, Wanted, read_matrices


def cluto(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert counts and classes of a collection of CLUTO."""
    import scipy.sparse

    sparse_file = next(path for name, path in paths.items() if name.startswith("sparse_"))
    class_file = next(path for name, path in paths.items() if name.endswith("_correct.txt"))
    with sparse_file.open("rb") as stream:
        n_rows, n_columns = map(int, stream.readline().split())
        lines = [np.array(line.split(), dtype=np.int64) for line in stream if line.strip()]
    lengths = np.array([len(line) for line in lines])
    if len(lines) != n_rows or any(len(line) != 1 + 2 * line[0] for line in lines):
        raise FileFormatError(
            f"Expected {n_rows} lines of pairs of column and count in {sparse_file.name}, found "
            f"{len(lines)} lines, or a line of the wrong length. Download it again."
        )
    pairs = np.concatenate([line[1:] for line in lines]).reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum((lengths - 1) // 2)])
    counts = scipy.sparse.csr_array((pairs[:, 1], pairs[:, 0], starts), shape=(n_rows, n_columns))
    members = np.loadtxt(class_file, dtype=np.int64, ndmin=2)
    if members.shape[1] != n_rows or not np.array_equal(members.sum(axis=0), np.ones(n_rows)):
        raise FileFormatError(
            f"Expected one class for each of {n_rows} documents in {class_file.name}. Download it again."
        )
    return {"X.npz": sparse_arrays(counts), "labels.npz": {"y": narrowed(members.argmax(axis=0))}}


def bbc(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the BBC articles."""
    from scipy import io

    counts: Any = read_matrices(io.mmread, paths["bbc.mtx"])
    classes = np.loadtxt(paths["bbc.classes"], dtype=np.int64, comments="%", ndmin=2)
    terms = paths["bbc.terms"].read_text(encoding="utf-8").split()
    if counts.shape != (len(terms), len(classes)):
        raise FileFormatError(
            f"Expected {len(terms)} terms by {len(classes)} documents in bbc.mtx, found {counts.shape}. "
            "Download it again."
        )
    labels = classes[np.argsort(classes[:, 0], kind="stable"), 1]
    return {
        "X.npz": sparse_arrays(counts.T),
        "labels.npz": {"y": narrowed(labels)},
        "vocab.npz": {"vocab": np.array(terms)},
    }
