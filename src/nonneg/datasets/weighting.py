"""Weights of words in documents."""

from __future__ import annotations

import numpy as np

from nonneg._typing import SparseMatrix


def tfidf(counts: SparseMatrix) -> SparseMatrix:
    """Return counts times the inverse document frequency, with rows of unit Euclidean length.

    Parameters
    ----------
    counts : scipy.sparse matrix or array of shape (n_documents, n_words)
        How often each word occurs; left as it is.

    Returns
    -------
    scipy.sparse.csr_array
        Of the same floating type as `counts` (float64 for integers). Empty documents stay empty.

    Notes
    -----
    The weight of word w is ``1 + log((1 + n_documents) / (1 + documents with w))``, as scikit-learn's
    ``TfidfTransformer`` has it by default.
    """
    import scipy.sparse

    given = scipy.sparse.csr_array(counts)
    dtype = given.dtype if np.issubdtype(given.dtype, np.floating) else np.dtype(np.float64)
    weighted = given.astype(dtype, copy=True)
    weighted.sum_duplicates()
    n_documents, n_words = weighted.shape
    present = np.bincount(weighted.indices[weighted.data != 0], minlength=n_words)
    inverse = 1.0 + np.log((1.0 + n_documents) / (1.0 + present))
    weighted.data *= inverse[weighted.indices].astype(dtype)
    rows = np.repeat(np.arange(n_documents), np.diff(weighted.indptr))
    lengths = np.sqrt(
        np.bincount(rows, weights=np.square(weighted.data, dtype=np.float64), minlength=n_documents)
    )
    lengths[lengths == 0] = 1.0
    weighted.data /= lengths[rows].astype(dtype)
    return weighted
