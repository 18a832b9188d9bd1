"""How much of the data the factors explain, and what each component contributes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nonneg._typing import FloatArray

# Entries of W H that exist at one time: 16 MB.
_BLOCK_ENTRIES = 2_000_000


def observed_relative_error(X: Any, W: FloatArray, H: FloatArray) -> float:
    """Measure the Frobenius norm of X - W H over that of X, on the entries that are not NaN."""
    # W H exists one block of rows at a time; for sparse X it does not exist at all.
    squared_norm, squared_error = 0.0, 0.0
    if sparse.issparse(X):
        rows = sparse.csr_array(X)
        squared_norm = float(np.sum(np.square(rows.data, dtype=np.float64)))
        inner = float(np.sum((rows @ np.asarray(H, dtype=np.float64).T) * W))
        model = float(np.sum((W.T.astype(np.float64) @ W) * (H.astype(np.float64) @ H.T)))
        squared_error = max(squared_norm - 2.0 * inner + model, 0.0)
    else:
        step = max(1, _BLOCK_ENTRIES // X.shape[1])
        for start in range(0, X.shape[0], step):
            block = np.asarray(X[start : start + step], dtype=np.float64)
            residual = block - W[start : start + step] @ H
            squared_norm += float(np.nansum(np.square(block)))
            squared_error += float(np.nansum(np.square(residual)))
    if squared_norm == 0.0:
        return 0.0 if squared_error == 0.0 else float("inf")
    return float(np.sqrt(squared_error / squared_norm))


def component_strengths(W: FloatArray, H: FloatArray) -> FloatArray:
    """Give the share of each component: the norm of its rank-one part over the sum of these norms."""
    norms = np.linalg.norm(W.astype(np.float64), axis=0) * np.linalg.norm(H.astype(np.float64), axis=1)
    total = norms.sum()
    return norms / total if total > 0 else norms
