"""Elementwise parts of the beta-divergences, a block of rows at a time (compiled).

The products with the factors around them are left to BLAS. `v` is the model of a block and lies above
a floor when its loss is taken; the special cases 1 (Kullback-Leibler), 0 (Itakura-Saito) and 2 need no
powers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from nonneg.kernels.jit import in_python, jit


@in_python(lambda value: np.float64(value).view(np.int64))
@intrinsic
def _bits(context: Any, value: Any) -> Any:
    """Read the bits of a float64 as an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@in_python(lambda value: np.int64(value).view(np.float64))
@intrinsic
def _from_bits(context: Any, value: Any) -> Any:
    """Read the bits of an int64 as a float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@jit(inline="always", error_model="numpy")
def quick_log(value):
    """Return the logarithm of a positive normal float64 to 1 ulp, in operations that vectorize."""
    # The library's logarithm is a call for every entry and would cost more than a product with a factor.
    bits = _bits(value)
    # Split into 2^exponent and a mantissa between sqrt(1/2) and sqrt(2).
    exponent = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
    f = _from_bits(bits - (exponent << np.int64(52))) - 1.0
    s = f / (2.0 + f)
    z = s * s
    # Coefficients of the C library by Sun Microsystems (fdlibm, e_log.c), free to use.
    y = z * z
    even = 1.818357216161805012e-01 + y * 1.479819860511658591e-01
    even = z * (6.666666666666735130e-01 + y * (2.857142874366239149e-01 + y * even))
    odd = 2.222219843214978396e-01 + y * 1.531383769920937332e-01
    odd = y * (3.999999999940941908e-01 + y * odd)
    half = 0.5 * f * f
    return np.float64(exponent) * 0.6931471805599453 + (f - (half - s * (half + (even + odd))))


def _split(x: Any, v: Any) -> Any:
    # What `ratio_exponent` and `brought_near` return, in Python.
    whole, shift = (np.int64, 52) if x.dtype == np.float64 else (np.int32, 23)
    exponent = (x.view(whole) - v.view(whole) + whole(1 << (shift - 1))) >> whole(shift)
    return x.dtype.type(exponent), (x.view(whole) - (exponent << whole(shift))).view(x.dtype)


def _exponent_bits(context: Any, builder: Any, kind: Any, x: Any, v: Any) -> Any:
    # Bits are about linear in the logarithm: x / 2^exponent is between 0.66 v and 1.5 v.
    whole = context.get_value_type(types.int64 if kind == types.float64 else types.int32)
    shift = 52 if kind == types.float64 else 23
    apart = builder.sub(builder.bitcast(x, whole), builder.bitcast(v, whole))
    exponent = builder.ashr(builder.add(apart, whole(1 << (shift - 1))), whole(shift))
    return whole, shift, exponent


@in_python(lambda x, v: _split(x, v)[0])
@intrinsic
def ratio_exponent(context: Any, x: Any, v: Any) -> Any:
    """Return the rounded binary logarithm of x / v, as a float."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, exponent = _exponent_bits(context, builder, signature.return_type, *arguments)
        return builder.sitofp(exponent, context.get_value_type(signature.return_type))

    return x(x, v), generate


@in_python(lambda x, v: _split(x, v)[1])
@intrinsic
def brought_near(context: Any, x: Any, v: Any) -> Any:
    """Return x divided by a power of two, so that it is near v."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole, shift, exponent = _exponent_bits(context, builder, signature.return_type, *arguments)
        bits = builder.sub(builder.bitcast(arguments[0], whole), builder.shl(exponent, whole(shift)))
        return builder.bitcast(bits, context.get_value_type(signature.return_type))

    return x(x, v), generate


@jit(inline="always", error_model="numpy")
def log_ratio(x, v):
    """Return log(x / v) of normal float64 numbers to 1 ulp, with one division; finite where x is 0."""
    near = brought_near(x, v)
    s = (near - v) / (near + v)
    z = s * s
    z2 = z * z
    # The series of 2 atanh(s); |s| <= 0.2, where the next term is below 1e-16.
    low = (2 / 3 + 2 / 5 * z) + z2 * (2 / 7 + 2 / 9 * z)
    high = (2 / 11 + 2 / 13 * z) + z2 * (2 / 15 + 2 / 17 * z)
    p = low + (z2 * z2) * (high + (z2 * z2) * (2 / 19 + 2 / 21 * z))
    return ratio_exponent(x, v) * 0.6931471805599453 + s * (2.0 + p * z)


@jit(inline="always", error_model="numpy")
def quick_exp(value):
    """Return the exponential of a float64, a normal number, in operations that vectorize."""
    whole = np.floor(value * 1.4426950408889634 + 0.5)
    r = (value - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
    # Taylor's polynomial: |r| <= log(2) / 2, where the next term is below 1e-17.
    p = 1.6059043836821613e-10 * r + 2.08767569878681e-09
    p = (p * r + 2.505210838544172e-08) * r + 2.755731922398589e-07
    p = (p * r + 2.7557319223985893e-06) * r + 2.48015873015873e-05
    p = (p * r + 0.0001984126984126984) * r + 0.001388888888888889
    p = (p * r + 0.008333333333333333) * r + 0.041666666666666664
    p = (p * r + 0.16666666666666666) * r + 0.5
    p = (p * r + 1.0) * r + 1.0
    return p * _from_bits((np.int64(whole) + np.int64(1023)) << np.int64(52))


@jit(fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def divergences(x, v, weights, beta, lower_bound, out):
    """Write the weighted divergence of every entry of the row x from the row v, in float64."""
    n = len(x)
    if beta == 1.0:
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
        if beta == 1.0:
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
    if 1.0 < beta < 2.0:
        most = kind(max(curvature_bound, lower_bound) ** (beta - 2.0))
    own = kind(beta - 1.0)
    rest = kind(2.0 - beta)
    for i in range(n_rows):
        xi = x[i]
        vi = v[i]
        wi = weights[i % weights.shape[0]]
        si = slope[i]
        ci = curvature[i]
        if beta == 1.0:
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


@jit(fastmath={"contract", "nsz", "arcp", "reassoc"}, error_model="numpy")
def slope_along(x, v, d, t, weights, beta, lower_bound):
    """Return the derivative of the weighted divergence of x from v + t d along d."""
    n = len(x)
    kind = v.dtype.type
    t = kind(t)
    lower_bound = kind(lower_bound)
    total = kind(0)
    if beta == 1.0:
        for j in range(n):
            total += weights[j] * d[j] * (kind(1) - x[j] / max(v[j] + t * d[j], lower_bound))
    else:
        for j in range(n):
            value = max(v[j] + t * d[j], lower_bound)
            raised = kind(quick_exp((beta - 2.0) * quick_log(np.float64(value))))
            total += weights[j] * d[j] * (value - x[j]) * raised
    return np.float64(total)


@jit(fastmath={"contract", "nsz", "arcp", "reassoc"}, error_model="numpy")
def itakura_saito_gain(x, v, d, t, weights, lower_bound):
    """Return by how much the weighted divergence of x from v exceeds that from v + t d."""
    # One logarithm an entry instead of two, and no difference of sums.
    total = 0.0
    for j in range(len(x)):
        old = np.float64(max(v[j], lower_bound))
        new = np.float64(max(v[j] + t * d[j], lower_bound))
        total += weights[j] * (np.float64(x[j]) * (new - old) / (old * new) - log_ratio(new, old))
    return total


@jit(error_model="numpy")
def line_search_block(x, v, d, weights, beta, lower_bound, linear, quadratic, slopes, tries, steps):
    """Choose a step in (0, 1] along d for every row, move v there, and write the steps."""
    # The penalty of a row along d is `linear t + quadratic t^2 / 2`, `slopes` the derivative of the whole at
    # 0, which is negative. Where the divergence is convex a negative derivative at the end says that the loss
    # has fallen; elsewhere losses are compared. A row without a good step stays, with step 0.
    n_rows, n = x.shape
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
        elif not found:
            gain, base = 0.0, -1.0
            for _ in range(tries):
                if beta == 0.0:
                    gain = itakura_saito_gain(
                        x[i], v[i], d[i], v.dtype.type(t), wi, v.dtype.type(lower_bound)
                    )
                if base < 0.0 and not gain > 0.0:
                    divergences(x[i], v[i], wi, beta, lower_bound, terms)
                    base = terms.sum()
                if beta != 0.0:
                    for j in range(n):
                        trial[j] = v[i, j] + v.dtype.type(t) * d[i, j]
                    divergences(x[i], trial, wi, beta, lower_bound, terms)
                    gain = base - terms.sum()
                gain -= t * (linear[i] + 0.5 * quadratic[i] * t)
                # At the end what is to be gained drowns in rounding; the direction is good all the same.
                if gain > 0.0 or (down < 1e-9 * base and gain > -1e-14 * base):
                    found = True
                    break
                t *= 0.4
        if not found:
            t = 0.0
        steps[i] = t
        if t > 0.0:
            for j in range(n):
                v[i, j] += v.dtype.type(t) * d[i, j]


def is_supported(x: Any, mask: Any = None) -> bool:
    """Tell whether the arrays are NumPy's and no entry is missing."""
    return isinstance(x, np.ndarray) and mask is None


def ratio_terms(x: Any, v: Any, beta: float, lower_bound: float, mask: None = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2), in the memory of v, and v^(beta - 1)."""
    power = np.empty_like(v) if beta != 1 else np.empty((0, 0), dtype=v.dtype)
    ratio_terms_block(np.ascontiguousarray(x), v, float(beta), float(lower_bound), power)
    return v, power if beta != 1 else None


def row_losses(
    x: Any, v: Any, beta: float, lower_bound: float, weights: Any = None, mask: None = None
) -> Any:
    """Return the divergence of every row; see `kernels.beta_products.row_losses`."""
    losses = np.empty(x.shape[0])
    losses_block(np.ascontiguousarray(x), v, _weights(weights, v), float(beta), float(lower_bound), losses)
    return losses


def column_losses(
    x: Any, v: Any, beta: float, lower_bound: float, row_weights: Any = None, weights: Any = None
) -> Any:
    """Return the divergence of every column; see `kernels.beta_products.column_losses`."""
    losses = np.zeros(x.shape[1])
    of_rows = np.ones(len(x)) if row_weights is None else np.asarray(row_weights, dtype=np.float64)
    given = np.ascontiguousarray(x), v, _weights(weights, v), of_rows
    column_losses_block(*given, float(beta), float(lower_bound), losses)
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
    newton_terms_block(np.ascontiguousarray(x), v, weights, float(beta), *bounds, exact, slope, curvature)
    return slope, curvature


def line_search(
    x: Any, v: Any, d: Any, weights: Any, beta: float, lower_bound: float,
    linear: Any, quadratic: Any, slopes: Any, tries: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Choose a step along d for every row; see `kernels.beta_products.line_search`."""
    steps = np.empty(x.shape[0])
    rows = [np.asarray(values, dtype=np.float64) for values in (linear, quadratic, slopes)]
    loss = _weights(weights, v), float(beta), float(lower_bound)
    line_search_block(np.ascontiguousarray(x), v, d, *loss, *rows, tries, steps)
    return v, steps.astype(v.dtype)


def _weights(weights: Any, v: Any) -> Any:
    """Return the weights of the entries as rows: one that serves all, or one for each."""
    if weights is None:
        return np.ones((1, v.shape[1]), dtype=v.dtype)
    return np.ascontiguousarray(np.atleast_2d(weights), dtype=v.dtype)
