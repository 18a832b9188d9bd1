"""Counts of genes in single cells, with planted gene programs and data sets that differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.datasets.dataset import check_numbers
from nonneg.exceptions import InvalidParameterError

# Base expression is log-normal with this deviation, and a program raises some genes by a log-normal factor,
# as in Splatter (Zappia et al. 2017): a few genes hold most counts.
_LOG_BASE, _LOG_FOLD, _LOG_FOLD_SD = 1.0, 1.8, 0.5
_MARKERS = 0.05  # share of the genes that a program raises
_ROWS = 2000  # cells that are drawn at once, so that the dense means of all cells are never in memory


@dataclass(frozen=True)
class CellData:
    """Simulated cells with their ground truth.

    Attributes
    ----------
    X : scipy.sparse.csr_array of shape (n_cells, n_genes)
        Counts, float32.
    H : array of shape (n_programs, n_genes)
        The programs: the share of each gene in the counts that a program makes, without batch effects.
    W : array of shape (n_cells, n_programs)
        The usages: the share of each program in the expected counts of a cell.
    labels : array of int of shape (n_cells,)
        The cell type of each cell: its identity program.
    batch : array of int of shape (n_cells,)
        The data set of each cell.
    batch_H : array of shape (n_batches, n_programs, n_genes)
        The programs of each data set, with batch effects.
    gene_names : tuple of str
        One name per gene.
    """

    X: SparseMatrix
    H: FloatArray
    W: FloatArray
    labels: IntArray
    batch: IntArray
    batch_H: FloatArray
    gene_names: tuple[str, ...]


def single_cells(
    n_cells: int = 10_000,
    n_genes: int = 2_000,
    n_programs: int = 10,
    *,
    n_activities: int = 2,
    n_batches: int = 1,
    batch_effect: float = 0.3,
    program_effect: float = 0.0,
    library_size: float = 1000.0,
    dispersion: float = 0.1,
    rng: Seed = None,
) -> CellData:
    """Return counts of genes in cells of several types, some of which run activity programs as well.

    Parameters
    ----------
    n_cells : int, default 10000
        Rows of X.
    n_genes : int, default 2000
        Columns of X.
    n_programs : int, default 10
        Number of gene programs, activities included.
    n_activities : int, default 2
        Programs that cells of any type may run in addition to that of their type; a third of the cells do.
    n_batches : int, default 1
        Number of data sets. They differ in batch effects, depth and the frequencies of cell types.
    batch_effect : float, default 0.3
        Standard deviation of the logarithm of the factors by which a data set multiplies its genes.
    program_effect : float, default 0
        Number of genes that a program raises in only one data set, relative to those that it raises in all.
    library_size : float, default 1000
        Median number of counts per cell.
    dispersion : float, default 0.1
        Overdispersion of the counts: their variance is ``mean + dispersion * mean**2``; 0 for Poisson.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.

    Returns
    -------
    CellData
        Counts, programs, usages, cell types and data sets.
    """
    check_numbers(single_cells, locals(), lowest=0)
    n_types = n_programs - n_activities
    if n_types < 1 or n_batches < 1 or library_size == 0:
        raise InvalidParameterError(
            "Expected n_programs > n_activities, n_batches >= 1 and library_size above 0, got "
            f"{n_programs=}, {n_activities=}, {n_batches=} and {library_size=}."
        )
    rng = generator(rng)
    base = rng.lognormal(0.0, _LOG_BASE, n_genes)
    folds = np.where(
        rng.random((n_programs, n_genes)) < _MARKERS,
        rng.lognormal(_LOG_FOLD, _LOG_FOLD_SD, (n_programs, n_genes)),
        1.0,
    )
    # An activity adds its own genes to a cell and not another copy of the base.
    folds[n_types:] = np.where(folds[n_types:] > 1, folds[n_types:], 0.1)
    H = base * folds
    H /= H.sum(axis=1, keepdims=True)
    batch_H = H * rng.lognormal(0.0, batch_effect if n_batches > 1 else 0.0, (n_batches, 1, n_genes))
    if n_batches > 1 and program_effect > 0:
        own = rng.random(batch_H.shape) < program_effect * _MARKERS
        batch_H *= np.where(own, rng.lognormal(_LOG_FOLD, _LOG_FOLD_SD, batch_H.shape), 1.0)
    batch_H /= batch_H.sum(axis=2, keepdims=True)
    batch = np.sort(rng.integers(n_batches, size=n_cells))
    frequencies = rng.dirichlet(np.full(n_types, 3.0), size=n_batches)
    frequencies = 0.5 * frequencies + 0.5 * frequencies.mean(axis=0)
    labels = (rng.random((n_cells, 1)) > np.cumsum(frequencies, axis=1)[batch]).sum(axis=1)
    labels = np.minimum(labels, n_types - 1)
    W = np.zeros((n_cells, n_programs))
    W[np.arange(n_cells), labels] = 1.0
    if n_activities:
        active = rng.random((n_cells, n_activities)) < 1.0 / (3.0 * n_activities)
        W[:, n_types:] = np.where(active, rng.uniform(0.1, 1.0, (n_cells, n_activities)), 0.0)
    W /= W.sum(axis=1, keepdims=True)
    depth = library_size * rng.lognormal(0.0, 0.3, n_cells) * np.linspace(1.0, 1.5, n_batches)[batch]
    blocks = []
    for start in range(0, n_cells, _ROWS):
        rows = slice(start, start + _ROWS)
        means = np.empty((len(W[rows]), n_genes))
        for at in range(n_batches):
            here = batch[rows] == at
            means[here] = (depth[rows, None] * W[rows])[here] @ batch_H[at]
        if dispersion > 0:
            means *= rng.standard_gamma(1.0 / dispersion, means.shape) * dispersion
        blocks.append(sparse.csr_array(rng.poisson(means).astype(np.float32)))
    names = tuple(f"gene_{at}" for at in range(n_genes))
    return CellData(sparse.csr_array(sparse.vstack(blocks)), H, W, labels, batch, batch_H, names)
