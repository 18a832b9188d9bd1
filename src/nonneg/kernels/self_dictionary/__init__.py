"""The linear minimization oracle of a self-dictionary problem: product and minimum in one pass.

The scores of column l are x_n'r_l + base_n (plus an extra at the few listed entries of the column), over all
data points n. They are computed block by block in float32, centered and scaled so that none exceeds 1, and
never stored. An error bound says which columns are too close to call; those are decided in float64, with the
lowest index first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import is_cuda_tensor, numpy_view
from nonneg._typing import Array, IntArray
from nonneg.kernels.self_dictionary import array_api
from nonneg.kernels.self_dictionary.types import Dictionary, PenaltyGradient, TensorPenaltyGradient


def dictionary_of(points: Any) -> Dictionary:
    """Compute the center and the radius of data points.

    Parameters
    ----------
    points : array or scipy.sparse CSR array of shape (n_points, n_features)
        One data point per row; CPU tensors are viewed as NumPy arrays.

    Returns
    -------
    Dictionary
        Ready for `minimizing_vertices`.
    """
    points = numpy_view(points)
    if sp.issparse(points):
        points = sp.csr_array(points)
        center = np.asarray(points.sum(axis=0), dtype=np.float64).reshape(-1) / points.shape[0]
        squares = points.copy()
        squares.data = squares.data.astype(np.float64) ** 2
        norms = np.asarray(squares.sum(axis=1)).reshape(-1) - 2.0 * (points @ center) + center @ center
        # A difference of squares: the slack covers its rounding error.
        slack = 1e-12 * float(np.max(np.abs(norms)) + center @ center)
        return Dictionary(points, center, float(np.sqrt(max(norms.max() + slack, 0.0))))
    if not isinstance(points, np.ndarray):
        return Dictionary(points, *array_api.center_and_radius(points))
    points = np.ascontiguousarray(points)
    center = points.mean(axis=0, dtype=np.float64)
    furthest = 0.0
    for start in range(0, len(points), 1 << 12):
        apart = points[start : start + (1 << 12)] - center
        furthest = max(furthest, float(np.einsum("ij,ij->i", apart, apart).max()))
    return Dictionary(points, center, float(np.sqrt(furthest)) * (1.0 + 1e-12))


def runs_fused(residual: Array) -> bool:
    """Tell whether one kernel computes products and minima on the device of the residuals.

    Parameters
    ----------
    residual : array
        An array of any namespace.

    Returns
    -------
    bool
        True on a GPU that `kernels.self_dictionary.triton` supports.
    """
    if not is_cuda_tensor(residual):  # Triton is imported on a GPU only
        return False
    from nonneg.kernels.self_dictionary import triton

    return triton.is_supported(residual)


def minimizing_vertices(
    dictionary: Dictionary,
    residual: Array,
    gradient: PenaltyGradient | TensorPenaltyGradient,
    columns: IntArray | None = None,
) -> Any:
    """Return, for every column l, the vertex: the data point n that minimizes x_n'r_l + gradient_nl.

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    residual : array of float64 of shape (n_points, n_features)
        The rows r_l, on the device of the points.
    gradient : PenaltyGradient or TensorPenaltyGradient
        The gradient of the penalty.
    columns : array of int, optional
        The requested columns; all by default.

    Returns
    -------
    array of int64 of shape (n_columns,)
        A NumPy array; a tensor for a `TensorPenaltyGradient`. Of equal scores, in float64, the lowest index
        wins.

    Notes
    -----
    Costs 2 n_points n_features operations per column; the memory is that of the points in float32 (for sparse
    ones, of a tile) and of one block of scores per thread.
    """
    if isinstance(gradient, TensorPenaltyGradient) or runs_fused(residual):
        from nonneg.kernels.self_dictionary import torch as tensors

        return tensors.minimizing_vertices(dictionary, residual, gradient, columns)
    from nonneg.kernels.self_dictionary import numba  # loaded with the first fit, not with the package

    implementation = numba if numba.is_supported(dictionary.points) else array_api
    return implementation.minimizing_vertices(dictionary, residual, gradient, columns)
