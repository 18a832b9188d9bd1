"""Fixtures of the kernels: blocks of rows, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse import SparseMatrix


@pytest.fixture(params=["dense", "int32", "int64"])
def block_of(request):
    """Make a block of rows of a dense array, or a sparse one with these indices."""

    def block(X, weights=None):
        if request.param == "dense":
            return DenseMatrix(X, np, weights=weights)
        csr = sp.csr_array(X)
        csr.indptr, csr.indices = csr.indptr.astype(request.param), csr.indices.astype(request.param)
        return SparseMatrix(csr, weights=weights)

    return block


@pytest.fixture
def sparse_rows():
    """Make rows of unequal length, half of the entries zero, no row of zeros."""

    def rows(rng, n_rows=400, n_columns=30, dtype=np.float64):
        X = rng.gamma(1.0, size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < 0.5)
        X[np.arange(n_rows), np.arange(n_rows) % n_columns] += 0.1
        return (X * rng.gamma(1.0, size=(n_rows, 1))).astype(dtype)

    return rows
