"""Names for the arrays that travel through the library, for annotations only."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = Any
"""An array of any namespace of the array API: NumPy, PyTorch, CuPy, array-api-strict. The standard has no
importable type yet, so a type checker can only be told "anything"; the name says what is meant."""

SampleArray: TypeAlias = Any
"""An array with one row per sample, in the container of the data: an `Array`, or a Dask array with the same
row chunks."""

Namespace: TypeAlias = Any
"""A module of the array API, as `array_api_compat.array_namespace` returns it."""

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
"""A NumPy array of float32 or float64 entries."""

IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
"""A NumPy array of integers: indices, labels, counts."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""A NumPy array of truth values: masks."""

SparseMatrix: TypeAlias = Any
"""A SciPy sparse array or matrix (CSR or CSC inside the library); SciPy ships no types."""
