"""Leading singular values and vectors of the data, from products alone, and the Eckart-Young lower bound.

The right singular vectors are the eigenvectors of the Gram operator v -> X' diag(weights) X v, so that a
row of weight 3 counts like three rows and neither the order nor the repetition of rows matters. Few
columns: the Gram matrix is formed in float64, block by block, and decomposed whole. Many: block Lanczos
with full reorthogonalization and thick restarts, from a start that depends on the number of columns alone.

Squaring costs half of the digits: singular values below sqrt(eps) of the largest one drown in rounding. A
second, smaller decomposition in the space of the small ones (`resolve_small_singular_values`) brings this to
about eps^(3/4).

The Eckart-Young lower bound on the error of any factorization of rank k needs an upper bound on the sum of
the k largest squared singular values. Lanczos finds them from below and may have missed one. Where the Gram
matrix of the shorter side is cheap, all its eigenvalues are computed. Elsewhere, what Lanczos left is
searched again from random vectors, with a known probability of missing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from scipy import linalg

from nonneg._arrays import on_gpu, to_device, to_float64, to_numpy
from nonneg._random import Seed, generator
from nonneg._ties import REPEATED, fixed_vectors
from nonneg._typing import Array, Namespace
from nonneg.data.fingerprint import fingerprint
from nonneg.data.matrix import DataMatrix, LocalMatrix, rows_per_block
from nonneg.data.sparse import SparseRows
from nonneg.data.views import BlockView, CompressedMatrix, ScaledMatrix, tall
from nonneg.kernels.rows import gram_of

Float64Array: TypeAlias = npt.NDArray[np.float64]

DENSE_COLUMNS = 500  # up to here the whole Gram matrix is cheaper than Lanczos
_DENSE_LIMIT = 4096  # with more columns the Gram matrix is never formed
_MAX_PASSES = 300
_EPS = float(np.finfo(np.float64).eps)
_EQUAL = 1e-10  # eigenvalues that differ by less of the largest one are taken for one repeated value
_PASSES = 20  # of Lanczos, about: for the values of noisy data to 1e-8
# Residuals below this share of the largest square give values that are exact to its own square, unless some
# are small themselves: those ask for the full precision.
_TOL, _SMALL = 1e-8, 1e-2
# The probability that the bound is too large, at most; about that of a hardware error during the run.
FAILURE_PROBABILITY = 1e-10
# Random vectors and steps of the second search: its estimate is then within 7% of the largest eigenvalue for
# 1e5 columns, at the cost of 20 passes with 8 vectors, about that of Lanczos itself.
WIDTH, STEPS = 8, 20


def machine_epsilon(data: DataMatrix) -> float:
    """Return the machine epsilon of the dtype of the data."""
    return float(data.xp.finfo(data.dtype).eps)


def gram_matrix(data: DataMatrix) -> Float64Array:
    """Return X' diag(weights) X."""
    gram = data.reduce_rows(_block_gram)
    gram = to_float64(gram)
    return 0.5 * (gram + gram.T)


def _block_gram(block: LocalMatrix) -> Any:
    xp, gram = block.xp, 0.0
    # Entries that need no copy are multiplied at once.
    whole = isinstance(block.raw_rows(), np.ndarray) and block.dtype == xp.float64 and block.weights is None
    for start, stop in block.row_blocks(math.prod(block.shape) if whole else 1 << 20):
        gram = gram + _gram(xp, block.dense_rows(start, stop), block.weights, slice(start, stop))
    return gram


def _gram(xp: Namespace, rows: Array, weights: Array | None, places: slice) -> Array:
    rows = xp.astype(rows, xp.float64, copy=False)
    if weights is not None:
        rows = rows * xp.sqrt(xp.astype(weights[places], xp.float64))[:, None]
    return gram_of(rows)


def apply_gram(data: DataMatrix, V: Array) -> Array:
    """Return X' diag(weights) X V in float64: for a NumPy array on the host, else on the device of V."""
    product = data.reduce_rows(_gram_product, V=data.to_device(V))
    return to_float64(product) if isinstance(V, np.ndarray) else data.xp.astype(product, V.dtype)


def _gram_product(block: LocalMatrix, *, V: Any) -> Any:
    return block.transposed_times(block.times(V))


def resolve_small_singular_values(data: DataMatrix, V: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Turn the vectors of small singular values among themselves, so that their values are exact."""
    # The columns of X V that belong to small values are small themselves, so that their own Gram matrix is
    # exact to eps of *their* size: decomposing it again wins back what squaring lost.
    gram = data.reduce_rows(_projected_gram, V=data.to_device(V))
    gram = to_float64(gram)
    squares = np.diagonal(gram).copy()
    V = V.copy()
    small = np.flatnonzero(squares < np.sqrt(machine_epsilon(data)) * squares.max(initial=0.0))
    if small.size:
        values, rotation = np.linalg.eigh(gram[np.ix_(small, small)])
        V[:, small] = V[:, small] @ rotation[:, ::-1]
        squares[small] = values[::-1]
    order = np.argsort(-squares, kind="stable")
    return V[:, order], np.sqrt(np.maximum(squares[order], 0.0))


def _projected_gram(block: LocalMatrix, *, V: Any) -> Any:
    # Block by block: there may be as many vectors as columns, and X V would be as large as X.
    gram, step = 0.0, rows_per_block(V.shape[1], 1 << 20)
    for start in range(0, block.shape[0], step):
        part = block.select(slice(start, min(start + step, block.shape[0])))
        gram = gram + _gram(block.xp, part.times(V), part.weights, slice(None))
    return gram


def leading_vectors(data: DataMatrix, k: int, *, tol: float | None = None) -> Float64Array:
    """Return the k leading right singular vectors."""
    values, V = leading_eigenpairs(data, k, tol=tol)
    return fixed_vectors(values, V, max(REPEATED, 100 * machine_epsilon(data)))


def leading_eigenpairs(
    data: DataMatrix, k: int, *, rng: Seed = None, tol: float | None = None
) -> tuple[Float64Array, Float64Array]:
    """Return the k largest eigenvalues of X'X and their vectors."""
    n_columns = data.shape[1]
    # A fixed seed: the same data in another order or with repeated rows must give the same vectors.
    source = np.random.default_rng(n_columns) if rng is None else generator(rng)
    tol = max(1e-12 if tol is None else tol, 100 * machine_epsilon(data))
    like = None
    if on_gpu(data.to_device(np.zeros(1))) and n_columns > 4 * k:
        like = data.xp.astype(data.to_device(np.zeros(1)), data.xp.float64)
    elif n_columns <= DENSE_COLUMNS or (4 * k > n_columns and n_columns <= _DENSE_LIMIT):
        return dense_eigenpairs(data, k)
    return block_lanczos(lambda V: apply_gram(data, V), n_columns, k, source, tol=tol, like=like)


def dense_eigenpairs(data: DataMatrix, k: int) -> tuple[Float64Array, Float64Array]:
    """Return the same as `leading_eigenpairs`, from the whole Gram matrix."""
    values, V = np.linalg.eigh(gram_matrix(data))
    values, V = values[::-1], np.ascontiguousarray(V[:, ::-1])
    if values[k - 1] < np.sqrt(machine_epsilon(data)) * values[0]:
        # The small ones are mixed with those that were not requested: all take part in resolving them.
        V, s = resolve_small_singular_values(data, V)
        values = s**2
    return values[:k], np.ascontiguousarray(V[:, :k])


def leading_singular_values(data: DataMatrix, k: int, rng: Seed = None) -> Float64Array:
    """Return the k largest singular values in descending order."""
    # With m the shorter side and n the longer one (m is the number of columns for chunked and weighted data):
    # n m^2 + O(m^3) operations where the Gram matrix is formed, else 10 to 60 passes with blocks of k / 2
    # vectors and O(m k) memory.
    data = tall(data)
    if gram_is_cheaper(data, k):
        values = np.linalg.eigvalsh(gram_matrix(data))[::-1][:k]
        small, precise = float(np.sqrt(machine_epsilon(data))), dense_eigenpairs
    else:
        values = leading_eigenpairs(data, k, rng=rng, tol=_TOL)[0]
        small, precise = _SMALL**2, leading_eigenpairs
    if values[-1] >= small * values[0] and values[0] > 0.0:
        return np.sqrt(values)
    return resolve_small_singular_values(data, precise(data, k)[1])[1]


def gram_is_cheaper(data: DataMatrix, k: int) -> bool:
    """Tell whether forming the Gram matrix takes less work than Lanczos."""
    n_rows, n_columns = (float(side) for side in data.shape)
    if n_columns > _DENSE_LIMIT:
        return False
    base = data.base if isinstance(data, ScaledMatrix) else data
    entries = base.csr.nnz if isinstance(base, SparseRows) else n_rows * n_columns
    # Operations of the upper half of the product and of LAPACK's tridiagonal form, against two products with
    # a block of vectors in each pass.
    return n_rows * n_columns**2 + 4 / 3 * n_columns**3 <= _PASSES * 4 * entries * max(8, k // 2)


def block_lanczos(
    apply: Callable[[Array], Array],
    order: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float,
    like: Array | None = None,
) -> tuple[Float64Array, Float64Array]:
    """Return the k largest eigenvalues and their vectors of a positive semidefinite operator.

    The basis is on the device of `like`; the small projected matrix is decomposed on the host.
    """
    # A block finds no more than its width of the vectors of one repeated eigenvalue. Where a found value has
    # that many equals, random directions are added until no further one turns up.
    # Wu & Simon (2000), SIAM J. Matrix Anal. Appl. 22(2), 602-616 (thick restarts).
    like = np.empty(0) if like is None else like
    xp = array_namespace(like)

    def drawn() -> Array:
        return to_device(rng.standard_normal((order, width)), like)

    width = min(order, max(8, k // 2))
    keep = min(order, k + width)
    limit = min(order, 3 * (k + width))
    basis = to_device(np.empty((order, limit), order="F"), like)
    projected = np.zeros((limit, limit))
    block = xp.linalg.qr(drawn())[0]
    size, n_blocks = 0, 1
    values, rotation = np.zeros(0), np.zeros((0, 0))
    for _ in range(_MAX_PASSES):
        new = slice(size, size + block.shape[1])
        size = new.stop
        basis[:, new] = block
        active = basis[:, :size]
        column, outside = _split(active, apply(block))
        projected[:size, new] = to_numpy(column)
        projected[new, :size] = projected[:size, new].T
        values, rotation = np.linalg.eigh(projected[:size, :size])
        values, rotation = values[::-1], np.ascontiguousarray(rotation[:, ::-1])
        directions, factor = xp.linalg.qr(outside)
        triangle = to_numpy(factor)
        residuals = np.linalg.norm(triangle @ rotation[new, :k], axis=0)
        if size == order:
            break
        if size > k and np.all(residuals <= tol * max(values[0], 0.0)):
            if most_equal(values[:k]) < n_blocks * width:
                break
            n_blocks += 1
            triangle = np.zeros_like(triangle)
        # Directions of rounding size are dropped. In an invariant space none is left, and only random ones
        # can find what is outside of it.
        left, sizes, _ = np.linalg.svd(triangle)
        left = left[:, sizes > 100 * _EPS * values[0]]
        block = directions @ to_device(left, like) if left.shape[1] else _outside(active, drawn())
        block = _outside(active, block)[:, : order - size]
        if size + block.shape[1] > limit:
            basis[:, :keep] = active @ to_device(rotation[:, :keep], like)
            projected[:] = 0.0
            projected[range(keep), range(keep)] = values[:keep]
            size, rotation = keep, np.eye(keep)
    return values[:k], to_numpy(basis[:, :size]) @ rotation[:, :k]


def _split(basis: Array, product: Array) -> tuple[Array, Array]:
    # Twice: what the first projection leaves inside is rounding of the large parts.
    inside = basis.T @ product
    outside = product - basis @ inside
    correction = basis.T @ outside
    return inside + correction, outside - basis @ correction


def _outside(basis: Array, block: Array) -> Array:
    return array_namespace(block).linalg.qr(_split(basis, block)[1])[0]


def most_equal(values: Float64Array) -> int:
    """Return the largest number of equal values, zeros aside."""
    positive = values[values > _EQUAL * values[0]]
    if positive.size == 0:
        return 0
    edges = np.flatnonzero(-np.diff(positive) > _EQUAL * values[0])
    runs = np.diff(np.concatenate([[-1], edges, [positive.size - 1]]))
    return int(runs.max())


def leading_range(data: DataMatrix, width: int) -> Float64Array:
    """Return orthonormal columns that nearly span the leading right singular vectors, from one pass."""
    # Halko, Martinsson & Tropp (2011), SIAM Review 53(2), Algorithm 4.3 with one power iteration, on X'. The
    # draw depends on the number of columns alone: neither the order of rows nor the container matters.
    n_columns = data.shape[1]
    drawn = np.random.default_rng([n_columns, width]).standard_normal((n_columns, width))
    return linalg.qr(apply_gram(data, drawn), mode="economic", check_finite=False)[0]  # NumPy's takes longer


def compressed(data: DataMatrix, width: int, *, dtype: Any) -> DataMatrix | None:
    """Return X V V' in another dtype, from two passes; None where the container has no such form."""
    # A product costs l (n_rows + n_columns) operations per column instead of n_rows n_columns, and a pass
    # over compressed data does not read X: for data out of memory it costs no pass over the disk. V nearly
    # spans the leading right singular vectors, so that X V V' is little worse than the best one of rank l.
    if data.has_missing:
        return None
    V = leading_range(data, width)
    rows = data.map_rows(_project, V=data.to_device(V), dtype=dtype)
    projected = data.sample_matrix(rows)
    if projected is None:
        return None
    held = data.xp.astype(data.to_device(V), dtype)
    if isinstance(projected, LocalMatrix):
        return CompressedMatrix(projected, held)
    return BlockView(projected, CompressedMatrix, n_columns=data.shape[1], V=held)


def _project(block: LocalMatrix, *, V: Array, dtype: Any) -> Array:
    return block.xp.astype(block.times(V), dtype)


class EckartYoungBound(NamedTuple):
    """The Eckart-Young lower bound on the error of any factorization of rank k."""

    # No W and H of rank k have a smaller ||X - W H|| / ||X||; rounding does not make it too large.
    relative_error: float
    estimate: float  # the same from the computed singular values, without any allowance
    norm: float  # the (weighted) Frobenius norm of X
    failure_probability: float = 0.0  # over the random vectors: that the bound is too large


def eckart_young_bound(data: DataMatrix, k: int) -> EckartYoungBound:
    """Return a lower bound on the relative error of every factorization of rank k, nonnegative or not."""
    # Of complete data: Eckart & Young (1936), Psychometrika 1, 211-218.
    square = data.squared_norm()
    norm = math.sqrt(square)
    if k >= min(data.shape) or square == 0.0:
        return EckartYoungBound(0.0, 0.0, norm)
    data = tall(data)
    # A sum of n products is off by up to n eps times that of their sizes (Higham 2002, section 3.1), and is
    # where all are equal; those of all entries of X'X have a norm of at most ||X||^2.
    sums = float(sum(data.shape)) * square
    probability = 0.0
    if gram_is_cheaper(data, k):
        values = np.linalg.eigvalsh(gram_matrix(data))[::-1]
        captured = float(np.sum(values[:k]))
        most = captured + k * _EPS * (sums + 4.0 * math.sqrt(data.shape[1]) * float(values[0]))
    else:
        # Vectors that depend on the entries: no matrix can be built to be orthogonal to them.
        source = np.random.default_rng(int(fingerprint(data)[:16], 16))
        captured, most = _largest_sum(data, k, source, machine_epsilon(data) * sums)
        probability = FAILURE_PROBABILITY
    rest = square - most - _EPS * sums
    least, estimate = (math.sqrt(max(0.0, part / square)) for part in (rest, square - captured))
    return EckartYoungBound(least, estimate, norm, probability)


def _largest_sum(
    data: DataMatrix, k: int, source: np.random.Generator, rounding: float
) -> tuple[float, float]:
    """Return the sum of k Ritz values, and a bound on that of the k largest eigenvalues of X'X."""
    V = np.linalg.qr(leading_eigenpairs(data, k, rng=source)[1])[0]
    product = apply_gram(data, V)
    projected = V.T @ product
    values = np.linalg.eigvalsh(0.5 * (projected + projected.T))[::-1]
    # In the basis of V and its complement, X'X differs from its two diagonal blocks by the residual of V. The
    # eigenvalues of the first block are the Ritz values, those of the second lie below `largest`.
    residual = float(np.linalg.norm(product - V @ projected, 2))
    largest = _largest_outside(data, V, source)
    raised = float(np.sum(np.maximum(values, largest)))
    return float(np.sum(values)), raised + k * (residual + rounding)


def _largest_outside(data: DataMatrix, V: Float64Array, source: np.random.Generator) -> float:
    """Return a bound on the largest eigenvalue of X'X in the complement of V, but for a small probability."""
    order = data.shape[1]
    block = _split(V, source.standard_normal((order, WIDTH)))[1]
    basis = images = np.empty((order, 0))
    largest = 0.0
    for _ in range(STEPS):
        # What is left of a direction inside the basis is rounding: it is not a new one.
        scale = 1e-8 * np.linalg.norm(block, axis=0).max(initial=0.0)
        block = block - basis @ (basis.T @ block)
        block, triangle = np.linalg.qr(block)
        block = block[:, np.abs(np.diag(triangle)) > scale]
        block = _outside(V, block - basis @ (basis.T @ block))
        if block.shape[1] == 0 or basis.shape[1] + block.shape[1] > order - V.shape[1]:
            break
        image = _split(V, apply_gram(data, block))[1]
        basis, images = np.hstack([basis, block]), np.hstack([images, image])
        inner = basis.T @ images
        largest = float(np.linalg.eigvalsh(0.5 * (inner + inner.T))[-1])
        block = image
    # Kuczynski & Wozniakowski (1992), SIAM J. Matrix Anal. Appl. 13, 1094-1122, Theorem 4.2: q Lanczos steps
    # from one random vector underestimate by more than a share e with probability at most
    # 1.648 sqrt(n) exp(-sqrt(e) (2 q - 1)). The vectors of a block are independent, and all must fail.
    level = FAILURE_PROBABILITY ** (1.0 / WIDTH)
    share = (math.log(1.648 * math.sqrt(order) / level) / (2 * STEPS - 1)) ** 2
    if share >= 1.0:
        return math.inf
    return largest / (1.0 - share)
