"""The same entries in every format that can be read block by block."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

FORMATS = (
    "npy", "fortran npy", "zarr 2", "zarr 3", "hdf5", "chunked hdf5", "h5ad", "dense h5ad",
    "anndata zarr", "parquet", "10x",
)  # fmt: skip
SPARSE = ("h5ad", "anndata zarr", "10x")


def write(X, form, folder, chunk=4):
    """Write X to a file; return its path and the variable that holds it."""
    h5py, zarr = (pytest.importorskip(name) for name in ("h5py", "zarr"))
    path, variable = folder / form.replace(" ", "-"), None
    if form.endswith("npy"):
        path = path.with_suffix(".npy")
        np.save(path, np.asfortranarray(X) if form.startswith("fortran") else X)
    elif form.startswith("zarr"):
        path = path.with_suffix(".zarr")
        chunks = (chunk, max(1, X.shape[1] // 2))
        version = int(form[-1])
        array = zarr.create_array(str(path), shape=X.shape, chunks=chunks, dtype=X.dtype, zarr_format=version)
        array[:] = X
    elif form.endswith("hdf5"):
        path, variable = path.with_suffix(".h5"), "group/X"
        with h5py.File(path, "w") as file:
            options = {"chunks": (chunk, X.shape[1]), "compression": "gzip"} if "chunked" in form else {}
            file.create_dataset(variable, data=X, **options)
    elif form == "parquet":
        pandas = pytest.importorskip("pandas")
        path = path.with_suffix(".parquet")
        frame = pandas.DataFrame(X, columns=[f"f{at}" for at in range(X.shape[1])])
        frame.to_parquet(path, row_group_size=chunk)
    elif form == "10x":
        path = path.with_suffix(".h5")
        _write_tenx(h5py, path, sp.csr_array(X))
    else:
        path = _write_annotated(X, form, path)
    return path, variable


def _write_annotated(X, form, path):
    anndata = pytest.importorskip("anndata")
    kind = {"dense": np.asarray, "csc": sp.csc_matrix}.get(form.partition(" ")[0], sp.csr_matrix)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the next version of Zarr's format
        cells = anndata.AnnData(kind(X))
        if "zarr" in form:
            path = path.with_suffix(".zarr")
            cells.write_zarr(str(path))
        else:
            path = path.with_suffix(".h5ad")
            cells.write_h5ad(path)
    return path


def _write_tenx(h5py, path, csr):
    n_cells, n_features = csr.shape
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        group["data"], group["indices"], group["indptr"] = csr.data, csr.indices, csr.indptr
        group["shape"] = np.array([n_features, n_cells])
        group["barcodes"] = np.array([f"cell{at}" for at in range(n_cells)], dtype="S")
        names = np.array([f"gene{at}" for at in range(n_features)], dtype="S")
        group["features/id"], group["features/name"] = names, names
