"""Leading eigenvectors of an adjacency matrix, to machine precision."""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from nonneg._arguments import checked_verbose
from nonneg._random import Seed, generator
from nonneg._threads import parallel_for
from nonneg._ties import fixed_vectors
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError

SPECTRA = ("auto", "magnitude", "algebraic")
# "auto": noise has eigenvalues of both signs and of about the same size: on the choosing draws of the study
# `studies/communities` the largest one below zero is at most 1.02 times as large as the last one above, and
# those of groups that avoid themselves are at least 1.13 times as large.
NEGATIVE_MARGIN = 1.05
# One node with more than this share of an eigenvector below zero is a hub, not a community.
LOCALIZED = 0.25
# Up to this number of nodes the whole matrix is decomposed.
DENSE_NODES = 600
# Each takes a dozen products or more; leading eigenvalues that stand out take a few.
MAX_RESTARTS = 500
# An eigenvalue below this share of the largest is none.
NO_VALUE = 1e-10


class Eigenpairs(NamedTuple):
    """Leading eigenvalues and eigenvectors.

    Attributes
    ----------
    values : array of shape (k,)
        The largest first.
    vectors : array of shape (n_nodes, k)
        Orthonormal columns; the largest entry of each is positive.
    residual : float
        The largest norm of A v - value v, over the largest value.
    next_value : float or None
        The eigenvalue that would come next, where the whole matrix was decomposed.
    """

    values: FloatArray
    vectors: FloatArray
    residual: float
    next_value: float | None


def leading_eigenvectors(
    adjacency: SparseMatrix, k: int, *, spectrum: str = "magnitude", rng: Seed = None, verbose: int = 0
) -> Eigenpairs:
    """Return the eigenvectors that span the communities.

    Parameters
    ----------
    adjacency : sparse array of shape (n_nodes, n_nodes)
        Symmetric, float64.
    k : int
        How many, below the number of nodes.
    spectrum : {"auto", "magnitude", "algebraic"}, default "magnitude"
        Which eigenvalues count as leading: those of largest magnitude, the largest ones, or ("auto") the
        largest ones and negative ones that are clearly larger in magnitude and do not belong to a single hub.
    rng : None, int, Generator, RandomState or SeedSequence
        None starts from a vector that depends on the number of nodes alone; otherwise it is drawn from here.
    verbose : int, default 0
        1 shows a line with the number of products so far.

    Returns
    -------
    Eigenpairs
        Residuals are of the size of rounding: a tolerance of 1e-6 changes the answer on graphs with many
        components, whose rows are exact zeros.

    Raises
    ------
    InvalidParameterError
        If the matrix has fewer nonzero eigenvalues.
    InvalidDataError
        If the iteration does not converge.
    """
    if spectrum not in SPECTRA:
        raise UnknownNameError.of("spectrum", spectrum, SPECTRA)
    n = adjacency.shape[0]
    if k > n:
        raise InvalidParameterError(
            f"n_communities={k} is more than the {n} nodes with edges. Ask for fewer."
        )
    following: float | None = None
    if n <= DENSE_NODES or k >= n - 1:
        values, vectors = np.linalg.eigh(adjacency.toarray())
        order = _leading_first(values, vectors, spectrum)
        following = float(values[order[k]]) if k < n else None
        values, vectors = values[order[:k]], vectors[:, order[:k]]
    else:
        values, vectors = _arnoldi(adjacency, k, "LA" if spectrum == "algebraic" else "LM", rng, verbose)
        if spectrum == "magnitude" and _cuts_a_pair(values):
            values, vectors = _arnoldi(adjacency, k + 1, "LM", rng, verbose)
        if spectrum == "auto" and values.min() < 0:
            # Those below zero that can lead are among the largest in magnitude.
            below = values < 0
            more, right = _arnoldi(adjacency, k, "LA", rng, verbose)
            above = more > 0
            values = np.concatenate([values[below], more[above]])
            vectors = np.concatenate([vectors[:, below], right[:, above]], axis=1)
        order = _leading_first(values, vectors, spectrum)[:k]
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
    return Eigenpairs(values, vectors, residual, following)


def _leading_first(values: FloatArray, vectors: FloatArray, spectrum: str) -> IntArray:
    """Return the order of the eigenvalues; of two that differ in sign alone the one above 0 comes first."""
    if spectrum == "algebraic":
        return np.argsort(-values, kind="stable")
    if spectrum == "auto":
        spread = (vectors**2).max(axis=0) <= LOCALIZED
        below = np.where(spread, -values / NEGATIVE_MARGIN, values)
        return np.argsort(-np.where(values < 0, below, values), kind="stable")
    # A bipartite graph has them in pairs, equal up to rounding.
    step = NO_VALUE * float(np.abs(values).max()) or 1.0
    return np.lexsort((-values, -np.round(np.abs(values) / step)))


def _cuts_a_pair(values: FloatArray) -> bool:
    """Say whether the values are those of a bipartite graph, the last one below 0 without its twin."""
    below, above = np.sort(-values[values < 0]), np.sort(values[values > 0])
    return len(below) == len(above) + 1 and np.allclose(below[1:], above, rtol=1e-8, atol=0.0)


def _arnoldi(
    adjacency: SparseMatrix, k: int, which: str, rng: Seed, verbose: int
) -> tuple[FloatArray, FloatArray]:
    n = adjacency.shape[0]
    # A fixed start by default, so that the same graph gives the same vectors.
    start = generator(n if rng is None else rng).standard_normal(n)
    counter = _Counter(adjacency, verbose)
    operator = sla.LinearOperator((n, n), matvec=counter, dtype=np.float64)
    try:
        values, vectors = sla.eigsh(
            operator, k, which=which, tol=0, v0=start, ncv=min(n, max(2 * k + 1, 20)), maxiter=MAX_RESTARTS
        )
    except sla.ArpackNoConvergence as error:
        raise InvalidDataError(
            f"Only {len(error.eigenvalues)} of {k} leading eigenvectors could be found in "
            f"{counter.n_products} products: the eigenvalues that follow are nearly equal. Ask for another "
            f"number of communities."
        ) from error
    counter.close()
    return values, vectors


class _Counter:
    """Multiplies by the matrix, counts, and shows the count now and then."""

    def __init__(self, adjacency: SparseMatrix, verbose: int) -> None:
        self.adjacency, self.verbose = adjacency, checked_verbose(verbose)
        self.parts: dict[tuple[int, int], SparseMatrix] = {}
        self.n_products = 0
        self.started = self.shown = time.monotonic()

    def __call__(self, vector: Any) -> Any:
        self.n_products += 1
        if self.verbose and time.monotonic() - self.shown > 5.0:
            self.shown = time.monotonic()
            self._write("so far")
        pieces = parallel_for(
            lambda start, stop: self._rows(start, stop) @ vector,
            self.adjacency.shape[0],
            chunk_size=1024,
            operations=2.0 * self.adjacency.nnz,
        )
        return np.concatenate(pieces)

    def _rows(self, start: int, stop: int) -> SparseMatrix:
        # Views of the matrix: SciPy's product works on one thread, and lets others work beside it.
        if (start, stop) not in self.parts:
            whole = self.adjacency
            first, last = whole.indptr[start], whole.indptr[stop]
            entries = (
                whole.data[first:last],
                whole.indices[first:last],
                whole.indptr[start : stop + 1] - first,
            )
            self.parts[start, stop] = sp.csr_array(entries, shape=(stop - start, whole.shape[1]))
        return self.parts[start, stop]

    def close(self) -> None:
        if self.verbose:
            self._write("in all")

    def _write(self, when: str) -> None:
        seconds = time.monotonic() - self.started
        sys.stderr.write(f"eigenvectors: {self.n_products} products {when}, {seconds:.1f} s\n")
        sys.stderr.flush()
