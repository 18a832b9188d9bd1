r"""The KKT residual: how far a pair of factors is from a stationary point, as a number without units.

At a stationary point of a loss over nonnegative factors (the conditions of Karush, Kuhn and Tucker) every
entry f of a factor with partial derivative g satisfies ``min(f, g) = 0``: it is positive and g is zero, or
it is zero and g is not negative. An entry and its derivative have different units, so that the derivative
is first divided by a curvature c, which makes g / c the Newton step of that entry alone:

    residual of a factor = sqrt( sum_ij c_ij min(f_ij, g_ij / c_ij)^2 / scale )

Half of a term is at most what the quadratic model with curvature c gains by moving that entry alone, as far
as its sign allows, and exactly that where the sign does not matter; `scale` is a loss of the same units. It
is 0 exactly at the stationary points, continuous, and does not change when X is multiplied by a number (and
the factors accordingly), when a column of W is multiplied by a number and that of Ht divided by it, or when
rows are permuted or replaced by weights.

* Squared (Frobenius) loss with penalties: ``c_j = gram_jj + l2``, ``scale = ||X||^2`` (`gram_residual`).
  Smoothness along a graph couples rows and adds ``weights_j L_ii``.
* Other losses: the derivative is a difference P - N of nonnegative parts, as in multiplicative updates,
  the curvature is ``P / max(f, mean of its column)``, and ``scale = sum P f`` (`ratio_residual`).
  For the Kullback-Leibler divergence at a large entry this is the curvature of the function that the
  multiplicative update minimizes.

The residual of a fit is the larger one of its two factors'.
"""

from __future__ import annotations

import math
from typing import Any

from nonneg._typing import Array, Namespace, SampleArray
from nonneg.certificates.certificate import Statement, Verdict, verdict_of
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram, SmoothGram
from nonneg.kernels.rows import sum_rows
from nonneg.losses.penalties import Penalties

THRESHOLD = 1e-3  # an energy of 1e-6 ||X||^2


def gram_residual(
    xp: Namespace,
    factor: Array,
    gram: Any,
    cross: Array,
    *,
    l1: float = 0.0,
    weights: Array | None = None,
    frozen: Array | None = None,
    signed: bool = False,
) -> Array:
    """Return the sum of c min(f, g / c)^2 for half the squared loss; of g^2 / c for entries of any sign."""
    if isinstance(gram, SmoothGram):
        return _energy(xp, factor, gram.times(factor) - cross + l1, gram.curvature, weights, frozen)
    gram = gram.matrix if isinstance(gram, SharedGram) else gram
    curvature = xp.linalg.diagonal(gram)

    def energy(factor: Array, cross: Array, weights: Array | None = None) -> Array:
        gradient = factor @ gram - cross + l1
        bent = curvature[None, :] + xp.zeros_like(factor)
        return _energy(xp, factor, gradient, bent, weights, frozen, signed=signed)

    arrays = (factor, cross) if weights is None else (factor, cross, weights)
    return sum_rows(energy, *arrays)


def ratio_residual(
    xp: Namespace,
    factor: Array,
    negative: Array,
    positive: Array,
    *,
    weights: Array | None = None,
    column_means: Array | None = None,
    frozen: Array | None = None,
) -> tuple[Array, Array]:
    """Return the sums of c min(f, g / c)^2 and of P f for a derivative g = P - N."""
    means = xp.mean(factor, axis=0) if column_means is None else column_means
    reference = xp.where(factor > means[None, :], factor, means[None, :] + xp.zeros_like(factor))
    curvature = _quotient(xp, positive, reference)
    energy = _energy(xp, factor, positive - negative, curvature, weights, frozen)
    products = positive * factor
    return energy, xp.sum(products if weights is None else products * weights[:, None])


def _energy(
    xp: Namespace,
    factor: Array,
    gradient: Array,
    curvature: Array,
    weights: Array | None,
    frozen: Array | None,
    *,
    signed: bool = False,
) -> Array:
    # No curvature means no derivative either (the other factor's column is zero): the quotient 0 is right.
    step = _quotient(xp, gradient, curvature)
    step = step if signed else xp.where(step < factor, step, factor)
    terms = curvature * step * step
    if frozen is not None:
        terms = xp.where(frozen[None, :], xp.zeros_like(terms), terms)
    return xp.sum(terms if weights is None else terms * weights[:, None])


def _quotient(xp: Namespace, numerator: Array, denominator: Array) -> Array:
    safe = xp.where(denominator > 0, denominator, xp.ones_like(denominator))
    return xp.where(denominator > 0, numerator / safe, xp.zeros_like(numerator))


def normalized(energy: float, scale: float) -> float:
    """Return the root of energy / scale."""
    if energy <= 0.0:
        return 0.0
    return math.sqrt(energy / scale) if scale > 0.0 else math.inf


def frobenius_kkt_residuals(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    penalties: Penalties,
    *,
    frozen: Array | None = None,
    signed_H: bool = False,
) -> tuple[float, float]:
    """Return the KKT residuals of W and of H for half the squared loss, in one pass over the data."""
    system = penalties.system_W(SharedGram(Ht.T @ Ht), Ht)
    energy, gram, cross = data.reduce_rows(_w_part, W, Ht=Ht, system=system, l1=penalties.l1_W)
    scale, system = data.squared_norm(), penalties.system_H(SharedGram(gram), W)
    energy_h = gram_residual(data.xp, Ht, system, cross, l1=penalties.l1_H, frozen=frozen, signed=signed_H)
    return normalized(float(energy), scale), normalized(float(energy_h), scale)


def _w_part(block: LocalMatrix, W: Array, *, Ht: Array, system: Any, l1: float) -> tuple[Any, Any, Any]:
    cross = block.times(Ht)
    energy = gram_residual(block.xp, W, system, cross, l1=l1, weights=block.weights)
    return float(energy), block.weighted_gram(W), block.transposed_times(W)


def _named(loss: str) -> str:
    """Write the names that losses are called after with capitals."""
    people = ("frobenius", "kullback", "leibler", "itakura", "saito", "huber")
    return "-".join(word.capitalize() if word in people else word for word in loss.split("-"))


def stationarity_statement(
    residual_W: float, residual_H: float, *, n_infeasible: int = 0, loss: str = "frobenius"
) -> Statement:
    """Return the statement that the factors are (nearly) a stationary point."""
    values = (float(residual_W), float(residual_H))
    quantities = {"residual_W": values[0], "residual_H": values[1], "loss": loss}
    if n_infeasible:
        sentence = (
            f"{n_infeasible} entries of the factors are negative or not finite: they are no nonnegative "
            "factorization, and nothing is claimed about them."
        )
        quantities["n_infeasible"] = n_infeasible
        return Statement("stationarity", sentence, None, THRESHOLD, Verdict.FAILS, quantities)
    if any(math.isnan(value) for value in values):
        sentence = "The normalized KKT residual could not be computed."
        return Statement("stationarity", sentence, None, THRESHOLD, Verdict.NOT_VERIFIABLE, quantities)
    residual = max(values)
    holds = residual <= THRESHOLD
    sentence = (
        f"The fit {'has converged to' if holds else 'stopped before'} a stationary point of the "
        f"{_named(loss)} loss: its normalized KKT residual is {residual:.2e}, "
        f"{'at most' if holds else 'above'} {THRESHOLD:g}."
    )
    return Statement("stationarity", sentence, residual, THRESHOLD, verdict_of(holds), quantities)
