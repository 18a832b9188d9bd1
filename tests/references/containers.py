"""The same entries in every container and layout that a user may pass."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.io.stored import ArrayRows, CompressedRows

TORCH = pytest.param("torch", marks=pytest.mark.torch)
SPARSE_TENSOR = pytest.param("torch-csr", marks=pytest.mark.torch)
ON_GPU = ("cuda-csr",)
DASK_FORMS = ("dask", "dask-one-chunk", "dask-columns", "dask-sparse")
FILE_FORMS = ("streamed", "streamed-sparse")
FORMS = ("dense", "fortran", "csr", "csc", "strict", TORCH, *DASK_FORMS, *FILE_FORMS)
MAIN_FORMS = [
    pytest.param(form, marks=pytest.mark.slow)
    if form in ("fortran", "csc", "dask-one-chunk", "dask-columns", "streamed-sparse")
    else form
    for form in FORMS
]
"""For what reaches the data through operators alone, which `tests/data` compares over all forms."""

CONTAINER = {"fortran": "dense", "csr": "sparse", "csc": "sparse", "strict": "array", "torch": "array"}
CONTAINER |= dict.fromkeys(("torch-csr", "torch-csc", "torch-coo", *ON_GPU), "sparse-array")


def container_of(form):
    """Return the container of a form."""
    return form.partition("-")[0] if form in (*DASK_FORMS, *FILE_FORMS) else CONTAINER.get(form, form)


def as_container(X, form):
    """Return X in the given form; skip the test where the library is missing."""
    if form == "dense":
        return X
    if form == "fortran":
        return np.asfortranarray(X)
    if form in ("csr", "csc"):
        return sp.csr_array(X) if form == "csr" else sp.csc_array(X)
    if form in FILE_FORMS:
        return _stored(X, form)
    if form == "strict":
        return pytest.importorskip("array_api_strict").asarray(X)
    if form == "torch":
        return pytest.importorskip("torch").asarray(X)
    if CONTAINER.get(form) == "sparse-array":
        return sparse_array(X, *form.split("-"))
    if form == "anndata":
        return pytest.importorskip("anndata").AnnData(sp.csr_matrix(X))
    da = pytest.importorskip("dask.array")
    n_rows, n_columns = X.shape
    if form == "dask-one-chunk":
        return da.from_array(X, chunks=X.shape)
    uneven = (1, n_rows // 3, n_rows - n_rows // 3 - 1)
    if form == "dask-columns":
        return da.from_array(X, chunks=(uneven, max(1, n_columns // 3)))
    few = max(7, n_rows // 4 + 1)  # rows in a block: Dask takes time for every block
    chunked = da.from_array(X, chunks=(few, n_columns) if form == "dask" else (uneven, n_columns))
    return chunked.map_blocks(sp.csr_array) if form == "dask-sparse" else chunked


def sparse_array(X, library, layout):
    """Return X as a sparse tensor, on the CPU ("torch") or a GPU ("cuda")."""
    torch = pytest.importorskip("torch")
    if library == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the layout is in beta state
        tensor = torch.asarray(X, device="cuda" if library == "cuda" else "cpu")
        return tensor.to_sparse(layout=getattr(torch, f"sparse_{layout}"))


def _stored(X, form):
    # As little memory as makes several blocks of it; the formats of files have tests of their own.
    memory = X.nbytes + 1
    if form == "streamed":
        return ArrayRows(X, "an array", memory)
    csr = sp.csr_array(X)
    return CompressedRows(csr.data, csr.indices, csr.indptr, csr.shape, "arrays", memory)


def plain(array):
    """Return any array as a dense NumPy array."""
    array = array.X if hasattr(array, "obsm") else array
    array = array.read_all() if hasattr(array, "read_all") else array
    if hasattr(array, "map_blocks"):  # older versions of Dask cannot join sparse arrays
        array = array.map_blocks(lambda block: block.toarray() if sp.issparse(block) else block)
    array = array.compute() if hasattr(array, "compute") else array
    if hasattr(array, "layout"):
        array = array.to_dense().cpu()
    array = array.get() if hasattr(array, "get") and not isinstance(array, dict) else array
    return array.toarray() if sp.issparse(array) else np.asarray(array)
