"""What XRAY computes on a block in one pass over the data, speculative prefetch included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array
from nonneg.data import LocalMatrix
from nonneg.data.greedy import Candidate, block_candidates
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.separable.greedy import accurate_squares
from nonneg.separable.spa import squared_row_norms

SAMPLE = 4096
"""Number of rows from which a bound is computed that rules out most of the others."""


@dataclass(frozen=True)
class Search:
    """What a pass scores to find the next ray."""

    # Residuals of the samples predicted to have the largest residual, the likeliest first.
    directions: Array
    heights: Any  # the plane in which rays are compared
    slopes: Array  # the products of the rays with the first direction
    n_rows: int  # number of samples of a block that are returned for the next prediction


@dataclass(frozen=True)
class Report:
    """What a block found."""

    size: int  # its number of rows
    rays: list[list[Candidate]]  # for every direction the extreme ray of the block, for `best_candidate`
    places: list[int]  # rows that may have the largest residual after the next selection
    rows: Array  # these rows


def begin(block: LocalMatrix) -> tuple[tuple[Array, ...], Array, list[float]]:
    """Return what is kept with a block, the scores, and the smallest entry of the block."""
    xp = block.xp
    squares = squared_row_norms(block)
    nothing = xp.zeros((block.shape[0], 0), dtype=block.dtype, device=squares.device)
    return (squares[:, None], squares[:, None], nothing, nothing), squares, [block.extremes()[0]]


def advance(
    block: LocalMatrix,
    original: Array,
    left: Array,
    products: Array,
    weights: Array,
    *,
    rays: Array,
    search: Search | None,
) -> tuple[tuple[Array, ...], Array, list[Report]]:
    """Take a new ray into account and look for the next one."""
    xp = block.xp
    k = rays.shape[0]
    # One product with the data: the new ray, then the directions of the search.
    columns = xp.astype(rays[k - 1 :, :], block.dtype).T
    if search is not None:
        columns = xp.concat([columns, _columns(block, search)], axis=1)
    along = block.times(columns)
    new = along[:, :1]
    products = xp.concat([products, new], axis=1)
    gram = rays @ rays.T
    # Where the new ray has no positive product with the residual, the fit stays optimal.
    # Single-precision products of OpenBLAS sometimes set the flag for invalid values (seen with AVX-512),
    # though factors and result are finite.
    with np.errstate(invalid="ignore"):
        gains = (new - weights @ xp.astype(gram[: k - 1, k - 1 :], block.dtype))[:, 0]
    changed = gains > 0
    weights = xp.concat([weights, xp.astype(changed, weights.dtype)[:, None]], axis=1)
    weights, squares = _fitted(block, changed, gram, products, weights, original[:, 0], left[:, 0])

    def squares_of(rows: Array, places: Array) -> Array:
        rows = residuals(rows, rays, gram)
        return xp.sum(rows * rows, axis=1)

    squares = accurate_squares(block, squares, original[:, 0], 0.0, squares_of)
    reports = [] if search is None else [_report(block, squares, weights, along[:, 1:], search)]
    return (original, squares[:, None], products, weights), squares, reports


def _fitted(
    block: LocalMatrix,
    changed: Array,
    gram: Array,
    products: Array,
    weights: Array,
    original: Array,
    left: Array,
) -> tuple[Array, Array]:
    # The weights and squared residuals, recomputed for the rows that change.
    xp = block.xp
    rows = xp.nonzero(changed)[0]
    n_rows = rows.shape[0]
    if n_rows == 0:
        return weights, left
    some = n_rows < block.shape[0]
    cross, guess, norms = products, weights, original
    if some:
        cross, guess, norms = (xp.take(array, rows, axis=0) for array in (products, weights, original))
    solved = nonnegative_least_squares(SharedGram(xp.astype(gram, block.dtype)), cross, start=guess)
    wide = xp.astype(solved, xp.float64)
    squares = norms + xp.sum((wide @ gram - 2.0 * xp.astype(cross, xp.float64)) * wide, axis=1)
    squares = xp.clip(squares, min=0.0)
    if not some:
        return solved, squares
    if isinstance(weights, np.ndarray):
        left = left.copy()
        weights[rows], left[rows] = solved, squares
        return weights, left
    turn = xp.clip(xp.cumulative_sum(xp.astype(changed, xp.int64)) - 1, min=0)
    weights = xp.where(changed[:, None], xp.take(solved, turn, axis=0), weights)
    return weights, xp.where(changed, xp.take(squares, turn, axis=0), left)


def look(
    block: LocalMatrix, original: Array, left: Array, products: Array, weights: Array, *, search: Search
) -> tuple[tuple[()], tuple[list[Report]]]:
    """Score rays only: for a direction that was not prefetched."""
    return (), ([_report(block, left[:, 0], weights, block.times(_columns(block, search)), search)],)


def residuals(rows: Array, rays: Array, gram: Array) -> Array:
    """Return the residuals of samples after their nonnegative fit to the rays."""
    return rows - nonnegative_least_squares(SharedGram(gram), rows @ rays.T) @ rays


def _columns(block: LocalMatrix, search: Search) -> Array:
    heights = block.to_device(search.heights)[:, None]
    return block.xp.concat([block.xp.astype(search.directions, block.dtype), heights], axis=1)


def _report(block: LocalMatrix, left: Array, weights: Array, along: Array, search: Search) -> Report:
    xp = block.xp
    along = xp.astype(along, xp.float64)
    n_directions = search.directions.shape[1]
    sums = along[:, n_directions]
    safe = xp.where(sums > 0, sums, xp.ones_like(sums))
    rays = []
    for i in range(n_directions):
        ratios = xp.where(sums > 0, along[:, i] / safe, xp.full_like(sums, -float("inf")))
        rays.append(block_candidates(block, ratios, rows=False))
    places = _hardest(xp, left, weights, along[:, 0], search) if search.n_rows else []
    return Report(block.shape[0], rays, places, block.take_rows(places))


def _hardest(xp: Any, left: Array, weights: Array, along: Array, search: Search) -> list[int]:
    # The residual of every sample if the first direction were a ray: a sample that it explains will not have
    # the largest residual next. This is a prediction, so that rounding does not matter.
    square = max(float(xp.sum(search.directions[:, 0] ** 2)), float(xp.finfo(xp.float64).smallest_normal))

    def expected(left: Array, weights: Array, along: Array) -> Any:
        shared = xp.clip(along - xp.astype(weights, xp.float64) @ search.slopes, min=0.0)
        return to_float64(left - shared**2 / square)

    # Residuals only decrease, so that the predictions of some rows rule out most of the others.
    stride = max(1, left.shape[0] // SAMPLE)
    some = expected(left[::stride], weights[::stride, :], along[::stride])
    count = min(search.n_rows, len(some))
    rows = xp.nonzero(left >= float(np.partition(some, len(some) - count)[len(some) - count]))[0]
    some = expected(*(xp.take(array, rows, axis=0) for array in (left, weights, along)))
    best = np.argpartition(some, len(some) - count)[len(some) - count :]
    return np.sort(to_float64(rows)[best]).tolist()
