"""A LAPACK that uses its freedom: other signs of vectors, and results off by one unit in the last place.

Nothing promises the sign of a singular vector or of an eigenvector, the basis of the vectors of a repeated
value, or the last digit of any result: they differ between processors, versions of the library and numbers of
threads. With `--perturb-lapack SEED` all tests run on functions that choose differently; tests that use the
fixture `perturbed_lapack` always do. The choice depends on the seed and the numbers alone, so that equal
matrices still give equal bytes.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import ortho_group

# What a function returns: "values" are eigenvalues or singular values, "entries" anything else.
DENSE = {
    "svd": "svd",
    "svdvals": "values",
    "eigh": "eigen",
    "eigvalsh": "values",
    "qr": "qr",
    "solve": "entries",
    "inv": "entries",
    "pinv": "entries",
    "cholesky": "entries",
}
FUNCTIONS = {
    "numpy.linalg": DENSE,
    "array_api_compat.numpy.linalg": DENSE,
    "scipy.linalg": DENSE,
    "scipy.sparse.linalg": {"svds": "svd", "eigsh": "eigen"},
    "torch.linalg": DENSE,
    "array_api_compat.torch.linalg": DENSE,
}


def perturb(setattr_: Callable[[Any, str, Any], None], seed: int) -> None:
    """Replace the functions of all libraries that are installed, with `setattr` or that of a fixture."""
    for name, functions in FUNCTIONS.items():
        try:
            module = importlib.import_module(name)
        except ImportError:  # PyTorch is optional
            continue
        for function, kind in functions.items():
            original = getattr(module, function, None)
            if original is not None:
                setattr_(module, function, replaced(original, kind, seed))


def replaced(original: Callable[..., Any], kind: str, seed: int) -> Callable[..., Any]:
    """Return the function with results that its documentation allows as well."""

    @functools.wraps(original)
    def perturbed(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        parts = list(result) if isinstance(result, tuple) else [result]
        arrays = [_as_numpy(part) for part in parts]
        mode = options.get("mode", args[1] if kind == "qr" and len(args) > 1 else None)
        # What is on a GPU is left alone.
        if mode == "raw" or any(array is None or np.iscomplexobj(array) for array in arrays):
            return result
        with np.errstate(all="ignore"):
            answer = _perturbed(kind, arrays, mode, seed)
        answer = [_like(new, part) for new, part in zip(answer, parts, strict=True)]
        if not isinstance(result, tuple):
            return answer[0]
        return type(result)(*answer) if hasattr(result, "_fields") else type(result)(answer)

    return perturbed


def _perturbed(kind: str, arrays: list[Any], mode: str | None, seed: int) -> list[Any]:
    if kind == "entries":
        return [_next(array, seed) for array in arrays]
    if kind == "values" or (kind != "qr" and len(arrays) == 1):
        return [_values(arrays[0], seed)]
    if kind == "qr":
        if mode == "r" and arrays[0].size:
            return [_next(arrays[0] * _signs(arrays[0], -1, seed), seed), *arrays[1:]]
        Q, R, *order = arrays
        signs = _signs(R, -1, seed)
        return [_vectors(Q, np.swapaxes(signs, -1, -2), seed), _next(R * signs, seed), *order]
    if kind == "eigen":
        values, vectors = arrays
        vectors = vectors @ _mixing(values, seed) if vectors.ndim == 2 else vectors
        return [_values(values, seed), _vectors(vectors, _signs(vectors, -2, seed), seed)]
    left, values, right = arrays
    if left.ndim == 2:
        mixing, k = _mixing(values, seed), len(values)
        left = np.concatenate([left[:, :k] @ mixing, left[:, k:]], axis=1)
        right = np.concatenate([mixing.T @ right[:k], right[k:]], axis=0)
    signs = _signs(left, -2, seed)
    k = values.shape[-1]
    # Vectors without a value, of a complete basis, have signs of their own.
    own = _signs(right, -1, seed)
    own[..., :k, :] = np.swapaxes(signs[..., :k], -1, -2)
    right = np.swapaxes(_vectors(np.swapaxes(right * own, -1, -2), 1.0, seed), -1, -2)
    return [_vectors(left, signs, seed), _values(values, seed), right]


def _bits(array: Any, seed: int) -> Any:
    """Return 64 bits for every number: the same for the same number, whatever stands beside it."""
    bits = np.ascontiguousarray(array, dtype=np.float64).view(np.uint64) + np.uint64(seed)
    # The finalizer of MurmurHash3.
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53) >> np.uint64(32)


def _signs(array: Any, axis: int, seed: int) -> Any:
    odd = np.bitwise_xor.reduce(_bits(array, seed), axis=axis, keepdims=True) & np.uint64(1)
    return np.where(odd, -1.0, 1.0).astype(array.dtype)


def _steps(array: Any, seed: int) -> Any:
    return (_bits(array, seed) % np.uint64(3)).astype(array.dtype) - 1


def _mixing(values: Any, seed: int) -> Any:
    """Return an orthogonal matrix that mixes vectors whose values are equal up to rounding."""
    mixing = np.eye(len(values), dtype=values.dtype)
    apart = np.abs(np.diff(values)) > 8 * _unit(np.abs(values).max(initial=0.0))
    for group in np.split(np.arange(len(values)), np.flatnonzero(apart) + 1):
        if len(group) > 1:
            mixing[np.ix_(group, group)] = ortho_group.rvs(len(group), random_state=seed)
    return mixing


def _vectors(vectors: Any, signs: Any, seed: int) -> Any:
    """Return vectors with these signs, off by a unit in the last place of their largest entry."""
    unit = _unit(np.abs(vectors).max(axis=-2, keepdims=True, initial=0.0))
    return (vectors * signs + _steps(vectors, seed) * unit).astype(vectors.dtype)


def _values(values: Any, seed: int) -> Any:
    """Return values off by a unit in the last place of the largest: no more is known of the small ones."""
    unit = _unit(np.abs(values).max(axis=-1, keepdims=True, initial=0.0))
    moved = (values + _steps(values, seed) * unit).astype(values.dtype)
    if np.all(values >= 0):  # singular values
        moved = np.maximum(moved, 0)
    if np.all(np.diff(values) >= 0):
        return np.sort(moved, axis=-1)
    return np.ascontiguousarray(np.sort(moved, axis=-1)[..., ::-1]) if np.all(np.diff(values) <= 0) else moved


def _unit(largest: Any) -> Any:
    """Return the unit in the last place; zero for zero, which is exact."""
    return np.where(largest > 0, np.spacing(largest), 0.0)


def _next(entries: Any, seed: int) -> Any:
    """Return numbers off by one unit in their last place; zeros stay."""
    toward = np.where(_bits(entries, seed) & np.uint64(1), np.inf, -np.inf).astype(entries.dtype)
    return np.where(entries == 0, entries, np.nextafter(entries, toward))


def _as_numpy(part: Any) -> Any:
    if isinstance(part, np.ndarray | np.generic):
        return np.asarray(part)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(part, torch.Tensor) and part.device.type == "cpu":
        return part.detach().numpy()
    return None


def _like(new: Any, part: Any) -> Any:
    if isinstance(part, np.generic):
        return part.dtype.type(new)
    if isinstance(part, np.ndarray):
        return new
    return sys.modules["torch"].from_numpy(np.ascontiguousarray(new))
