"""The updates of integrative NMF: all of them are nonnegative least squares in Gram form.

For data sets X_i (columns divided by their scale) with weights W_i, shared components H and specific ones
V_i, the objective is

    sum_i 0.5 ||X_i - W_i (H + V_i)||^2 + 0.5 lam ||W_i V_i||^2.

Given the components, the rows of W_i are separate problems. Given the weights, a data set enters by its sums
W_i'W_i and X_i'W_i alone, so that H and V_i are updated without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._typing import Array, SampleArray
from nonneg.certificates.stationarity import gram_residual
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.factor_update import rounding
from nonneg.kernels.grams import SharedGram, quadratic_form
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.rows import product_sum
from nonneg.leastsquares import nonnegative_least_squares

# Coordinate passes that guess the supports of rows without a predecessor, as in `solvers/encoding.py`.
GUESS_PASSES, GUESS_SHRINK = 20, 0.02
# Sweeps over V_1, ..., V_m and H per pass over the data. They cost no pass; after two of them the rest is
# lost with the next update of W.
SWEEPS = 2


@dataclass(frozen=True)
class DataSet:
    """A data set whose columns are divided by a scale; the entries stay as they are."""

    matrix: DataMatrix
    scale: Array  # (n_features, 1)
    squared_norm: float  # of the scaled entries

    @classmethod
    def of(cls, matrix: DataMatrix, *, scale: Any = None) -> DataSet:
        """Divide every column by a given scale, by default its root mean square."""
        squares = matrix.reduce_rows(methodcaller("column_powers", 2.0))
        squares = to_float64(squares)
        if scale is None:
            means = squares / matrix.total_weight()
            scale = np.where(means > 0, np.sqrt(means), 1.0)
        return cls(matrix, matrix.to_device(scale[:, None]), float(np.sum(squares / scale**2)))


@dataclass(frozen=True)
class Sums:
    """Sums over a data set and its weights from which the components follow."""

    gram: Array  # W'W
    cross: Array  # X'W, scaled


@dataclass(frozen=True)
class Components:
    """Shared and specific components, transposed."""

    Ht: Array  # (n_features, k)
    Vt: Array  # (n_data_sets, n_features, k)


def encode(
    data: DataSet, Ht: Array, Vt: Array, lam: float, W: SampleArray | None = None
) -> tuple[SampleArray, Sums, float]:
    """Return the minimizing weights of a data set, its sums, and the violation of the weights it had."""
    Kt = Ht + Vt
    gram = SharedGram(Kt.T @ Kt + lam * (Vt.T @ Vt))
    guess = () if W is None else (W,)
    (rows,), (violation, square, cross) = data.matrix.map_reduce_rows(
        _encode_rows, *guess, Kt=Kt / data.scale, gram=gram
    )
    return rows, Sums(square, cross / data.scale), max(float(violation), 0.0)


def _encode_rows(
    block: LocalMatrix, W: Array | None = None, *, Kt: Array, gram: SharedGram
) -> tuple[tuple[Array], tuple[Any, Array, Array]]:
    xp, cross, passes = block.xp, block.times(Kt), 1
    if W is None:
        scale = xp.max(xp.abs(gram.matrix))
        W = xp.clip(cross, min=0.0) / xp.where(scale > 0, scale, xp.ones_like(scale))
        passes = GUESS_PASSES
    guess, violation = hals_passes(W, gram, cross, max_passes=passes, shrink=GUESS_SHRINK)
    if block.weights is not None:
        # A row of weight w counts w times in the violation.
        _, violation = hals_passes(block.weighted(W), gram, block.weighted(cross))
    new = nonnegative_least_squares(gram, cross, start=guess)
    violation = violation - rounding(block.weighted(cross))
    return (new,), (violation, block.weighted_gram(new), block.transposed_times(new))


def update_components(components: Components, sums: Sequence[Sums], lam: float) -> tuple[Components, float]:
    """Update all components given the sums; return the violation of those before."""
    xp = array_namespace(components.Ht)
    Ht, Vt, violation = components.Ht, [components.Vt[at, ...] for at in range(len(sums))], 0.0
    for sweep in range(SWEEPS):
        # A single data set has nothing to differ from: its specific components are zero at every optimum.
        for at, own in enumerate(sums if len(sums) > 1 else ()):
            target = own.cross - Ht @ own.gram
            Vt[at], residual = _updated(Vt[at], (1.0 + lam) * own.gram, target)
            violation += residual if sweep == 0 else 0.0
        gram = sum((own.gram for own in sums[1:]), start=sums[0].gram)
        cross = sum(
            (own.cross - Vt[at] @ own.gram for at, own in enumerate(sums[1:], 1)),
            start=sums[0].cross - Vt[0] @ sums[0].gram,
        )
        Ht, residual = _updated(Ht, gram, cross)
        violation += residual if sweep == 0 else 0.0
    return Components(Ht, xp.stack(Vt)), violation


def _updated(factor: Array, gram: Array, cross: Array) -> tuple[Array, float]:
    system = SharedGram(gram)
    guess, violation = hals_passes(factor, system, cross, max_passes=1)
    residual = max(float(violation - rounding(cross)), 0.0)
    return nonnegative_least_squares(system, cross, start=guess), residual


def objective(components: Components, sums: Sequence[Sums], lam: float, squared_norm: float) -> float:
    """Return the objective from sums alone."""
    total = 0.5 * squared_norm
    for at, own in enumerate(sums):
        Vt, gram = components.Vt[at, ...], SharedGram(own.gram)
        Kt = components.Ht + Vt
        total += (
            0.5 * quadratic_form(Kt, gram) - product_sum(Kt, own.cross) + 0.5 * lam * quadratic_form(Vt, gram)
        )
    return max(float(total), 0.0)


def residual_energies(
    data: Sequence[DataSet],
    W: Sequence[SampleArray],
    components: Components,
    sums: Sequence[Sums],
    lam: float,
) -> tuple[float, float, float]:
    """Return the energies of the KKT residuals of all W_i, of H and of all V_i (`certificates`)."""
    xp = array_namespace(components.Ht)
    of_W = of_V = 0.0
    gram, cross = 0.0 * sums[0].gram, 0.0 * sums[0].cross
    for at, (own, one, rows) in enumerate(zip(sums, data, W, strict=True)):
        Vt = components.Vt[at, ...]
        Kt = components.Ht + Vt
        system = Kt.T @ Kt + lam * (Vt.T @ Vt)
        energy = one.matrix.reduce_rows(_row_energy, rows, Kt=Kt / one.scale, system=system)
        of_W += float(energy)
        target = own.cross - components.Ht @ own.gram
        of_V += float(gram_residual(xp, Vt, (1.0 + lam) * own.gram, target))
        gram, cross = gram + own.gram, cross + own.cross - Vt @ own.gram
    return of_W, float(gram_residual(xp, components.Ht, gram, cross)), of_V


def _row_energy(block: LocalMatrix, W: Array, *, Kt: Array, system: Array) -> float:
    energy = gram_residual(block.xp, W, system, block.times(Kt), weights=block.weights)
    return float(energy)
