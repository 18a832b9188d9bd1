"""Logarithms and exponentials in operations that vectorize, for compiled code."""

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
