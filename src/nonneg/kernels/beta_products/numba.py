"""Elementwise parts of the beta-divergences, a block of rows at a time (compiled).

The products with the factors around them are left to BLAS. `v` is the model of a block and lies above
a floor when its loss is taken; the special cases 1 (Kullback-Leibler), 0 (Itakura-Saito) and 2 need no
powers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.kernels.beta_products.logarithms import log_ratio, quick_exp, quick_log
from nonneg.kernels.jit import jit, part

# For the Kullback-Leibler divergence, whose beta is 1, the functions below get None: numba then compiles the
# lines for it alone, in half of the time.


@part(fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def divergences(x, v, weights, beta, lower_bound, out):
    """Write the weighted divergence of every entry of the row x from the row v, in float64."""
    n = len(x)
    if beta is None:
        for j in range(n):
            value = np.float64(max(v[j], lower_bound))
            entry = np.float64(x[j])
            out[j] = weights[j] * ((value - entry) + entry * log_ratio(entry, value))
    elif beta == 0.0:
        for j in range(n):
            ratio = max(np.float64(x[j]) / np.float64(max(v[j], lower_bound)), 1e-300)
            out[j] = weights[j] * (ratio - 1.0 - quick_log(ratio))
    elif beta == 2.0:
        for j in range(n):
            gap = np.float64(x[j]) - np.float64(v[j])
            out[j] = weights[j] * (0.5 * gap * gap)
    else:
        scale = 1.0 / (beta * (beta - 1.0))
        for j in range(n):
            value = np.float64(max(v[j], lower_bound))
            entry = np.float64(x[j])
            power = quick_exp((beta - 1.0) * quick_log(value))
            own = quick_exp(beta * quick_log(max(entry, 1e-300))) - beta * entry * power
            term = (beta - 1.0) * power * value + (own if entry > 0.0 else 0.0)
            out[j] = weights[j] * (term * scale)


@jit(error_model="numpy")
def losses_block(x, v, weights, beta, lower_bound, losses):
    """Write the divergence of every row into `losses`."""
    terms = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        divergences(x[i], v[i], weights[i % weights.shape[0]], beta, lower_bound, terms)
        losses[i] = terms.sum()


@jit(error_model="numpy")
def column_losses_block(x, v, weights, row_weights, beta, lower_bound, losses):
    """Add the divergences of every column, with weights of the rows, to `losses`."""
    terms = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        divergences(x[i], v[i], weights[i % weights.shape[0]], beta, lower_bound, terms)
        for j in range(x.shape[1]):
            losses[j] += row_weights[i] * terms[j]


@jit(fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def ratio_terms_block(x, v, beta, lower_bound, power):
    """Overwrite v by x v^(beta - 2) and, unless beta is 1, `power` by v^(beta - 1)."""
    n_rows, n = x.shape
    kind = v.dtype.type
    one = kind(1)
    lower_bound = kind(lower_bound)
    for i in range(n_rows):
        xi = x[i]
        vi = v[i]
        if beta is None:
            for j in range(n):
                vi[j] = xi[j] / max(vi[j], lower_bound)
            continue
        pi = power[i]
        if beta == 0.0:
            for j in range(n):
                inverse = one / max(vi[j], lower_bound)
                pi[j] = inverse
                vi[j] = xi[j] * inverse * inverse
        else:
            for j in range(n):
                value = max(vi[j], lower_bound)
                raised = kind(quick_exp((beta - 2.0) * quick_log(np.float64(value))))
                pi[j] = raised * value
                vi[j] = xi[j] * raised


@jit(fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def newton_terms_block(x, v, weights, beta, lower_bound, curvature_bound, exact, slope, curvature):
    """Write the weighted first and second derivatives of the divergence with respect to v."""
    # The second derivative is the true one in rows that are `exact`, elsewhere its mean under the model,
    # v^(beta - 2), which is positive.
    n_rows, n = x.shape
    kind = v.dtype.type
    one = kind(1)
    lower_bound = kind(lower_bound)
    most = kind(np.inf)
    own, rest = kind(0), one
    if beta is not None:
        if 1.0 < beta < 2.0:
            most = kind(max(curvature_bound, lower_bound) ** (beta - 2.0))
        own, rest = kind(beta - 1.0), kind(2.0 - beta)
    for i in range(n_rows):
        xi = x[i]
        vi = v[i]
        wi = weights[i % weights.shape[0]]
        si = slope[i]
        ci = curvature[i]
        if beta is None:
            for j in range(n):
                inverse = one / max(vi[j], lower_bound)
                ratio = wi[j] * xi[j] * inverse
                si[j] = wi[j] - ratio
                ci[j] = ratio * inverse
        elif beta == 0.0:
            # (2 x / v - 1) / v^2, or 1 / v^2.
            double = kind(2) if exact[i] else kind(0)
            less = kind(-1) if exact[i] else one
            for j in range(n):
                inverse = one / max(vi[j], lower_bound)
                scaled = wi[j] * inverse
                ratio = xi[j] * inverse
                si[j] = scaled - scaled * ratio
                ci[j] = scaled * inverse * (double * ratio + less)
        else:
            for j in range(n):
                value = max(vi[j], lower_bound)
                raised = wi[j] * kind(quick_exp((beta - 2.0) * quick_log(np.float64(value))))
                si[j] = raised * (value - xi[j])
                ci[j] = raised
                if exact[i]:
                    ci[j] = own * min(raised, wi[j] * most) + rest * raised * xi[j] / value


@part(fastmath={"contract", "nsz", "arcp", "reassoc"}, error_model="numpy")
def slope_along(x, v, d, t, weights, beta, lower_bound):
    """Return the derivative of the weighted divergence of x from v + t d along d."""
    n = len(x)
    kind = v.dtype.type
    t = kind(t)
    lower_bound = kind(lower_bound)
    total = kind(0)
    if beta is None:
        for j in range(n):
            total += weights[j] * d[j] * (kind(1) - x[j] / max(v[j] + t * d[j], lower_bound))
    else:
        for j in range(n):
            value = max(v[j] + t * d[j], lower_bound)
            raised = kind(quick_exp((beta - 2.0) * quick_log(np.float64(value))))
            total += weights[j] * d[j] * (value - x[j]) * raised
    return np.float64(total)


@part(fastmath={"contract", "nsz", "arcp", "reassoc"}, error_model="numpy")
def itakura_saito_gain(x, v, d, t, weights, lower_bound):
    """Return by how much the weighted divergence of x from v exceeds that from v + t d."""
    # One logarithm an entry instead of two, and no difference of sums.
    total = 0.0
    for j in range(len(x)):
        old = np.float64(max(v[j], lower_bound))
        new = np.float64(max(v[j] + t * d[j], lower_bound))
        total += weights[j] * (np.float64(x[j]) * (new - old) / (old * new) - log_ratio(new, old))
    return total


@part(error_model="numpy")
def compared_losses(x, v, d, weights, beta, lower_bound, linear, quadratic, down, tries, trial, terms):
    """Return a step of a row that lowers its loss, and whether there is one, by comparing losses."""
    t, gain, base = 1.0, 0.0, -1.0
    for _ in range(tries):
        if beta == 0.0:
            gain = itakura_saito_gain(x, v, d, v.dtype.type(t), weights, v.dtype.type(lower_bound))
        if base < 0.0 and not gain > 0.0:
            divergences(x, v, weights, beta, lower_bound, terms)
            base = terms.sum()
        if beta != 0.0:
            for j in range(len(x)):
                trial[j] = v[j] + v.dtype.type(t) * d[j]
            divergences(x, trial, weights, beta, lower_bound, terms)
            gain = base - terms.sum()
        gain -= t * (linear + 0.5 * quadratic * t)
        # At the end what is to be gained drowns in rounding; the direction is good all the same.
        if gain > 0.0 or (down < 1e-9 * base and gain > -1e-14 * base):
            return t, True
        t *= 0.4
    return t, False


@jit(error_model="numpy")
def line_search_block(x, v, d, weights, beta, lower_bound, linear, quadratic, slopes, tries, steps):
    """Choose a step in (0, 1] along d for every row, move v there, and write the steps."""
    # The penalty of a row along d is `linear t + quadratic t^2 / 2`, `slopes` the derivative of the whole at
    # 0, which is negative. Where the divergence is convex a negative derivative at the end says that the loss
    # has fallen; elsewhere losses are compared. A row without a good step stays, with step 0.
    n_rows, n = x.shape
    convex = True
    if beta is not None:
        convex = 1.0 <= beta <= 2.0
    trial = np.empty(n, dtype=v.dtype)
    terms = np.empty(n)
    for i in range(n_rows):
        wi = weights[i % weights.shape[0]]
        down = -slopes[i]
        t = 1.0
        found = not down > 0.0
        if found:
            t = 0.0
        if convex and not found:
            for _ in range(tries):
                up = slope_along(x[i], v[i], d[i], t, wi, beta, lower_bound) + linear[i] + quadratic[i] * t
                if up <= 0.0:
                    found = True
                    break
                # The chord of the derivative: exact for a parabola.
                t *= down / (down + up)
                if up <= 2.0 * down:
                    found = True
                    break
        elif not found and beta is not None:
            loss = x[i], v[i], d[i], wi, beta, lower_bound
            t, found = compared_losses(*loss, linear[i], quadratic[i], down, tries, trial, terms)
        if not found:
            t = 0.0
        steps[i] = t
        if t > 0.0:
            for j in range(n):
                v[i, j] += v.dtype.type(t) * d[i, j]


def _beta(beta: float) -> float | None:
    return None if beta == 1 else float(beta)


def is_supported(x: Any, mask: Any = None) -> bool:
    """Tell whether the arrays are NumPy's and no entry is missing."""
    return isinstance(x, np.ndarray) and mask is None


def ratio_terms(x: Any, v: Any, beta: float, lower_bound: float, mask: None = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2), in the memory of v, and v^(beta - 1)."""
    power = np.empty_like(v) if beta != 1 else np.empty((0, 0), dtype=v.dtype)
    ratio_terms_block(np.ascontiguousarray(x), v, _beta(beta), float(lower_bound), power)
    return v, power if beta != 1 else None


def row_losses(
    x: Any, v: Any, beta: float, lower_bound: float, weights: Any = None, mask: None = None
) -> Any:
    """Return the divergence of every row; see `kernels.beta_products.row_losses`."""
    losses = np.empty(x.shape[0])
    losses_block(np.ascontiguousarray(x), v, _weights(weights, v), _beta(beta), float(lower_bound), losses)
    return losses


def column_losses(
    x: Any, v: Any, beta: float, lower_bound: float, row_weights: Any = None, weights: Any = None
) -> Any:
    """Return the divergence of every column; see `kernels.beta_products.column_losses`."""
    losses = np.zeros(x.shape[1])
    of_rows = np.ones(len(x)) if row_weights is None else np.ascontiguousarray(row_weights, np.float64)
    given = np.ascontiguousarray(x), v, _weights(weights, v), of_rows
    column_losses_block(*given, _beta(beta), float(lower_bound), losses)
    return losses


def newton_terms(
    x: Any,
    v: Any,
    weights: Any,
    beta: float,
    lower_bound: float,
    curvature_bound: float = 0.0,
    exact: Any = None,
    out: Any = None,
) -> tuple[Any, Any]:
    """Return weighted first and second derivatives; see `kernels.beta_products.newton_terms`."""
    slope, curvature = (np.empty_like(v), np.empty_like(v)) if out is None else out
    if exact is None or 1 <= beta <= 2:
        exact = np.full(x.shape[0], 1 <= beta <= 2)
    weights = _weights(weights, v)
    bounds = float(lower_bound), float(curvature_bound)
    newton_terms_block(np.ascontiguousarray(x), v, weights, _beta(beta), *bounds, exact, slope, curvature)
    return slope, curvature


def line_search(
    x: Any, v: Any, d: Any, weights: Any, beta: float, lower_bound: float,
    linear: Any, quadratic: Any, slopes: Any, tries: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Choose a step along d for every row; see `kernels.beta_products.line_search`."""
    steps = np.empty(x.shape[0])
    rows = [np.asarray(values, dtype=np.float64) for values in (linear, quadratic, slopes)]
    loss = _weights(weights, v), _beta(beta), float(lower_bound)
    line_search_block(np.ascontiguousarray(x), v, d, *loss, *rows, tries, steps)
    return v, steps.astype(v.dtype)


def _weights(weights: Any, v: Any) -> Any:
    """Return the weights of the entries as rows: one that serves all, or one for each."""
    if weights is None:
        return np.ones((1, v.shape[1]), dtype=v.dtype)
    return np.ascontiguousarray(np.atleast_2d(weights), dtype=v.dtype)
