"""SymNMF: the normalized adjacency matrix as H H' with a nonnegative H (Kuang, Ding & Park, 2012)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    H = np.ascontiguousarray(start * np.sqrt(np.maximum(degrees, 0.0))[:, None])
    cross = matrix @ H
    square = float(np.sum((H.T @ H) ** 2))
    H *= np.sqrt(max(float(np.sum(cross * H)), 0.0) / square) if square > 0 else 0.0
    half_norm = 0.5 * float(np.sum(matrix.data**2))
    sides = None if n_first is None else (slice(0, n_first), slice(n_first, len(H)))
    step = _symmetric_step(matrix, half_norm) if sides is None else _two_sided_step(matrix, half_norm, sides)
    run = iterate(
        step,
        _Factors(H, H, matrix @ H),
        max_iter=max_iter,
        stop=RelativeDecrease(tol),
        callback=callback,
    )
    factor = run.state.H
    return SymNMFResult(
        factor, Certificate((_error_statement(factor, matrix, pairs, half_norm, sides),)), run
    )


def _symmetric_step(matrix: SparseMatrix, half_norm: float) -> Callable[[_Factors], Any]:
    def step(state: _Factors) -> tuple[_Factors, dict[str, float]]:
        W = _updated(state.W, state.H, state.cross)
        H = _updated(state.H, W, matrix @ W)
        cross = matrix @ H
        loss = half_norm - float(np.sum(cross * H)) + 0.5 * float(np.sum((H.T @ H) ** 2))
        return _Factors(W, H, cross), {"loss": max(loss, 0.0)}

    return step


def _updated(factor: FloatArray, other: FloatArray, cross: FloatArray) -> FloatArray:
    gram = other.T @ other
    gram[np.diag_indices_from(gram)] += SYMMETRY
    rows, _ = hals_passes(factor, SharedGram(gram), cross + SYMMETRY * other, max_passes=N_PASSES)
    return np.asarray(rows)


def _two_sided_step(
    matrix: SparseMatrix, half_norm: float, sides: tuple[slice, slice]
) -> Callable[[_Factors], Any]:
    def step(state: _Factors) -> tuple[_Factors, dict[str, float]]:
        factor, cross = state.H.copy(), state.cross
        for mine, others in (sides, sides[::-1]):
            gram = factor[others].T @ factor[others]
            rows, _ = hals_passes(
                np.ascontiguousarray(factor[mine]),
                SharedGram(gram),
                np.ascontiguousarray(cross[mine]),
                max_passes=N_PASSES,
            )
            factor[mine] = np.asarray(rows)
            cross = matrix @ factor
        factor, scales = _balanced(factor, sides)
        cross = cross / scales
        cross[sides[0]] *= scales**2
        first, second = factor[sides[0]], factor[sides[1]]
        fit = np.sum((first.T @ first) * (second.T @ second))
        loss = half_norm - float(np.sum(cross * factor)) + float(fit)
        return _Factors(factor, factor, cross), {"loss": max(loss, 0.0)}

    return step


def _balanced(factor: FloatArray, sides: tuple[slice, slice]) -> tuple[FloatArray, FloatArray]:
    """Give both sides of every community the same norm; return what the second was multiplied by."""
    first, second = (np.linalg.norm(factor[side], axis=0) for side in sides)
    both = (first > 0) & (second > 0)
    scales = np.sqrt(np.where(both, first, 1.0) / np.where(both, second, 1.0))
    factor = factor * scales
    factor[sides[0]] /= scales**2
    return factor, scales


def _error_statement(
    factor: FloatArray,
    matrix: SparseMatrix,
    pairs: Eigenpairs,
    half_norm: float,
    sides: tuple[slice, slice] | None,
) -> Statement:
    square = 2.0 * half_norm
    # Widened by the residuals, so that the bound is one.
    above = np.maximum(pairs.values, 0.0) + pairs.residual * float(np.abs(pairs.values).max())
    explained = float(np.sum(above**2)) * (1.0 if sides is None else 2.0)
    bound = np.sqrt(max(square - explained, 0.0) / square)
    if sides is None:
        left = (
            square - 2.0 * float(np.sum((matrix @ factor) * factor)) + float(np.sum((factor.T @ factor) ** 2))
        )
    else:
        first, second = factor[sides[0]], factor[sides[1]]
        fit = float(np.sum((first.T @ first) * (second.T @ second)))
        left = square - 2.0 * float(np.sum((matrix @ factor) * factor)) + 2.0 * fit
    error = float(np.sqrt(max(left, 0.0) / square))
    k = factor.shape[1]
    others = "positive semidefinite matrix" if sides is None else "matrix"
    sentence = (
        f"The relative error of the normalized adjacency matrix is {error:.4g}; no {others} of rank {k} has "
        f"one below {bound:.4g}."
    )
    quantities = {"relative_error": error, "lower_bound": float(bound)}
    # Both are differences of sums, of which rounding leaves half the digits.
    if error < bound * (1.0 - 1e-6):
        sentence = (
            f"The relative error of the normalized adjacency matrix is {error:.4g}, below the computed lower "
            f"bound of {bound:.4g}: the bound is wrong, and nothing is claimed."
        )
        return Statement("symnmf-error", sentence, None, DEFAULT_FACTOR, Verdict.NOT_VERIFIABLE, quantities)
    if bound < 1e-7:
        return Statement("symnmf-error", sentence, None, DEFAULT_FACTOR, Verdict.NOT_VERIFIABLE, quantities)
    ratio = error / float(bound)
    verdict = Verdict.HOLDS if ratio <= DEFAULT_FACTOR else Verdict.FAILS
    return Statement("symnmf-error", sentence, ratio, DEFAULT_FACTOR, verdict, quantities)
