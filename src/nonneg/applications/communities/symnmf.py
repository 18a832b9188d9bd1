"""SymNMF: the normalized adjacency matrix as H H' with a nonnegative H (Kuang, Ding & Park, 2012)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, SparseMatrix
from nonneg.applications.communities.eigenvectors import Eigenpairs
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.certificates.svd_lower_bound import DEFAULT_FACTOR
from nonneg.iteration import Progress, RelativeDecrease, Run, iterate
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes

MAX_ITER, TOL = 300, 1e-5
# Passes over the components per product with the matrix, which costs more than all of them.
N_PASSES = 3
# The weight of ||W - H||^2. The eigenvalues of the normalized matrix are at most 1, and from about half of
# the largest on the two factors agree where the iteration stops (Zhu, Li, Liu & Li, 2018, Theorem 1).
SYMMETRY = 1.0


@dataclass(frozen=True)
class SymNMFResult:
    """The factor, its error, and the iterations."""

    factor: FloatArray  # H: one row per node
    certificate: Certificate
    run: Run[Any]


@dataclass(frozen=True)
class _Factors:
    W: FloatArray
    H: FloatArray
    cross: FloatArray  # the matrix times H


def symnmf(
    matrix: SparseMatrix,
    pairs: Eigenpairs,
    start: FloatArray,
    *,
    n_first: int | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    callback: Callable[[Progress], bool | None] | None = None,
) -> SymNMFResult:
    """Minimize ||S - H H'||^2 over H >= 0, by alternating coordinate descent on W and H that are kept equal.

    With `n_first`, S is that of a bipartite graph whose first `n_first` nodes are one side, and
    ||X - W H'||^2 is minimized, with X the block of S where the sides meet.
    """
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    factor = np.ascontiguousarray(start * np.sqrt(np.maximum(degrees, 0.0))[:, None])
    square = float(np.sum((factor.T @ factor) ** 2))
    factor *= np.sqrt(max(float(np.sum((matrix @ factor) * factor)), 0.0) / square) if square > 0 else 0.0
    symmetric = n_first is None
    X = matrix if symmetric else sp.csr_array(matrix[:n_first, n_first:])
    back = X if symmetric else sp.csr_array(X.T)
    weight = SYMMETRY if symmetric else 0.0

    def step(state: _Factors) -> tuple[_Factors, dict[str, float]]:
        W = _updated(state.W, state.H, state.cross, weight)
        H = _updated(state.H, W, back @ W, weight)
        cross = X @ H
        # Of equal factors where S is symmetric.
        return _Factors(W, H, cross), {"loss": 0.5 * _square_error(X, H if symmetric else W, H, cross)}

    W, H = (factor, factor) if symmetric else (factor[:n_first], factor[n_first:])
    stop = RelativeDecrease(tol)
    run = iterate(step, _Factors(W, H, X @ H), max_iter=max_iter, stop=stop, callback=callback)
    W, H = run.state.H if symmetric else run.state.W, run.state.H
    error = _square_error(X, W, H, run.state.cross)
    statement = _error_statement(error, float(np.sum(X.data**2)), pairs, symmetric)
    return SymNMFResult(H if symmetric else _balanced(W, H), Certificate((statement,)), run)


def _updated(factor: FloatArray, other: FloatArray, cross: FloatArray, weight: float) -> FloatArray:
    gram = other.T @ other
    gram[np.diag_indices_from(gram)] += weight
    target = np.ascontiguousarray(cross if weight == 0 else cross + weight * other)
    rows, _ = hals_passes(np.ascontiguousarray(factor), SharedGram(gram), target, max_passes=N_PASSES)
    return np.asarray(rows)


def _square_error(X: SparseMatrix, W: FloatArray, H: FloatArray, cross: FloatArray) -> float:
    fit = float(np.sum((W.T @ W) * (H.T @ H)))
    return max(float(np.sum(X.data**2)) - 2.0 * float(np.sum(cross * W)) + fit, 0.0)


def _balanced(W: FloatArray, H: FloatArray) -> FloatArray:
    """Return both sides in one factor, with the same norm of every community on both."""
    first, second = np.linalg.norm(W, axis=0), np.linalg.norm(H, axis=0)
    both = (first > 0) & (second > 0)
    scales = np.sqrt(np.where(both, first, 1.0) / np.where(both, second, 1.0))
    return np.vstack([W / scales, H * scales])


def _error_statement(error: float, square: float, pairs: Eigenpairs, symmetric: bool) -> Statement:
    # The eigenvalues of a bipartite graph above zero are the singular values of X. Widened by the residuals,
    # so that the bound is one.
    above = np.maximum(pairs.values, 0.0) + pairs.residual * float(np.abs(pairs.values).max())
    bound = float(np.sqrt(max(square - float(np.sum(above**2)), 0.0) / square))
    error = float(np.sqrt(error / square))
    others = "positive semidefinite matrix" if symmetric else "matrix"
    sentence = (
        f"The relative error of the normalized adjacency matrix is {error:.4g}; no {others} of rank "
        f"{len(pairs.values)} has one below {bound:.4g}."
    )
    quantities = {"relative_error": error, "lower_bound": bound}
    # Both are differences of sums, of which rounding leaves half the digits.
    wrong = error < bound * (1.0 - 1e-6)
    if wrong:
        sentence = (
            f"The relative error of the normalized adjacency matrix is {error:.4g}, below the computed lower "
            f"bound of {bound:.4g}: the bound is wrong, and nothing is claimed."
        )
    if wrong or bound < 1e-7:
        return Statement("symnmf-error", sentence, None, DEFAULT_FACTOR, Verdict.NOT_VERIFIABLE, quantities)
    ratio = error / bound
    verdict = Verdict.HOLDS if ratio <= DEFAULT_FACTOR else Verdict.FAILS
    return Statement("symnmf-error", sentence, ratio, DEFAULT_FACTOR, verdict, quantities)
