"""Counts of genes: what cannot be factorized, spectra of all genes in TPM and as scores, variable genes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_float64, to_numpy
from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.annotated import AnnDataMatrix, annotated_matrix, is_anndata
from nonneg.data.door import Request, check_entries
from nonneg.data.sparse import SparseMatrix, sparse_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonnegWarning, ShapeError
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode

MILLION = 1e6


def warn_of_logarithms(X: Any, data: DataMatrix, who: str) -> None:
    """Warn if a matrix of an AnnData object has been log-normalized, and say where its counts are."""
    matrix = AnnDataMatrix(X) if is_anndata(X) else X
    if not isinstance(matrix, AnnDataMatrix) or not isinstance(data, LocalMatrix):
        return
    values = data.csr.data if isinstance(data, SparseMatrix) else to_numpy(data.dense_rows(0, data.shape[0]))
    if np.all(values == np.rint(values)):
        return
    layers = [repr(name) for name in map(str, matrix.adata.layers) if "count" in name.lower()]
    places = [f"nonneg.integrations.anndata.matrix(adata, layer={name})" for name in layers[:1]]
    places += ["adata.raw.X"] if getattr(matrix.adata, "raw", None) is not None else []
    warn_user(
        f"{matrix.place} has entries that are not whole numbers"
        f"{', as after scanpy.pp.log1p' if 'log1p' in matrix.adata.uns else ''}, but {who} expects counts: "
        f"programs add up in counts, not in logarithms. Pass {' or '.join(places) or 'the counts'}.",
        NonnegWarning,
    )


def check_columns(data: DataMatrix, names: Sequence[Any] | None, who: str) -> None:
    """Reject features that are zero in all samples."""
    if data.shape[0] < 2:
        raise InvalidDataError(
            f"Expected at least two samples for {who}, got n_samples=1. Pass more samples."
        )
    sums = to_float64(data.reduce_rows(methodcaller("column_powers", 1.0)))
    empty = np.flatnonzero(sums == 0)
    if not empty.size:
        return
    shown = ", ".join(str(at if names is None else names[at]) for at in empty[:5])
    raise InvalidDataError(
        f"{empty.size} of {data.shape[1]} features are zero in all samples ({shown}"
        f"{', ...' if empty.size > 5 else ''}), such as genes without counts: {who} cannot say anything "
        "about them. Leave them out, for example X[:, numpy.ravel(X.sum(axis=0)) > 0], or "
        "scanpy.pp.filter_genes(adata, min_cells=1)."
    )


def _per_million(counts: Any) -> tuple[Any, FloatArray]:
    """Return counts in float64, and the factor of each sample that makes them sum to a million (TPM)."""
    if sp.issparse(counts):
        counts = sparse_matrix(sp.csr_array(counts, dtype=np.float64)).csr
    else:
        counts = np.asarray(counts, dtype=np.float64)
    totals = counts.sum(axis=1)
    return counts, MILLION / np.where(totals > 0, totals, 1.0)


def _column_moments(counts: Any, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and (population) variance of every column of counts times the factors of their rows."""
    mean, squares = (table.T @ by / len(by) for table, by in ((counts, factors), (counts**2, factors**2)))
    # Counts vary by chance: of its 16 digits the difference loses about as many as the mean count has.
    return mean, np.maximum(squares - mean**2, 0.0)


def tpm_spectra(counts: Any, W: Any, *, beta: float = 2.0) -> FloatArray:
    """Return what each program contributes to every gene, in TPM: usages that sum to one are fixed."""
    counts, factors, W = _checked(counts, W)
    sums = W.sum(axis=1, keepdims=True)
    usage = W / np.where(sums > 0, sums, 1.0)
    if beta == 2.0:
        gram = SharedGram(usage.T @ usage)
        H = nonnegative_least_squares(gram, counts.T @ (factors[:, None] * usage))
    else:
        table = as_data_matrix((sp.diags_array(factors) @ counts).T)
        H, _ = encode(table, usage, beta=beta, penalties=Penalties())
    return np.ascontiguousarray(np.asarray(H).T)


def score_spectra(counts: Any, W: Any) -> FloatArray:
    """Return the least-squares coefficients of z-scored TPM on the usages: which genes mark a program."""
    counts, factors, W = _checked(counts, W)
    mean, variance = _column_moments(counts, factors)
    # W' Z without forming Z, which is dense.
    cross = (counts.T @ (factors[:, None] * W)).T - W.sum(axis=0)[:, None] * mean
    return np.linalg.lstsq(W.T @ W, cross / np.sqrt(np.maximum(variance, 1e-12)), rcond=None)[0]


def _checked(counts: Any, W: Any) -> tuple[Any, FloatArray, FloatArray]:
    if (annotated := annotated_matrix(counts)) is not None:
        counts = annotated.entries
        counts = counts.read_all() if hasattr(counts, "read_all") else counts
    counts = counts if sp.issparse(counts) else np.asarray(counts)
    if len(counts.shape) != 2 or counts.shape[0] != len(W):
        raise ShapeError(
            f"Expected counts of the {len(W)} samples that the usages belong to, one per row, got an array "
            f"of shape {tuple(counts.shape)}."
        )
    counts, factors = _per_million(counts)
    check_entries(as_data_matrix(counts), Request(who="gene_spectra", masks=False))
    return counts, factors, to_float64(W)


def variable_genes(counts: Any, n_genes: int) -> IntArray:
    """Return the genes whose Fano factor exceeds most what their mean explains, in their order.

    The expected Fano factor is linear in the mean (Klein et al. 2015, Cell 161(5); the rule of cNMF).
    """
    if n_genes < 1:
        raise InvalidParameterError(f"n_genes must be an integer of at least 1, got {n_genes!r}.")
    mean, variance = _column_moments(*_per_million(counts))
    expressed = mean > 0
    fano = np.where(expressed, variance / np.where(expressed, mean, 1.0), 0.0)
    top = np.argsort(-mean, kind="stable")[:20]
    slope = float(np.min(np.sqrt(variance[top]) / np.where(mean[top] > 0, mean[top], np.inf))) ** 2
    inner = _between(mean) & _between(fano)
    intercept = float(np.median(fano[inner] if inner.any() else fano))
    ratio = np.where(expressed, fano / np.maximum(slope * mean + intercept, np.finfo(float).tiny), -1.0)
    return np.sort(np.argsort(-ratio, kind="stable")[: min(n_genes, int(expressed.sum()))])


def _between(values: FloatArray) -> Any:
    low, high = np.quantile(values, (0.1, 0.9))
    return (values > low) & (values < high)
