"""Sources in MATLAB's and HDF5's formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError
from reproduction.data.content import Known, narrowed
from reproduction.data.conversion.located import located, located_sparse

Wanted = Mapping[str, Mapping[str, Known]]
Made = dict[str, dict[str, np.ndarray[Any, Any]]]


def read_matrices(reader: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call `scipy.io.loadmat` or `mmread` and get sparse matrices, the default before SciPy 1.20."""
    # SciPy 1.18 warns where `spmatrix` is left out; SciPy 1.13 does not know it.
    if "spmatrix" in signature(reader).parameters:
        options["spmatrix"] = True
    return reader(*args, **options)


def variables_of(path: Path) -> dict[str, Any]:
    """Return the numeric variables of a .mat or .h5 file, those inside structures by their path."""
    from scipy import io

    with path.open("rb") as stream:
        head = stream.read(520)
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")) or head[512:516] == b"\x89HDF":
        return _hdf5_variables(path, matlab=not head.startswith(b"\x89HDF"))
    try:
        return _flattened(read_matrices(io.loadmat, path))
    except Exception as error:  # the reader raises many types of errors; all mean a damaged file
        raise FileFormatError(
            f"{path.name} could not be read as a MATLAB file: {error}. Download it again."
        ) from error


def dense_arrays(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Return every stored array from the variable that has its entries."""
    variables = _all_variables(paths)
    return {
        file: {name: located(variables, known, f"{name} of {file}") for name, known in arrays.items()}
        for file, arrays in wanted.items()
    }


def mixtures(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the mixtures of one simulation."""
    ((file, known),) = wanted.items()
    if known:
        return dense_arrays(paths, wanted)
    (path,) = paths.values()
    variables = variables_of(path)
    try:
        arrays = {name: np.asarray(variables[name]) for name in ("fs", "ys", "ys1", "ys2")}
    except KeyError as error:
        raise FileFormatError(f"Expected the variable {error} in {path.name}. Download it again.") from error
    return {file: {**arrays, "fs": narrowed(arrays["fs"])}}


def documents(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert counts of words and classes from a .mat file."""
    variables = _all_variables(paths)
    labels = {name: located(variables, known, name) for name, known in wanted["labels.npz"].items()}
    return {"X.npz": located_sparse(variables, wanted["X.npz"], "counts of words"), "labels.npz": labels}


def olivetti(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the Olivetti faces: ten consecutive images per person, whom the source does not name."""
    known = wanted["data.npz"]
    images = located(_all_variables(paths), known["X"], "X of data.npz")
    return {"data.npz": {"X": images, "y": narrowed(np.arange(len(images)) // 10)}}


def samson(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the Samson scene with its truth; the source has the names of the endmembers in a cell."""
    from scipy import io

    known, variables = wanted["data.npz"], _all_variables(paths)
    arrays = {name: located(variables, known[name], name) for name in ("Y", "A", "M")}
    n_names = known["names"].shape[0]
    for path in paths.values():
        for value in read_matrices(io.loadmat, path).values():
            if isinstance(value, np.ndarray) and value.dtype == object and value.size == n_names:
                strings = [str(np.ravel(cell)[0]) if np.size(cell) else "" for cell in value.ravel()]
                arrays["names"] = np.array(strings)
    if "names" not in arrays:
        raise FileFormatError("Expected the names of the endmembers in a cell of the source, found none.")
    # The scene is square.
    arrays["nrow_ncol"] = narrowed([round(arrays["Y"].shape[1] ** 0.5)] * 2)
    return {"data.npz": {name: arrays[name] for name in known}}


def class_subsets(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the draws of classes: each file of the source lists all documents of the drawn classes."""
    classes = np.load(paths["labels.npz"], allow_pickle=False)["y"]
    drawn: dict[str, Any] = {}
    for name, known in wanted["class_subsets.npz"].items():
        n_draws, k = known.shape
        rows = [
            _classes_of_draw(paths[f"{k}Class/{number}.mat"], classes, k) for number in range(1, n_draws + 1)
        ]
        drawn[name] = np.array(rows, dtype=known.dtype)
    return {"class_subsets.npz": drawn}


def _classes_of_draw(path: Path, classes: Any, k: int) -> Any:
    variables = variables_of(path)
    chosen = variables.get("sampleIdx")
    if chosen is None:
        raise FileFormatError(
            f"Expected the variable sampleIdx in {path.name}, found {', '.join(variables)}. Download it "
            "again."
        )
    found = np.unique(classes[np.asarray(chosen).ravel().astype(np.intp) - 1])
    if len(found) != k:
        raise FileFormatError(f"Expected documents of {k} classes in {path.name}, found {len(found)}.")
    return found


def _all_variables(paths: Mapping[str, Path]) -> dict[str, Any]:
    return {
        f"{file}:{name}": value for file, path in paths.items() for name, value in variables_of(path).items()
    }


def _flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith("__"):
            continue
        if hasattr(value, "tocsr"):
            found[name] = value
        elif isinstance(value, np.ndarray) and value.dtype.names and value.size == 1:
            inside = {f"{name}.{field}": value[field].ravel()[0] for field in value.dtype.names}
            found |= _flattened(inside)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "buif":
            found[name] = value
    return found


def _hdf5_variables(path: Path, *, matlab: bool) -> dict[str, Any]:
    import scipy.sparse

    h5py = import_optional("h5py", extra="formats", purpose=f"Reading {path.name}")
    found: dict[str, Any] = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and node.dtype.kind in "buif":
            # MATLAB stores columns first, so arrays are transposed.
            found[name] = node[()].T if matlab else node[()]
        elif isinstance(node, h5py.Group) and "MATLAB_sparse" in node.attrs and "data" in node:
            shape = int(node.attrs["MATLAB_sparse"]), node["jc"].shape[0] - 1
            entries = (node["data"][()], node["ir"][()], node["jc"][()])
            found[f"{name}:sparse"] = scipy.sparse.csc_array(entries, shape=shape)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except OSError as error:
        raise FileFormatError(
            f"{path.name} could not be read as an HDF5 file: {error}. Download it again."
        ) from error
    return found
