"""Leading singular values and vectors of the data, from products alone, with bounds on their errors.

The right singular vectors are the eigenvectors of the Gram operator v -> X' diag(weights) X v, so that a
row of weight 3 counts like three rows and neither the order nor the repetition of rows matters. Few
columns: the Gram matrix is formed in float64, block by block, and decomposed whole. Many: block Lanczos
with full reorthogonalisation and thick restarts, from a start that depends on the number of columns alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nonneg._random import Seed, generator
from nonneg._typing import LeftArray
from nonneg.data.gram_operator import apply_gram, gram_matrix, precision, resolve_small
from nonneg.data.gram_operator import to_numpy as to_numpy
from nonneg.data.lanczos import Float64Array, block_lanczos
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.exceptions import InvalidParameterError

_DENSE_COLUMNS = 500  # up to here the whole Gram matrix is cheaper than Lanczos
_DENSE_LIMIT = 4096  # beyond it the Gram matrix is never formed, however many values are asked for
_MAX_PASSES = 300


@dataclass(frozen=True)
class SingularValueBounds:
    """Leading singular values between two bounds each.

    Attributes
    ----------
    lower : array of shape (k,)
        The norms of X v for orthonormal vectors v, which never exceed the true values by more than rounding.
    upper : array of shape (k,)
        Their squares increased by the norm of the residual X'X v - s^2 v and by an allowance for rounding.
    squared_norm : float
        The (weighted) squared Frobenius norm of X.
    """

    lower: Float64Array
    upper: Float64Array
    squared_norm: float


class SvdFloor(NamedTuple):
    """Bounds of the smallest error of any factorization of rank k.

    Attributes
    ----------
    relative_error : float
        No W and B of k columns have a smaller ||X - W B'|| / ||X||: a value that is not overstated.
    estimate : float
        The same without the allowances: what the computed singular values say.
    norm : float
        The (weighted) Frobenius norm of X.
    """

    relative_error: float
    estimate: float
    norm: float


class TruncatedSvd(NamedTuple):
    """Leading singular triplets: X ~ U diag(s) V'.

    Attributes
    ----------
    U : left-like array of shape (n_rows, k)
        Orthonormal in the inner product of the row weights; zero columns where s is numerically zero.
    s : array of shape (k,)
        Singular values in descending order (float64, on the host).
    V : array of shape (n_columns, k)
        Orthonormal (float64, on the host).
    """

    U: LeftArray
    s: Float64Array
    V: Float64Array


def truncated_svd(
    data: DataMatrix, k: int, rng: Seed = None, *, tol: float | None = None, max_passes: int = _MAX_PASSES
) -> TruncatedSvd:
    """Return the k leading singular triplets.

    Parameters
    ----------
    data : DataMatrix
        The data; row weights count like repetitions.
    k : int
        How many, at most the smaller side of X.
    rng : None, int, Generator, RandomState or SeedSequence
        None starts from vectors that depend on the number of columns alone; otherwise they are drawn from
        here.
    tol : float, optional
        Residual norms ||X'X v - s^2 v|| are brought below `tol` times the largest squared singular value.
        About 1e-12 by default, and 100 times the precision of the data's type where that is larger.
    max_passes : int
        The largest number of passes over the data (Lanczos only).

    Returns
    -------
    TruncatedSvd
        U, s and V. The sign of each pair makes the largest entry of the column of V positive.

    Notes
    -----
    Few columns: one pass of O(n m^2) and O(m^3). Many: about 5 to 20 passes with blocks of 8 to 32 vectors.
    """
    _, V = leading_pairs(data, k, rng=rng, tol=tol, max_passes=max_passes)
    V, s = resolve_small(data, V)
    V *= _signs(V)
    inverse = np.where(s > _noise_level(data, s), 1.0 / np.where(s > 0, s, 1.0), 0.0)
    (U,), _ = data.row_pass(_scaled_products, right=data.place(V), scale=data.place(inverse))
    return TruncatedSvd(U, s, V)


def leading_vectors(
    data: DataMatrix, k: int, rng: Seed = None, *, tol: float | None = None, max_passes: int = _MAX_PASSES
) -> Float64Array:
    """Return the k leading right singular vectors.

    Parameters
    ----------
    data : DataMatrix
        The data; row weights count like repetitions.
    k : int
        How many, at most the smaller side of X.
    rng : None, int, Generator, RandomState or SeedSequence
        See `truncated_svd`.
    tol : float, optional
        See `truncated_svd`.
    max_passes : int
        See `truncated_svd`.

    Returns
    -------
    array of shape (n_columns, k)
        Orthonormal (float64, on the host); the largest entry of each column is positive.
    """
    _, V = leading_pairs(data, k, rng=rng, tol=tol, max_passes=max_passes)
    return V * _signs(V)


def numerical_noise(data: DataMatrix, largest: float) -> float:
    """Return the size below which a computed singular value is rounding.

    Parameters
    ----------
    data : DataMatrix
        The data.
    largest : float
        The largest singular value.

    Returns
    -------
    float
        10 eps^(3/4) of the largest, or NumPy's max(shape) eps of it where that is more.
    """
    eps = precision(data)
    return largest * max(10 * eps**0.75, max(data.shape) * eps)


def singular_value_bounds(data: DataMatrix, k: int, rng: Seed = None) -> SingularValueBounds:
    """Return bounds from below and above of the k largest singular values.

    Parameters
    ----------
    data : DataMatrix
        The data; row weights count like repetitions.
    k : int
        How many, at most the smaller side of X.
    rng : None, int, Generator, RandomState or SeedSequence
        See `truncated_svd`.

    Returns
    -------
    SingularValueBounds
        Lower and upper bounds.

    Notes
    -----
    A Ritz value never exceeds the eigenvalue of its place, and an eigenvalue lies within the residual norm of
    each Ritz value. That it is the one of the same place rests, for Lanczos, on the start not being
    orthogonal to a leading vector, which Gaussian vectors are with probability 0.
    """
    _, V = leading_pairs(data, k, rng=rng)
    product = apply_gram(data, V)
    squares = np.einsum("ij,ij->j", V, product)
    residuals = np.linalg.norm(product - V * squares, axis=0)
    # Errors of dot products of length m grow like sqrt(m) eps; 4 makes room for the sums over rows.
    rounding = 4.0 * np.sqrt(data.shape[1]) * precision(data) * squares[:1].max(initial=0.0)
    lower = np.sqrt(np.maximum(squares, 0.0))
    upper = np.sqrt(np.maximum(squares, 0.0) + residuals + rounding)
    return SingularValueBounds(lower, upper, data.squared_norm())


def svd_floor(data: DataMatrix, k: int, rng: Seed = None) -> SvdFloor:
    """Return a floor of the relative error of every factorization of rank k, nonnegative or not.

    Parameters
    ----------
    data : DataMatrix
        The data, complete; row weights count like repetitions.
    k : int
        The rank. From the smaller side of X on, the floor is 0.
    rng : None, int, Generator, RandomState or SeedSequence
        See `truncated_svd`.

    Returns
    -------
    SvdFloor
        sqrt(||X||^2 - s_1^2 - ... - s_k^2) / ||X|| with the upper bounds of the s_i, so that it is not
        overstated.

    References
    ----------
    .. [1] Eckart & Young (1936), Psychometrika 1, 211-218.
    """
    if data.has_missing:
        raise InvalidParameterError(
            "The floor of the truncated SVD needs complete data, and entries are missing. "
            "Leave it out, or fill them first."
        )
    square = data.squared_norm()
    if k >= min(data.shape) or square == 0.0:
        return SvdFloor(0.0, 0.0, float(np.sqrt(square)))
    bounds = singular_value_bounds(data, k, rng)
    rest = square - float(np.sum(bounds.upper**2)) - precision(data) * square
    estimate = square - float(np.sum(bounds.lower**2))
    return SvdFloor(_root(rest / square), _root(estimate / square), float(np.sqrt(square)))


def _root(value: float) -> float:
    return float(np.sqrt(max(value, 0.0)))


def _noise_level(data: DataMatrix, s: Float64Array) -> float:
    return numerical_noise(data, float(s[0])) if s.size else 0.0


def check_count(data: DataMatrix, k: int) -> None:
    """Refuse a number of singular values that the data do not have.

    Parameters
    ----------
    data : DataMatrix
        The data.
    k : int
        How many are asked for.
    """
    if not 1 <= k <= min(data.shape):
        raise InvalidParameterError(
            f"Expected a number of singular values from 1 to {min(data.shape)} for data of shape "
            f"{data.shape}, got {k}."
        )


def leading_pairs(
    data: DataMatrix, k: int, *, rng: Seed = None, tol: float | None = None, max_passes: int = _MAX_PASSES
) -> tuple[Float64Array, Float64Array]:
    """Return the k largest eigenvalues of X'X and their vectors.

    Parameters
    ----------
    data : DataMatrix
        The data.
    k : int
        How many.
    rng, tol, max_passes : optional
        See `truncated_svd`.

    Returns
    -------
    tuple of array
        Values, and vectors in columns.
    """
    n_columns = data.shape[1]
    check_count(data, k)
    if n_columns <= _DENSE_COLUMNS or (4 * k > n_columns and n_columns <= _DENSE_LIMIT):
        return dense_pairs(data, k)
    # A fixed seed: the same data in another order or with repeated rows must give the same vectors.
    source = np.random.default_rng(n_columns) if rng is None else generator(rng)
    tol = max(1e-12 if tol is None else tol, 100 * precision(data))
    return block_lanczos(lambda V: apply_gram(data, V), n_columns, k, source, tol=tol, max_passes=max_passes)


def dense_pairs(data: DataMatrix, k: int) -> tuple[Float64Array, Float64Array]:
    """Return the same as `leading_pairs`, from the whole Gram matrix.

    Parameters
    ----------
    data : DataMatrix
        The data.
    k : int
        How many.

    Returns
    -------
    tuple of array
        Values, and vectors in columns.
    """
    values, V = np.linalg.eigh(gram_matrix(data))
    values, V = values[::-1], np.ascontiguousarray(V[:, ::-1])
    if values[k - 1] < np.sqrt(precision(data)) * values[0]:
        # The small ones are mixed with those that were not asked for: all take part in telling them apart.
        V, s = resolve_small(data, V)
        values = s**2
    return values[:k], np.ascontiguousarray(V[:, :k])


def _scaled_products(block: LocalMatrix, *, right: Any, scale: Any) -> tuple[tuple[Any], tuple[()]]:
    return (block.times(right) * scale[None, :],), ()


def _signs(V: Float64Array) -> Float64Array:
    largest = np.argmax(np.abs(V), axis=0)
    return np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0)
