"""Encode samples: the minimizing W for a given H, each row on its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import row_major
from nonneg._precision import chosen_products
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import Gram, SharedGram, quadratic_form
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.rows import gram_of, map_rows, product_sum
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.losses.penalties import Penalties

# Coordinate passes that guess the supports before the exact solve; vectorized over rows they cost less than
# the exchanges of supports they save.
GUESS_PASSES, GUESS_SHRINK = 20, 0.02


def encode(
    data: DataMatrix,
    Ht: Array,
    *,
    beta: float,
    penalties: Penalties,
    tol: float = 0.0,
    max_iter: int | None = None,
) -> tuple[SampleArray, float | None]:
    """Minimize the penalized loss of every row over W >= 0, with Ht fixed."""
    # For the Frobenius loss the rows are exact minimizers (block pivoting). For 1 <= beta <= 2 the problem is
    # convex and solved to tolerance; otherwise it is a descent from initial coefficients that depend on this
    # row of X alone.
    if beta == 2.0:
        gram = None if data.has_missing else SharedGram(Ht.T @ Ht)
        with chosen_products():
            (W,), (loss,) = data.map_reduce_rows(_encode_rows, Ht=Ht, gram=gram, penalties=penalties)
        return row_major(W), max(0.5 * data.squared_norm() + float(loss), 0.0)
    from nonneg.solvers.beta_encoding import encode_beta

    options: dict[str, Any] = {}
    if tol:
        options["tol"] = tol
    if max_iter is not None:
        options["max_iter"] = max_iter
    return encode_beta(data, Ht, beta=beta, penalties=penalties, **options), None


def _encode_rows(
    block: LocalMatrix, *, Ht: Array, gram: Gram | None, penalties: Penalties
) -> tuple[tuple[Array], tuple[Any]]:
    xp = block.xp
    if gram is None:
        gram = block.row_grams(Ht)
    system = gram.plus_ridge(penalties.l2_W)
    cross = block.times(Ht)
    target = cross - penalties.l1_W if penalties.l1_W else cross
    # Any positive multiple of the curvature would do; this one is right for orthogonal components.
    scale = xp.max(xp.abs(gram_of(Ht))) + penalties.l2_W
    scale = xp.where(scale > 0, scale, xp.ones_like(scale))
    if isinstance(target, np.ndarray):
        start = map_rows(lambda rows: np.maximum(rows, 0) / scale, target)
    else:
        start = xp.clip(target, min=0.0) / scale
    guess, _ = hals_passes(start, system, target, max_passes=GUESS_PASSES, shrink=GUESS_SHRINK)
    del start
    W = nonnegative_least_squares(system, target, start=guess, in_place=True)
    if block.weights is None:
        quadratic = quadratic_form(W, gram)
    else:
        root = xp.sqrt(block.weights)
        quadratic = quadratic_form(W * root[:, None], gram)
    loss = 0.5 * quadratic - product_sum(block.weighted(W), cross) + penalties.of_W(W, block.weights)
    return (W,), (loss,)
