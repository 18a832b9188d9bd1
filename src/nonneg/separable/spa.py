"""Successive projections (SPA): select the largest residual, then project its direction out."""

from __future__ import annotations

from functools import partial
from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.separable.greedy import GreedyRule, GrowingBasis, accurate_squares, select_greedily
from nonneg.separable.result import SelectionResult

# Squared residuals that agree to this fraction are tied: far above rounding, far below real differences.
TIE_TOL = 1e-6


def spa(data: DataMatrix, n_components: int, *, tie_tol: float = TIE_TOL) -> SelectionResult:
    """Select the samples with the largest residuals, one after another."""
    # One pass over the data per anchor, one product with a vector. The squared norms are updated in float64
    # by ``||r||^2 - (x'q)^2`` with a unit vector q. Where that difference has lost the digits that the
    # selection needs, the residuals of the candidates are recomputed. Araujo et al. (2001), Chemometrics and
    # Intelligent Laboratory Systems 57(2). Gillis & Vavasis (2014), IEEE Trans. Pattern Anal. Mach. Intell.
    # 36(4), Algorithm 1.
    basis = GrowingBasis()

    def shared(row: Array, n_picks: int) -> dict[str, Any]:
        direction = basis.extended(array_namespace(row), row)
        return {"direction": direction, "basis": basis.matrix, "tie_tol": tie_tol}

    rule = GreedyRule(begin=squared_norms, advance=_projected, shared=shared, n_kept=2, tie_tol=tie_tol)
    return select_greedily(data, n_components, rule, method="spa")


def squared_norms(block: LocalMatrix) -> tuple[tuple[Array, Array], Array]:
    """Return the squared norms of the rows of a block, as the first state of a rule and as scores."""
    squares = block.row_powers(2.0)
    return (squares[:, None], squares[:, None]), squares


def _projected(
    block: LocalMatrix,
    residual: Array,
    original: Array,
    *,
    direction: Array | None,
    basis: Array,
    tie_tol: float,
) -> tuple[tuple[Array, Array], Array]:
    xp = block.xp
    squares = residual[:, 0]
    if direction is not None:
        along = xp.astype(block.times(xp.astype(direction, block.dtype)), xp.float64)[:, 0]
        squares = xp.clip(squares - along * along, min=0.0)

    accurate = partial(squares_outside, basis=basis)
    squares = accurate_squares(block, squares, original[:, 0], tie_tol, accurate)
    return (squares[:, None], original), squares


def squares_outside(rows: Array, basis: Array) -> Array:
    """Return the squared distances of samples from a subspace."""
    for _ in range(2):
        rows = rows - (rows @ basis) @ basis.T
    return array_namespace(rows).sum(rows * rows, axis=1)
