"""Arrays of any container (NumPy, PyTorch, CuPy, Dask): what they are, conversion, and writing them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields, is_dataclass, replace
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from array_api_compat import device as device_of

from nonneg._typing import Array
from nonneg.exceptions import InvalidDataError

Function = TypeVar("Function", bound=Callable[..., Any])
# The devices whose tensors go to the kernels for GPUs. Tests add "cpu", where Triton's interpreter runs them.
GPU_DEVICES = {"cuda"}


@cache
def library_of(kind: type) -> str:
    """Return the library of a type of arrays, such as "cupy"; for AnnData's views, that of what they show."""
    names = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return next(name for name in names if name != "anndata")


def is_dask(array: Any) -> bool:
    """Tell whether an array is a Dask array, without importing Dask."""
    return library_of(array.__class__) == "dask" and hasattr(array, "to_delayed")


def is_float_array(array: Any) -> bool:
    """Tell whether an array is NumPy's, in float64 or float32: what the compiled core takes."""
    return isinstance(array, np.ndarray) and array.dtype.char in "df" and array.dtype.isnative


def is_cpu_tensor(array: Any) -> bool:
    """Tell whether an array is a PyTorch tensor in host memory, without importing PyTorch."""
    return type(array).__module__ == "torch" and array.device.type == "cpu" and not is_cuda_tensor(array)


def is_cuda_tensor(array: Any) -> bool:
    """Tell whether an array is a PyTorch tensor on an NVIDIA GPU, without importing PyTorch."""
    return type(array).__module__ == "torch" and array.device.type in GPU_DEVICES


def on_gpu(array: Any) -> bool:
    """Tell whether an array is a PyTorch tensor on an NVIDIA GPU, or a CuPy array if PyTorch is installed."""
    return is_cuda_tensor(array) or (library_of(array.__class__) == "cupy" and find_spec("torch") is not None)


def to_torch(array: Any) -> Any:
    """Return an array on a GPU as a PyTorch tensor in the same memory."""
    if library_of(array.__class__) != "cupy":
        return array
    import torch

    return torch.from_dlpack(array)


def from_torch(tensor: Any, like: Any) -> Any:
    """Return a PyTorch tensor as an array of the same type as `like`, in the same memory."""
    if library_of(like.__class__) != "cupy":
        return tensor
    import cupy

    return cupy.from_dlpack(tensor)


def row_major(array: Any) -> Any:
    """Return an array on a GPU with contiguous rows; others as they are."""
    return from_torch(to_torch(array).contiguous(), array) if on_gpu(array) else array


def scalar(value: Any) -> Any:
    """Return a number; one on a GPU stays there as a 0-d array, so that nothing waits for it."""
    return value if on_gpu(value) else float(value)


def is_sparse_array(array: Any) -> bool:
    """Tell whether an array is a PyTorch sparse tensor or a CuPy sparse matrix, without importing either."""
    if type(array).__module__ == "torch":
        return "strided" not in str(array.layout)
    return library_of(array.__class__) == "cupyx" and hasattr(array, "tocsr")


def checked_indices(matrix: Any, name: str = "X") -> Any:
    """Return a matrix; reject one of SciPy's with indices outside of it: compiled loops trust them."""
    layout = getattr(matrix, "format", None)
    try:
        if layout == "coo":
            type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)
        elif layout in ("csr", "csc", "bsr"):
            if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
                raise ValueError("indptr must not fall")
            # The full check shortens arrays; a shallow copy loses nothing.
            copy(matrix).check_format(full_check=True)
        elif layout == "lil":
            for _, columns, values in zip(range(matrix.shape[0]), matrix.rows, matrix.data, strict=True):
                inside = all(column in range(matrix.shape[1]) for column in columns)
                if not inside or len(columns) != len(np.array(values, dtype=matrix.dtype)):
                    raise ValueError(f"a list of columns {columns} beside a list of {len(values)} entries")
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"Damaged indices of the sparse {name}: {error}. Build it again.") from error
    return matrix


def is_non_numpy(array: Any) -> bool:
    """Tell whether an array is a Dask array or from a namespace other than NumPy's."""
    return is_dask(array) or (is_array_api_obj(array) and not isinstance(array, np.ndarray | np.generic))


def is_float32(dtype: Any) -> bool:
    """Tell whether a dtype of any namespace is float32."""
    return "float32" in str(dtype)


def numpy_dtype(dtype: Any) -> Any:
    """Return NumPy's float32 or float64 for a floating dtype of any namespace."""
    return np.float32 if is_float32(dtype) else np.float64


def computed(array: Any) -> Any:
    """Return the entries of a Dask array in this process; other arrays are returned as they are."""
    return array.compute() if is_dask(array) else array


def to_numpy(array: Any, dtype: Any = None) -> Any:
    """Return an array of any container as a NumPy array; nothing is copied where that can be avoided."""
    array = computed(array)
    if hasattr(array, "detach"):  # PyTorch
        array = array.detach().cpu()
    elif library_of(array.__class__) == "cupy":
        array = array.get()
    return np.asarray(array, dtype=dtype)


def to_float64(array: Any) -> Any:
    """Return an array of any container as a NumPy array of float64."""
    return to_numpy(array, np.float64)


def to_device(array: Any, like: Array, dtype: Any = None) -> Array:
    """Return an array in the namespace and on the device of another one; its dtype stays unless given."""
    if isinstance(like, np.ndarray):
        return np.asarray(to_numpy(array), dtype=dtype, order="C")
    if type(array) is not type(like):
        # NumPy converts the type: PyTorch would wake its threads for it, which can take milliseconds.
        own = numpy_dtype(dtype) if "float" in str(dtype) else None
        array = np.asarray(to_numpy(array), dtype=own, order="C")
    return array_namespace(like).asarray(array, dtype=dtype, device=device_of(like))


def clipped(array: Any, low: float | None = None, high: float | None = None) -> Any:
    """Return an array within bounds; NumPy's own function takes a tenth of the time of array_api_compat's."""
    if isinstance(array, np.ndarray):
        return np.clip(array, low, high)
    return array_namespace(array).clip(array, min=low, max=high)


def numpy_view(array: Any) -> Any:
    """Return a NumPy array that shares the memory of a CPU tensor, also in fields; others as they are."""
    if is_dataclass(array) and not isinstance(array, type):
        return replace(array, **{item.name: numpy_view(getattr(array, item.name)) for item in fields(array)})
    return array.detach().numpy() if is_cpu_tensor(array) else array


def tensor_view(array: Any) -> Any:
    """Return a CPU tensor that shares the memory of a NumPy array."""
    import torch

    return torch.from_numpy(array)


def serves_tensors(function: Function) -> Function:
    """Let a function of NumPy arrays serve CPU tensors in their memory; its arrays become tensors."""

    @wraps(function)
    def served(*arrays: Any, **options: Any) -> Any:
        if not any(map(is_cpu_tensor, arrays)):
            return function(*arrays, **options)
        views = {name: numpy_view(option) for name, option in options.items()}
        results = function(*map(numpy_view, arrays), **views)
        if isinstance(results, tuple):
            return tuple(tensor_view(part) if isinstance(part, np.ndarray) else part for part in results)
        return tensor_view(results)

    return cast(Function, served)


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays as `numpy.savez` does; an existing file is replaced once the new one is complete."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        # Before NumPy 2.1, `savez` leaves the archive open when the disk is full.
        with temporary.open("xb") as stream:
            with zipfile.ZipFile(stream, "w") as archive:
                for name, array in arrays.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
