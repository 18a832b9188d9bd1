"""Factorizations of one matrix for ascending ranks, each initialized with the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array
from nonneg.data import LocalMatrix
from nonneg.initializers.registry import INITS
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.hals import hals


def nested_fits(
    data: LocalMatrix,
    candidates: Sequence[int],
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    ridge: float = 0.0,
    init: Array | None = None,
    fitted: tuple[Array, Array] | None = None,
) -> Iterator[tuple[int, Array, Array]]:
    """Fit the candidates in turn: the first from `init` (an Ht) or an SVD, others with more components.

    With `fitted`, the factors of the candidate before the first, a search continues where it was.
    """
    penalties = Penalties(l2_W=ridge, l2_H=ridge)
    if fitted is not None:
        W, Ht = fitted
    elif init is None:
        W, Ht = INITS["nndsvd-scaled"](data, candidates[0], rng=rng)
    else:
        W, Ht = encode(data, init, beta=2.0, penalties=penalties)[0], init
    for k in candidates:
        if k > Ht.shape[1]:
            W, Ht = grown(data, W, Ht, k, rng)
        run = hals(data, W, Ht, penalties=penalties, max_iter=max_iter, tol=tol)
        W, Ht = run.state.W, run.state.Ht
        yield k, W, Ht


def grown(data: LocalMatrix, W: Array, Ht: Array, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Add components: residuals of samples drawn with probability proportional to their squared residual."""
    xp, n_new = data.xp, k - Ht.shape[1]
    left = _squared_residuals(data, W, Ht)
    total = float(left.sum())
    odds = left / total if total > 0 else np.full(len(left), 1.0 / len(left))
    # Samples without a residual cannot be drawn; where too few have one, all can.
    if np.count_nonzero(odds) < n_new:
        odds = np.full(len(left), 1.0 / len(left))
    rows = rng.choice(len(left), n_new, replace=n_new > len(left), p=odds)
    points = data.take_rows(rows)
    index = np.asarray(rows, dtype=np.int64)
    chosen = W[index] if isinstance(W, np.ndarray) else xp.take(W, xp.asarray(index, device=W.device), axis=0)
    rest = xp.clip(points - chosen @ Ht.T, min=0.0)
    empty = xp.sum(rest, axis=1) == 0
    rest = xp.where(empty[:, None], points, rest)
    # In the unit of the other components, the root of that of X, on which a ridge depends.
    mean = xp.mean(rest, axis=1)[:, None]
    rest = rest / xp.sqrt(xp.where(mean > 0, mean, xp.ones_like(mean)))
    blank = data.to_device(np.zeros((W.shape[0], n_new)))
    return xp.concat([W, blank], axis=1), data.to_device(xp.concat([Ht, rest.T], axis=1))


def _squared_residuals(data: LocalMatrix, W: Array, Ht: Array) -> Any:
    # ||x - Ht w||^2 from products; missing entries count as if the model were 0 there, which is good enough
    # for probabilities.
    cross = data.times(Ht)
    squares = to_float64(data.squared_row_norms())
    inner = to_float64(data.xp.sum(cross * W, axis=1))
    model = to_float64(data.xp.sum((W @ (Ht.T @ Ht)) * W, axis=1))
    found = squares - 2 * inner + model
    # Differences below it are rounding.
    return np.where(found > 1e-10 * (squares + model), found, 0.0)
