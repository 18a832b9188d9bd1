"""Measurements of cells and genomes, one cell or patient per row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg.datasets.store import Home
from reproduction.data import store


def load_pbmc3k(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the PBMC 3k blood cells.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``pbmc3k/X.npz`` and ``pbmc3k/labels.npz``; None searches ``NONNEG_DATA``,
        then the user's cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is a CSR array of shape (2700, 13714), counts of molecules, one cell per row; `y` is the cell
        type, -1 for the 62 cells without one.
    """
    labels = store.read_arrays("pbmc3k/labels.npz", data_home)
    return store.Dataset(
        X=store.read_sparse("pbmc3k/X.npz", data_home).astype(dtype),
        y=labels["y"].astype(np.intp),
        names=tuple(map(str, labels["classes"])),
        description=(
            "PBMC 3k (10x Genomics): 2700 cells of blood, one per row, counts of unique molecules of 13714 "
            "genes; nine cell types, -1 where none is given."
        ),
    )


def load_leukemia(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the leukemias of Golub and Brunet.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``leukemia_all_aml/data.npz``; None searches ``NONNEG_DATA``, then the user's
        cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (38, 5000), expression of genes, one patient per row; `y` is the type of leukemia.
    """
    arrays = store.read_arrays("leukemia_all_aml/data.npz", data_home)
    return store.Dataset(
        X=np.ascontiguousarray(arrays["V"].T).astype(dtype),
        y=arrays["y"].astype(np.intp),
        names=("ALL-B", "ALL-T", "AML"),
        description=(
            "Leukemias (Golub et al., 1999; the 5000 genes of Brunet et al., 2004): 38 patients, one per "
            "row, in three kinds."
        ),
        sample_names=tuple(map(str, arrays["samples"])),
    )
