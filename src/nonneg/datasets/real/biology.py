"""Measurements of cells and genomes, one cell or patient per row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg.datasets import store
from nonneg.datasets.dataset import Home
from nonneg.exceptions import UnknownNameError

COHORTS = ("EU", "FR", "UK", "US")


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


def load_brca_sbs96(
    data_home: Home = None, *, cohort: str = "all", dtype: npt.DTypeLike = np.float64
) -> store.Dataset:
    """Return the mutations of whole genomes of breast cancers.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``brca_sbs96_wgs/BRCA-EU.npz`` and the other cohorts; None searches
        ``NONNEG_DATA``, then the user's cache, then the source.
    cohort : {"all", "EU", "FR", "UK", "US"}, default "all"
        The cohort of patients.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (n_patients, 96), counts of the 96 types of single-base substitutions, one patient per
        row (793 in all); `feature_names` are the types, `sample_names` the patients, and `y` is the cohort.
    """
    if cohort not in ("all", *COHORTS):
        raise UnknownNameError.of("cohort", cohort, ["all", *COHORTS])
    chosen = COHORTS if cohort == "all" else (cohort,)
    tables = [store.read_arrays(f"brca_sbs96_wgs/BRCA-{one}.npz", data_home) for one in chosen]
    # The type of a mutation is the same column in every cohort, whatever the order in its file.
    types = [str(name) for name in tables[0]["types"]]
    columns = [[list(map(str, table["types"])).index(name) for name in types] for table in tables]
    parts = [table["V"][order].T for table, order in zip(tables, columns, strict=True)]
    return store.Dataset(
        X=np.concatenate(parts).astype(dtype),
        y=np.repeat([COHORTS.index(one) for one in chosen], [len(part) for part in parts]).astype(np.intp),
        names=COHORTS,
        description=(
            "Breast cancers of ICGC, whole genomes: counts of the 96 types of single-base substitutions, one "
            f"patient per row. Cohorts: {', '.join(chosen)}."
        ),
        sample_names=tuple(str(name) for table in tables for name in table["samples"]),
        feature_names=tuple(types),
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
