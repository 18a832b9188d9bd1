"""TF-IDF weighting."""

from __future__ import annotations

import numpy as np

from nonneg._typing import SparseMatrix


def tfidf(counts: SparseMatrix, *, logarithmic: bool = False, smooth: bool = True) -> SparseMatrix:
    """Return counts times the inverse document frequency, with rows of unit Euclidean length.

    Parameters
    ----------
    counts : scipy.sparse matrix or array of shape (n_documents, n_words)
        Word counts; never changed.
    logarithmic : bool, default False
        Whether counts are replaced by ``1 + log(count)`` (sublinear term frequency).
    smooth : bool, default True
        Whether the weight of a word is smoothed as in the notes; otherwise it is
        ``log(n_documents / documents with w)``, and words in every document vanish.

    Returns
    -------
    scipy.sparse.csr_array
        Same floating-point type as `counts` (float64 for integers). Empty documents stay empty.

    Notes
    -----
    The weight of word w is ``1 + log((1 + n_documents) / (1 + documents with w))``, as in scikit-learn's
    ``TfidfTransformer`` by default. ``logarithmic=True, smooth=False`` is the weighting of Deng Cai's
    collection of data sets, which several papers on NMF use.
    """
    import scipy.sparse

    given = scipy.sparse.csr_array(counts)
    dtype = given.dtype if np.issubdtype(given.dtype, np.floating) else np.dtype(np.float64)
    weighted = given.astype(dtype, copy=True)
    weighted.sum_duplicates()
    n_documents, n_words = weighted.shape
    present = np.bincount(weighted.indices[weighted.data != 0], minlength=n_words)
    if smooth:
        inverse = 1.0 + np.log((1.0 + n_documents) / (1.0 + present))
    else:
        inverse = np.log(n_documents / np.maximum(present, 1))
    if logarithmic:
        stored = weighted.data != 0
        weighted.data[stored] = 1.0 + np.log(weighted.data[stored])
    weighted.data *= inverse[weighted.indices].astype(dtype)
    rows = np.repeat(np.arange(n_documents), np.diff(weighted.indptr))
    lengths = np.sqrt(
        np.bincount(rows, weights=np.square(weighted.data, dtype=np.float64), minlength=n_documents)
    )
    lengths[lengths == 0] = 1.0
    weighted.data /= lengths[rows].astype(dtype)
    return weighted
