"""Given factors: checked, copied to the device of the data, and completed if one is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from nonneg._arrays import to_float64
from nonneg._random import Seed
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix, rows_only
from nonneg.exceptions import (
    DataTypeError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
)
from nonneg.initializers.encoding import fit_H, fit_W


def given_init(
    data: DataMatrix, k: int, *, rng: Seed = None, W: Any = None, H: Any = None
) -> tuple[SampleArray, Array]:
    """Return the given factors; one that is not given is fitted to the other."""
    if W is None and H is None:
        raise InvalidParameterError(
            "init='custom' starts from given factors, but neither W nor H is given. "
            "Pass W and H to fit_transform (or one of them), or choose another init."
        )
    for name, factor in (("W", W), ("H", H)):
        check_device(data, factor, name)
    initial_W = None if W is None else _checked_W(data, k, W)
    Ht = None if H is None else data.to_device(check_factor(H, (k, data.shape[1]), "H").T.copy())
    if Ht is None:
        assert initial_W is not None
        Ht = fit_H(data, initial_W)
    if initial_W is None:
        initial_W = fit_W(data, Ht)
    return initial_W, Ht


def check_device(data: DataMatrix, factor: Any, name: str) -> None:
    """Reject a tensor on a device other than that of the data; arrays of NumPy are copied to it."""
    if type(factor).__module__ != "torch":
        return
    device = getattr(data.to_device(np.zeros(1)), "device", None)
    if type(device).__module__ == "torch" and device != factor.device:
        raise InvalidParameterError(
            f"{name} is on {factor.device}, but X is on {device}. Move one of them, for example "
            f"{name}.to(X.device)."
        )


def check_factor(array: Any, shape: tuple[int, int], name: str, *, zeros: bool = False) -> Any:
    """Return a given factor as a NumPy array of float64, or say what is wrong with it."""
    array = array if is_array_api_obj(array) else np.asarray(array)
    _check_form(array, shape, name)
    values = np.array(to_float64(array))
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise NonFiniteDataError(
            f"Expected a finite {name}, got {name}[{row}, {column}] = {values[row, column]}. "
            "Remove or replace such entries."
        )
    if (values < 0).any():
        row, column = np.argwhere(values < 0)[0]
        raise NegativeDataError(
            f"Expected a nonnegative {name}, got {name}[{row}, {column}] = {values[row, column]}. "
            f"Clip it at zero: {name} = {name}.clip(0)."
        )
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
    _, (n_bad, n_negative, n_positive) = data.map_reduce_rows(_count, initial_W, n_out=0)
    if n_bad:
        raise NonFiniteDataError(f"Expected a finite W, got {n_bad} entries that are NaN or infinite.")
    if n_negative:
        raise NegativeDataError(
            f"Expected a nonnegative W, got {n_negative} entries below zero. Clip it at zero."
        )
    if not n_positive:
        raise InvalidParameterError(_FULL_OF_ZEROS.format(name="W"))
    return initial_W


@rows_only
def _count(block: LocalMatrix, initial_W: Array) -> tuple[tuple[()], tuple[int, int, int]]:
    xp = block.xp
    tests = (~xp.isfinite(initial_W), initial_W < 0, initial_W > 0)
    bad, negative, positive = (int(xp.sum(xp.astype(test, xp.int64))) for test in tests)
    return (), (bad, negative, positive)
