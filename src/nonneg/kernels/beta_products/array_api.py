"""Elementwise parts of the beta-divergences in array API operations.

They also serve weighted entries: `mask` has their weights, 0 where missing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array, IntArray
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.grams import DenseGrams
from nonneg.kernels.nonzeros import array_api as nonzeros
from nonneg.kernels.sparse_products import row_sums, rows_of_entries, sampled_product, sparse_times

# Entries of the Hessians of rows that are solved together, and what is added to their diagonals, relative to
# the largest entry: components that repeat make them singular.
HESSIANS, RIDGE = 1 << 24, 1e-11


def ratio_terms(x: Array, v: Array, beta: float, lower_bound: float, mask: Any = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2) and v^(beta - 1); see `kernels.beta_products.ratio_terms`."""
    xp = array_namespace(x, v)
    v = xp.clip(v, min=lower_bound)
    x = x if mask is None else x * mask
    if beta == 1:
        return x / v, mask
    power = 1 / v if beta == 0 else v ** (beta - 1)
    ratio = x * power / v
    return ratio, power if mask is None else power * mask


def divergences(x: Array, v: Array, beta: float, lower_bound: float) -> Any:
    """Return the divergence of every entry in float64."""
    xp = array_namespace(x, v)
    x, v = xp.astype(x, xp.float64), xp.astype(v, xp.float64)
    if beta == 2:
        return 0.5 * (x - v) ** 2
    v = xp.clip(v, min=lower_bound)
    positive = x > 0
    safe = xp.where(positive, x, v)
    if beta == 1:
        return v - x + x * xp.log(safe / v)
    if beta == 0:
        return x / v - 1 - xp.log(safe / v)
    power = v ** (beta - 1)
    own = xp.where(positive, safe**beta, xp.zeros_like(safe))
    return (own + (beta - 1) * power * v - beta * x * power) / (beta * (beta - 1))


def row_losses(x: Any, v: Any, beta: float, lower_bound: float, weights: Any = None, mask: Any = None) -> Any:
    """Return the divergence of every row in float64; see `kernels.beta_products.row_losses`."""
    terms = divergences(x, v, beta, lower_bound)
    xp = array_namespace(terms)
    for factor in (mask, weights):
        if factor is not None:
            terms = terms * xp.astype(factor, xp.float64)
    return xp.sum(terms, axis=1)


def column_losses(
    x: Array, v: Array, beta: float, lower_bound: float, row_weights: Any = None, weights: Array = None
) -> Any:
    """Return the divergence of every column in float64; see `kernels.beta_products.column_losses`."""
    terms = divergences(x, v, beta, lower_bound)
    xp = array_namespace(terms)
    if weights is not None:
        terms = terms * xp.astype(weights, xp.float64)
    if row_weights is not None:
        terms = terms * xp.astype(row_weights, xp.float64)[:, None]
    return xp.sum(terms, axis=0)


def _slopes(x: Array, v: Array, weights: Array, beta: float, lower_bound: float) -> tuple[Any, Any, Any]:
    xp = array_namespace(x, v)
    v = xp.clip(v, min=lower_bound)
    raised = 1 / v if beta == 1 else v ** (beta - 2)
    if weights is not None:
        raised = raised * weights
    return raised * (v - x), raised, v


def newton_terms(
    x: Array,
    v: Array,
    weights: Array,
    beta: float,
    lower_bound: float,
    curvature_bound: float = 0.0,
    exact: bool = False,
) -> tuple[Any, Any]:
    """Return weighted first and second derivatives; see `kernels.beta_products.newton_terms`."""
    xp = array_namespace(x, v)
    slope, raised, v = _slopes(x, v, weights, beta, lower_bound)
    if not exact and not 1 <= beta <= 2:
        return slope, raised
    own = raised
    if 1 < beta < 2 and curvature_bound > lower_bound:
        own = xp.clip(v, min=curvature_bound) ** (beta - 2)
        own = own if weights is None else own * weights
    true = (beta - 1) * own + (2 - beta) * raised * x / v
    return slope, xp.clip(true, min=0.0)


def line_search(
    x: Array,
    v: Array,
    d: Array,
    weights: Array,
    beta: float,
    lower_bound: float,
    linear: Array,
    quadratic: Array,
    slopes: Array,
    tries: int,
) -> tuple[Any, Any]:
    """Choose a step along d for every row; see `kernels.beta_products.line_search`."""
    xp = array_namespace(x, v)
    down = -slopes
    able = down > 0
    one = xp.ones_like(down)
    t = xp.where(able, one, 0 * one)
    accepted = xp.logical_not(able)
    down = xp.where(able, down, one)
    convex = 1 <= beta <= 2
    base: Any = None if convex else row_losses(x, v, beta, lower_bound, weights)
    for _ in range(tries):
        if convex:
            slope = _slopes(x, v + t[:, None] * d, weights, beta, lower_bound)[0]
            up = xp.sum(slope * d, axis=1) + linear + quadratic * t
            good, done = up <= 0, up <= 2 * down
            shorter = t * xp.where(good, one, down / (down + xp.where(good, 0 * up, up)))
            t = xp.where(accepted, t, shorter)
            accepted = xp.logical_or(accepted, done)
        else:
            loss = row_losses(x, v + t[:, None] * d, beta, lower_bound, weights)
            penalty = xp.astype(t * (linear + 0.5 * quadratic * t), base.dtype)
            gain = base - loss - penalty
            ending = xp.logical_and(xp.astype(down, base.dtype) < 1e-9 * base, gain > -1e-14 * base)
            accepted = xp.logical_or(accepted, xp.logical_or(gain > 0, ending))
            t = xp.where(accepted, t, 0.4 * t)
    t = xp.where(accepted, t, xp.zeros_like(t))
    return v + t[:, None] * d, t


def kl_passes(
    csr: Any, factor: Array, other: Any, sums: Any, order: IntArray | None, l1: float, l2: float,
    max_rounds: int, max_sweeps: int, shrink: float, tol: float, unit: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Update all rows of NumPy arrays, a component at a time; see `kernels.beta_products.kl_passes`."""
    indptr, indices, data = csr
    n_rows, k = factor.shape
    order = np.arange(k) if order is None else np.asarray(order)
    sums = np.broadcast_to(sums, factor.shape).astype(factor.dtype)
    size, parts = max(1, HESSIANS // k**2), []
    for start in range(0, max(n_rows, 1), size):
        rows, stop = slice(start, start + size), min(start + size, n_rows)
        entries = slice(int(indptr[start]), int(indptr[stop]))
        nonzeros_of_rows = SimpleNamespace(
            indptr=indptr[start : stop + 1] - indptr[start],
            indices=indices[entries],
            data=np.asarray(data[entries], dtype=factor.dtype),
        )
        problem = _KlRows(nonzeros_of_rows, other, sums[rows] + factor.dtype.type(l1), order, l2)
        # Ratios to a model at its lower bound overflow; that they are infinite is right.
        with np.errstate(over="ignore"):
            parts.append(problem.solve(factor[rows], max_rounds, max_sweeps, shrink, tol, unit))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]


class _KlRows:
    """Coordinate descent on a block of rows at once, over their nonzeros."""

    def __init__(self, csr: Any, other: Any, cost: Any, order: IntArray, l2: float) -> None:
        self.csr, self.other, self.cost, self.order, self.l2 = csr, other, cost, order, cost.dtype.type(l2)
        self.places, self.x = (csr.indptr, csr.indices), csr.data
        self.rows = rows_of_entries(csr.indptr, 0, len(csr.data))
        self.lower_bound = np.finfo(cost.dtype).tiny * 1e10

    def sum(self, terms: Any) -> Any:
        return row_sums(self.csr.indptr, terms)

    def model(self, W: Array) -> Any:
        return np.maximum(sampled_product(*self.places, W, self.other), self.lower_bound)

    def solve(
        self, factor: Array, max_rounds: int, max_sweeps: int, shrink: float, tol: float, unit: float
    ) -> tuple[Any, Any, Any]:
        W, cost, order, lower_bound = np.array(factor), self.cost, self.order, self.lower_bound
        totals, v = self.sum(self.x.astype(np.float64)), self.model(W)
        # Where the model is zero and the data are not, the loss is infinite: reset the row.
        possible = (self.other[:, order] > 0).any(axis=1)[self.csr.indices]
        dead = self.sum(((self.x > 0) & (v <= lower_bound) & possible).astype(np.float64)) > 0
        if dead.any():
            scale = totals / np.maximum(cost[:, order].sum(axis=1, dtype=np.float64), lower_bound)
            W[np.ix_(dead, order)] += scale[dead, None].astype(W.dtype)
            v = self.model(W)
        free = np.zeros(W.shape[1], dtype=bool)
        free[order] = True
        going, residuals = np.ones(len(W), dtype=bool), np.zeros(len(W))
        for number in range(max_rounds + 1):
            if number == max_rounds and tol == 0:
                break
            v = self.model(W) if number else v
            whole = cost + self.l2 * W
            slope = whole - sparse_times(*self.places, self.x / v, self.other)
            active = free & ((W > 0) | (slope < 0))
            negative = np.where(active, -slope / np.maximum(whole, lower_bound), 0).max(axis=1, initial=0)
            slack = np.where(active, W * np.abs(slope), 0).sum(axis=1, dtype=np.float64)
            new = np.maximum(negative, slack / np.maximum(totals, lower_bound))
            residuals = np.where(going, new, residuals)
            going = going & active.any(axis=1) & ~(residuals <= tol)
            if number == max_rounds or not going.any():
                break
            v = self.sweeps(W, v, active & going[:, None], max_sweeps, shrink)
            if tol > 0:
                self.newton_step(W, v, going)
        logs = self.sum(self.x * np.log(v.astype(np.float64) / unit))
        return W, logs, residuals

    def sweeps(self, W: Array, v: Array, active: Array, max_sweeps: int, shrink: float) -> Any:
        """Update the active components in place; return the model."""
        # A component t takes a Newton step for its derivative g if g < 0, and for t g(t) if g > 0: neither
        # overshoots.
        x, rows, limits = self.x, self.rows, np.zeros(len(W))
        for sweep in range(max_sweeps):
            changes = np.zeros(len(W))
            for a in self.order:
                h, t, cost = self.other[self.csr.indices, a], W[:, a], self.cost[:, a]
                q = x * h / v
                g, curvature = cost + self.l2 * t - self.sum(q), self.l2 + self.sum(q * h / v)
                bent = np.where(curvature > 0, curvature, 1)
                up = np.where(g < 0, 1, g + t * curvature)
                smaller = t * t * curvature / np.where(up > 0, up, 1)
                at_zero = self.sum(x * h / np.maximum(v - t[rows] * h, self.lower_bound))
                smaller = np.where((t * curvature <= g) & (cost >= at_zero), 0, smaller)
                new = np.where(g < 0, np.where(curvature > 0, t - g / bent, t), np.where(t > 0, smaller, t))
                step = np.where(active[:, a], new - t, 0)
                W[:, a] = np.where(active[:, a], new, t)
                v = np.maximum(v + step[rows] * h, self.lower_bound)
                changes += np.abs(step) * cost
            limits = changes * shrink if sweep == 0 else limits
            active = active & (changes > limits)[:, None]
            if not active.any():
                break
        return v

    def newton_step(self, W: Array, v: Array, going: Any) -> None:
        """Move rows towards the minimizers of their quadratic models, in place."""
        order, ratio = self.order, self.x / v
        # Where no component reaches an entry, it has no curvature.
        curvatures = ratio / np.where(v > self.lower_bound, v, np.inf)
        hessians = nonzeros.row_hessians(*self.places, curvatures, self.other)[:, order][:, :, order]
        diagonal = np.arange(len(order))
        hessians[:, diagonal, diagonal] += self.l2
        largest = hessians[:, diagonal, diagonal].max(axis=1, initial=0)
        hessians[:, diagonal, diagonal] += RIDGE * largest[:, None]
        whole = (self.cost + self.l2 * W)[:, order]
        slope = whole - sparse_times(*self.places, ratio, self.other)[:, order]
        now = W[:, order]
        target, _ = block_pivoting(now, DenseGrams(hessians), np.einsum("iab,ib->ia", hessians, now) - slope)
        direction = np.zeros_like(W)
        direction[:, order] = np.where(going[:, None], target - now, 0)
        moved = direction[:, order]
        linear, slopes = (np.sum(part * moved, axis=1, dtype=np.float64) for part in (whole, slope))
        along = linear, float(self.l2) * np.sum(moved * moved, axis=1, dtype=np.float64), slopes
        steps = nonzeros.line_search(self.csr, W, direction, self.other, self.lower_bound, *along, 4)
        np.maximum(W + steps[:, None] * direction, 0, out=W)
