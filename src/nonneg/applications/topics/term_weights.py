"""Which words take part, and what a word in a document weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray


def document_frequencies(counts: Any) -> IntArray:
    """Return in how many documents each word occurs.

    Parameters
    ----------
    counts : scipy.sparse CSR array of shape (n_documents, n_words)
        Counts of words, without duplicates.

    Returns
    -------
    array of int of shape (n_words,)
        0 for words that do not occur.
    """
    return np.bincount(counts.indices[counts.data != 0], minlength=counts.shape[1]).astype(np.intp)


def informative_words(counts: Any, min_documents: int = 2) -> IntArray:
    """Return the words that say something about how documents differ.

    Parameters
    ----------
    counts : scipy.sparse CSR array of shape (n_documents, n_words)
        Counts of words.
    min_documents : int
        Words in fewer documents are left out: a word of a single document correlates with nothing else.

    Returns
    -------
    array of int
        Words in at least so many documents and not in all, whose inverse document frequency is zero.
    """
    found = document_frequencies(counts)
    return np.flatnonzero((found >= min_documents) & (found > 0) & (found < counts.shape[0]))


def inverse_frequencies(counts: Any) -> FloatArray:
    """Return the logarithm of how rare each word is among the documents.

    Parameters
    ----------
    counts : scipy.sparse CSR array of shape (n_documents, n_words)
        Counts of words.

    Returns
    -------
    array of shape (n_words,)
        ``log(n_documents / documents with the word)``; 0 for words that do not occur.
    """
    found = document_frequencies(counts)
    return np.where(found > 0, np.log(counts.shape[0] / np.maximum(found, 1)), 0.0)


def term_weights(counts: Any, inverse: FloatArray, *, unit_rows: bool = False) -> Any:
    """Return what each word weighs in each document: ``(1 + log count) * inverse``.

    Parameters
    ----------
    counts : scipy.sparse CSR array of shape (n_documents, n_words)
        Counts of words; left as they are. Entries below 1 stand for themselves, without the logarithm.
    inverse : array of shape (n_words,)
        From `inverse_frequencies`.
    unit_rows : bool
        Whether every document is divided by its Euclidean length. Empty ones stay empty.

    Returns
    -------
    scipy.sparse.csr_array of shape (n_documents, n_words)
        Of the dtype of the counts.
    """
    values = counts.data.astype(np.float64)
    above = values > 1.0
    values[above] = 1.0 + np.log(values[above])
    values *= inverse[counts.indices]
    if unit_rows:
        lengths = np.diff(counts.indptr)
        rows = np.repeat(np.arange(counts.shape[0]), lengths)
        norms = np.sqrt(np.bincount(rows, weights=values * values, minlength=counts.shape[0]))
        values /= np.where(norms > 0, norms, 1.0)[rows]
    return sp.csr_array((values.astype(counts.dtype), counts.indices, counts.indptr), shape=counts.shape)


def balanced_documents(weights: Any) -> Any:
    """Return documents scaled so that those of crowded subjects weigh less, each by its own number.

    Parameters
    ----------
    weights : scipy.sparse CSR array of shape (n_documents, n_words)
        Weights of words in documents, not negative.

    Returns
    -------
    scipy.sparse.csr_array of shape (n_documents, n_words)
        Every row divided by the root of the sum of its similarities (inner products) to all documents,
        which is found by two products with vectors.

    Notes
    -----
    This is the normalised-cut weighting: a least-squares factorization of it asks for clusters that are far
    from one another in proportion to their size, where the plain one spends its components on the largest
    subjects.

    References
    ----------
    .. [1] Xu, Liu & Gong (2003), "Document clustering based on non-negative matrix factorization", SIGIR
       (NMF-NCW).
    """
    similar = np.asarray(weights @ (weights.T @ np.ones(weights.shape[0])), dtype=np.float64).reshape(-1)
    scale = np.where(similar > 0, 1.0 / np.sqrt(np.where(similar > 0, similar, 1.0)), 0.0)
    values = weights.data * np.repeat(scale, np.diff(weights.indptr))
    return sp.csr_array((values.astype(weights.dtype), weights.indices, weights.indptr), shape=weights.shape)
