"""Leading eigenvectors of an adjacency matrix, to machine precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from nonneg._random import Seed, generator
from nonneg._ties import fixed_vectors
from nonneg._typing import FloatArray, SparseMatrix
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError

# Up to this number of nodes the whole matrix is decomposed.
DENSE_NODES = 600
# Each takes a dozen products or more; leading eigenvalues that stand out take a few.
MAX_RESTARTS = 500
# An eigenvalue below this share of the largest is rounding.
NO_VALUE = 1e-10


class Eigenpairs(NamedTuple):
    """Leading eigenvalues and eigenvectors."""

    values: FloatArray  # the largest first
    vectors: FloatArray  # orthonormal columns; the largest entry of each is positive
    residual: float  # the largest norm of A v - value v, over the largest value


def normalized_adjacency(adjacency: SparseMatrix) -> SparseMatrix:
    """Divide rows and columns by the roots of the degrees plus the mean degree.

    Without the addition, nodes and components with few edges dominate; one mean degree is the choice of Qin &
    Rohe (2013).
    """
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    scales = 1.0 / np.sqrt(degrees + degrees.mean())
    rows = np.repeat(np.arange(len(scales)), np.diff(adjacency.indptr))
    data = adjacency.data * scales[rows] * scales[adjacency.indices]
    return sp.csr_array((data, adjacency.indices, adjacency.indptr), shape=adjacency.shape)


def leading_eigenvectors(
    adjacency: SparseMatrix, k: int, *, spectrum: str = "magnitude", rng: Seed = None
) -> Eigenpairs:
    """Return the k eigenvectors whose eigenvalues lead: by "magnitude", or ("algebraic") the largest ones.

    Residuals are of the size of rounding: a tolerance of 1e-6 changes the answer on graphs with many
    components, whose rows are exact zeros. Without `rng`, the start depends on the number of nodes alone.
    """
    n = adjacency.shape[0]
    if k > n:
        raise InvalidParameterError(
            f"n_communities={k} is more than the {n} nodes with edges. Ask for fewer."
        )
    if n <= DENSE_NODES or k >= n - 1:
        values, vectors = np.linalg.eigh(adjacency.toarray())
    else:
        values, vectors = _lanczos(adjacency, k, "LA" if spectrum == "algebraic" else "LM", rng)
    order = np.argsort(-values, kind="stable")
    if spectrum != "algebraic":
        # A bipartite graph has them in pairs that differ in sign alone, equal up to rounding: the one above 0
        # comes first.
        step = NO_VALUE * float(np.abs(values).max()) or 1.0
        order = np.lexsort((-values, -np.round(np.abs(values) / step)))
    order = order[:k]
    values, vectors = values[order], vectors[:, order]
    scale = float(np.abs(values).max())
    n_values = int(np.count_nonzero(np.abs(values) > NO_VALUE * scale))
    if n_values < k:
        raise InvalidParameterError(
            f"The adjacency matrix has only {n_values} nonzero eigenvalues, fewer than n_communities={k}. "
            f"Ask for {n_values} or fewer."
        )
    vectors = np.ascontiguousarray(fixed_vectors(values, vectors))
    residual = float(np.linalg.norm(adjacency @ vectors - vectors * values, axis=0).max()) / scale
    return Eigenpairs(values, vectors, residual)


def _lanczos(adjacency: SparseMatrix, k: int, which: str, rng: Seed) -> tuple[FloatArray, FloatArray]:
    n = adjacency.shape[0]
    # A fixed start by default, so that the same graph gives the same vectors.
    start = generator(n if rng is None else rng).standard_normal(n)
    data = as_data_matrix(adjacency)  # its products use all threads
    operator = sla.LinearOperator((n, n), lambda v: data.times(v.reshape(n, 1)).ravel(), dtype=np.float64)
    try:
        pairs = sla.eigsh(
            operator, k, which=which, tol=0, v0=start, ncv=min(n, max(2 * k + 1, 20)), maxiter=MAX_RESTARTS
        )
    except sla.ArpackNoConvergence as error:
        raise InvalidDataError(
            f"Only {len(error.eigenvalues)} of {k} leading eigenvectors could be found: the eigenvalues that "
            "follow are nearly equal. Ask for another number of communities."
        ) from error
    return pairs[0], pairs[1]
