"""Initialization by factors that the user has: checked, moved to the device of the data, and completed."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from nonneg._arrays import to_float64
from nonneg._random import Seed
from nonneg._typing import Array, Namespace, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix, rows_only
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    as_data_errors,
)

# Multiplicative updates of a factor that is not given, and its lowest entry relative to the mean of its row:
# such updates cannot leave zero.
_STEPS, _LOWER_BOUND = 10, 1e-4


def custom_init(
    data: DataMatrix, k: int, *, rng: Seed = None, W: Any = None, H: Any = None
) -> tuple[SampleArray, Array]:
    """Return W and H' of the user; one that is missing is fitted to the other."""
    if W is None and H is None:
        raise InvalidParameterError(
            "init='custom' starts from given factors, but neither W nor H is given. "
            "Pass W and H to fit_transform (or one of them), or choose another init."
        )
    initial_W = None if W is None else _checked_W(data, k, W)
    Ht = None if H is None else data.to_device(check_factor(H, (k, data.shape[1]), "H").T.copy())
    if Ht is None:
        Ht = _fitted(data.xp, data.weighted_gram(initial_W), data.transposed_times(initial_W))
    if initial_W is None:
        initial_W = data.map_rows(_fitted_rows, Ht=Ht, gram=Ht.T @ Ht)
    return initial_W, Ht


def check_factor(array: Any, shape: tuple[int, int], name: str, *, zeros: bool = False) -> Any:
    """Return a factor as a NumPy array of float64, or say what is wrong with it."""
    with as_data_errors(name):
        array = array if is_array_api_obj(array) else np.asarray(array)
    _check_form(array, shape, name)
    values = np.array(to_float64(array))
    for bad, kind, words, advice in (
        (~np.isfinite(values), NonFiniteDataError, "finite", "Remove or replace such entries."),
        (values < 0, NegativeDataError, "nonnegative", f"Clip it at zero: {name} = {name}.clip(0)."),
    ):
        for row, column in np.argwhere(bad)[:1]:
            entry = f"{name}[{row}, {column}] = {values[row, column]}"
            raise kind(f"Expected a {words} {name}, got {entry}. {advice}")
    if values.size and not zeros and not values.any():
        raise InvalidParameterError(_FULL_OF_ZEROS.format(name=name))
    return values


_FULL_OF_ZEROS = (
    "The given {name} is full of zeros, which no solver can leave. "
    "Give at least one positive entry, or leave it out."
)


def _check_form(array: Any, shape: tuple[int, int], name: str) -> None:
    if tuple(array.shape) != shape:
        sides = "(n_samples, n_components)" if name == "W" else "(n_components, n_features)"
        raise ShapeError(f"Expected {name} of shape {sides} = {shape}, got {tuple(array.shape)}.")
    if isinstance(array, np.ndarray) and array.dtype.kind not in "biuf":
        raise DataTypeError(
            f"Expected {name} to contain real numbers, got dtype {array.dtype}. "
            "Convert it first, for instance with astype(float)."
        )


def _checked_W(data: DataMatrix, k: int, W: Any) -> SampleArray:
    shape = (data.shape[0], k)
    if data.container != "dask" or not hasattr(W, "dask"):
        return data.to_sample_array(check_factor(W, shape, "W"))
    _check_form(W, shape, "W")
    # It stays on the workers: only counts are gathered.
    initial_W = data.to_sample_array(W)
    n_bad, n_positive = data.reduce_rows(_count, initial_W)
    if n_bad:
        raise InvalidDataError(
            f"Expected a finite, nonnegative W, got {n_bad} other entries. Clip it at zero: W = W.clip(0)."
        )
    if not n_positive:
        raise InvalidParameterError(_FULL_OF_ZEROS.format(name="W"))
    return initial_W


@rows_only
def _count(block: LocalMatrix, W: Array) -> tuple[int, int]:
    xp = block.xp
    good = xp.isfinite(W) & (W >= 0)
    return int(xp.count_nonzero(~good)), int(xp.count_nonzero(W > 0))


def _fitted_rows(block: LocalMatrix, *, Ht: Array, gram: Array) -> Array:
    return _fitted(block.xp, gram, block.times(Ht))


def _fitted(xp: Namespace, gram: Array, cross: Array) -> Array:
    """Return positive rows f with a small ||x - f H||, given H H' and the rows of X H'."""
    cross = xp.where(cross > 0, cross, xp.zeros_like(cross))  # below zero where X is: best left at zero
    # Fourth powers of the unit of X would leave the range of floats long before X does.
    first = _ratio(xp, cross, xp.max(cross, axis=1)[:, None] * xp.ones_like(cross))
    best = _ratio(xp, xp.sum(first * cross, axis=1), xp.sum(first * (first @ gram), axis=1))
    factor = first * best[:, None]
    for _ in range(_STEPS):
        factor = factor * _ratio(xp, cross, factor @ gram)
    lower_bound = _LOWER_BOUND * xp.mean(factor, axis=1)[:, None]
    return xp.where(factor > lower_bound, factor, xp.ones_like(factor) * lower_bound)


def _ratio(xp: Namespace, numerator: Array, denominator: Array) -> Array:
    # Where the denominator is zero, so is the entry that the ratio multiplies.
    return numerator / xp.where(denominator > 0, denominator, xp.ones_like(denominator))
