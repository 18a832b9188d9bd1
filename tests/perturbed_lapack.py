"""A LAPACK that uses its freedom: other signs of vectors, and results off by one unit in the last place.

Nothing promises the sign of a singular vector or of an eigenvector, nor the last digit of any result: they
differ between processors, versions of the library and numbers of threads. With `--perturb-lapack SEED` all
tests run on functions that choose differently; tests that use the fixture `perturbed_lapack` always do. The
choice depends on the seed and the result alone, so that equal calls still give equal bytes.
"""

from __future__ import annotations

import functools
import importlib
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

# What a function returns: "values" are eigenvalues or singular values, "entries" anything else.
SVD = {"svd": "svd", "svdvals": "values"}
EIGEN = {"eigh": "eigen", "eigvalsh": "values", "eig": "eigen", "eigvals": "values"}
SOLVE = {"solve": "entries", "inv": "entries", "pinv": "entries", "cholesky": "entries"}
DENSE = {**SVD, **EIGEN, **SOLVE, "qr": "qr"}
FUNCTIONS = {
    "numpy.linalg": DENSE,
    "array_api_compat.numpy.linalg": DENSE,
    "scipy.linalg": DENSE,
    "scipy.sparse.linalg": {"svds": "svd", "eigsh": "eigen", "eigs": "eigen"},
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
        if any(array is None for array in arrays):  # on a GPU, or no array at all
            return result
        rng = np.random.default_rng([seed, *(zlib.crc32(array.tobytes()) for array in arrays)])
        mode = options.get("mode", args[1] if kind == "qr" and len(args) > 1 else None)
        if mode == "raw":
            return result
        with np.errstate(all="ignore"):
            answer = _perturbed(kind, arrays, mode, rng)
        answer = [_like(new, part) for new, part in zip(answer, parts, strict=True)]
        if not isinstance(result, tuple):
            return answer[0]
        return type(result)(*answer) if hasattr(result, "_fields") else type(result)(answer)

    return perturbed


def _perturbed(kind: str, arrays: list[Any], mode: str | None, rng: np.random.Generator) -> list[Any]:
    if kind == "entries":
        return [_next(array, rng) for array in arrays]
    if kind == "qr":
        n_vectors = 0 if mode == "r" and arrays[0].size else 1
        triangle = arrays[n_vectors]
        signs = rng.choice([-1.0, 1.0], (*triangle.shape[:-1], 1)).astype(triangle.dtype)
        new = [_next(triangle * signs, rng)]
        if n_vectors:
            new.insert(0, _vectors(arrays[0], np.swapaxes(signs, -1, -2), rng))
        return new + arrays[len(new) :]  # the order of the columns stays
    if kind == "values" or len(arrays) == 1:
        return [_values(arrays[0], rng)]
    if kind == "eigen":
        values, vectors = arrays
        signs = rng.choice([-1.0, 1.0], (*vectors.shape[:-2], 1, vectors.shape[-1])).astype(
            vectors.real.dtype
        )
        return [_values(values, rng), _vectors(vectors, signs, rng)]
    left, values, right = arrays
    right = np.swapaxes(right, -1, -2)
    n_signs = max(left.shape[-1], right.shape[-1])
    signs = rng.choice([-1.0, 1.0], (*left.shape[:-2], 1, n_signs)).astype(left.dtype)
    left = _vectors(left, signs[..., : left.shape[-1]], rng)
    right = _vectors(right, signs[..., : right.shape[-1]], rng)
    return [left, _values(values, rng), np.swapaxes(right, -1, -2)]


def _vectors(vectors: Any, signs: Any, rng: np.random.Generator) -> Any:
    """Return vectors with these signs, off by a unit in the last place of their largest entry."""
    if not vectors.size:
        return vectors
    unit = np.spacing(np.abs(vectors).max(axis=-2, keepdims=True))
    return (vectors * signs + rng.integers(-1, 2, vectors.shape) * unit).astype(vectors.dtype)


def _values(values: Any, rng: np.random.Generator) -> Any:
    """Return values off by a unit in the last place of the largest: no more is known of the small ones."""
    if not values.size:
        return values
    unit = np.spacing(np.abs(values).max(axis=-1, keepdims=True))
    moved = values + rng.integers(-1, 2, values.shape) * unit
    if np.iscomplexobj(values):
        return moved.astype(values.dtype)
    if values.min() >= 0:  # singular values
        moved = np.maximum(moved, 0.0)
    if np.all(np.diff(values) >= 0):
        moved = np.sort(moved, axis=-1)
    elif np.all(np.diff(values) <= 0):
        moved = np.sort(moved, axis=-1)[..., ::-1]
    return np.ascontiguousarray(moved.astype(values.dtype))


def _next(entries: Any, rng: np.random.Generator) -> Any:
    """Return numbers off by one unit in their last place; zeros stay."""
    if np.iscomplexobj(entries) or not np.issubdtype(entries.dtype, np.floating):
        return entries
    toward = np.where(rng.random(entries.shape) < 0.5, -np.inf, np.inf).astype(entries.dtype)
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
