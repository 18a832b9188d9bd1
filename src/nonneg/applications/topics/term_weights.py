"""Which words take part, and what a word in a document weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray


def document_frequencies(counts: Any) -> IntArray:
    """Return in how many documents each word occurs."""
    return np.bincount(counts.indices[counts.data != 0], minlength=counts.shape[1]).astype(np.intp)


def informative_words(counts: Any, min_documents: int = 2) -> IntArray:
    """Return the words that say something about how documents differ."""
    found = document_frequencies(counts)
    return np.flatnonzero((found >= min_documents) & (found > 0) & (found < counts.shape[0]))


def inverse_frequencies(counts: Any) -> FloatArray:
    """Return the logarithm of how rare each word is among the documents."""
    found = document_frequencies(counts)
    return np.where(found > 0, np.log(counts.shape[0] / np.maximum(found, 1)), 0.0)


def term_weights(counts: Any, inverse: FloatArray, *, unit_rows: bool = False) -> Any:
    """Return what each word weighs in each document: ``(1 + log count) * inverse``."""
    values = counts.data.astype(np.float64)
    above = values > 1.0
    values[above] = 1.0 + np.log(values[above])
    values *= inverse[counts.indices]
    if unit_rows:
        lengths = np.diff(counts.indptr)
        rows = np.repeat(np.arange(counts.shape[0]), lengths)
        norms = np.sqrt(np.bincount(rows, weights=values * values))
        values /= np.where(norms > 0, norms, 1.0)[rows]
    return sp.csr_array((values.astype(counts.dtype), counts.indices, counts.indptr), shape=counts.shape)


def balanced_documents(weights: Any, min_documents: float = 0.0) -> Any:
    """Return documents scaled so that those of crowded subjects weigh less, each by its own number."""
    # This is the normalized-cut weighting: a least-squares factorization of it asks for clusters that are far
    # from one another in proportion to their size, where the plain one spends its components on the largest
    # subjects.
    # Xu, Liu & Gong (2003), "Document clustering based on non-negative matrix factorization", SIGIR (NMF-
    # NCW).
    # There, any group of documents that resemble no others weighs as much as a whole subject, be it a few
    # pages of boilerplate in a large collection. Similarities to `min_documents` documents of mean length are
    # therefore added to all: a group of g copies then weighs g / (g + min_documents). Chaudhuri, Chung &
    # Tsiatas (2012) and Qin & Rohe (2013) regularize the degrees of spectral clustering in this way.
    similar = np.asarray(weights @ (weights.T @ np.ones(weights.shape[0])), dtype=np.float64).ravel()
    if min_documents > 0:
        rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
        squares = np.square(weights.data, dtype=np.float64)
        lengths = np.sqrt(np.bincount(rows, weights=squares, minlength=weights.shape[0]))
        similar += min_documents * lengths.sum() / max(1, np.count_nonzero(lengths)) * lengths
    scale = 1.0 / np.sqrt(np.where(similar > 0, similar, 1.0))
    values = weights.data * np.repeat(scale, np.diff(weights.indptr))
    return sp.csr_array((values.astype(weights.dtype), weights.indices, weights.indptr), shape=weights.shape)
