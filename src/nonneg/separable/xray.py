"""XRAY: an extreme ray of the cone in the direction of a point that the picks explain badly."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._random import Seed, generator
from nonneg._typing import Array, LeftArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.descent.greedy import GreedyRule, greedy_selection
from nonneg.exceptions import UnknownNameError
from nonneg.kernels import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.separable.greedy import pursue, relative_floor, settled
from nonneg.separable.reduction import mean_row
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import squared_row_norms

VARIANTS = ("max", "rand")
RANDOM_TRIES = 50


def xray(data: DataMatrix, n_anchors: int, *, variant: str = "max", rng: Seed = None) -> SelectionResult:
    """Pick extreme rays of the cone of the data, one after another.

    Parameters
    ----------
    data : DataMatrix
        The data, one point a row; points need not sum to one. Nonnegative, or their projections (points on
        the far side of the plane across the mean are no candidates).
    n_anchors : int
        How many to pick.
    variant : {"max", "rand"}
        Which point's residual gives the direction: the longest one, or that of a point drawn at random among
        those that are not explained.
    rng : None, int, Generator, RandomState or SeedSequence
        For "rand".

    Returns
    -------
    SelectionResult
        The scores are the norms of the residuals that gave the directions.

    Notes
    -----
    With r the residual of the chosen point after its nonnegative fit to the picks, the next pick is the point
    x of largest ``(r'x) / (p'x)``, p being all ones (the mean of the points where entries are negative). Two
    passes over the data an anchor: one finds the ray, one updates the fits, exactly and in Gram form. The
    paper's third variant ("dist") compares all pairs of points, and is left out for that reason.

    References
    ----------
    .. [1] Kumar, Sindhwani & Kambadur (2013), ICML, Algorithm 1 with selection rules "max" and "rand".
    """
    if variant not in VARIANTS:
        raise UnknownNameError.of("variant", variant, VARIANTS)
    picked: list[Array] = []
    draws = generator(rng) if variant == "rand" else None
    heights = _heights(data)

    def facts(row: Array, n_picks: int) -> dict[str, Any]:
        xp = array_namespace(row)
        picked.append(xp.astype(row, xp.float64))
        return {"rays": xp.stack(picked, axis=0)}

    def refine(matrix: DataMatrix, kept: tuple[LeftArray, ...], index: int) -> int:
        direction = _residual(matrix, index, picked)
        if draws is not None:
            longest = _length(direction)
            for _ in range(RANDOM_TRIES):
                drawn = _residual(matrix, int(draws.integers(matrix.shape[0])), picked)
                if _length(drawn) > 1e-6 * longest:
                    direction = drawn
                    break
        return _extreme_ray(matrix, direction, heights)

    rule = GreedyRule(begin=_begin, advance=_advance, facts=facts, n_kept=3, refine=refine)
    return pursue(data, n_anchors, rule, method="xray", relative_floor=relative_floor(data))


def _length(vector: Array) -> float:
    return float(array_namespace(vector).linalg.vector_norm(vector))


def _residual(data: DataMatrix, index: int, picked: list[Array]) -> Array:
    point = data.take_rows([index])
    xp = array_namespace(point)
    point = xp.astype(point, xp.float64)
    if picked:
        rays = xp.stack(picked, axis=0)
        point = point - nonnegative_least_squares(SharedGram(rays @ rays.T), point @ rays.T) @ rays
    return point[0, :]


def _heights(data: DataMatrix) -> Any:
    # Rays are compared where they meet a plane: that of sum one for nonnegative points, else (projected
    # points) the one across the mean.
    return mean_row(data) if data.extremes()[0] < 0 else np.ones(data.shape[1])


def _extreme_ray(data: DataMatrix, direction: Array, heights: Any) -> int:
    facts = {"direction": direction, "heights": heights}
    rule = GreedyRule(begin=_ratios, advance=_ratios, facts=_nothing, n_kept=0, first_facts=facts)
    return int(greedy_selection(data, 1, rule, floor=-np.inf, finish=False).indices[0])


def _nothing(row: Array, n_picks: int) -> dict[str, Any]:
    return {}


def _ratios(block: LocalMatrix, *, direction: Array, heights: Any) -> tuple[tuple[()], Array]:
    xp = block.xp
    both = xp.stack([xp.astype(direction, block.dtype), block.place(heights)], axis=1)
    products = xp.astype(block.times(both), xp.float64)
    sums = products[:, 1]
    safe = xp.where(sums > 0, sums, xp.ones_like(sums))
    return (), xp.where(sums > 0, products[:, 0] / safe, xp.full_like(sums, -float("inf")))


def _begin(block: LocalMatrix) -> tuple[tuple[Array, ...], Array]:
    # Kept: squared norm, products with the picks, weights; the latter two start without a column.
    xp = block.xp
    squares = squared_row_norms(block)
    nothing = xp.zeros((block.shape[0], 0), dtype=block.dtype, device=squares.device)
    return (squares[:, None], nothing, nothing), squares


def _advance(
    block: LocalMatrix, original: Array, products: Array, weights: Array, *, rays: Array
) -> tuple[tuple[Array, ...], Array]:
    xp = block.xp
    k = rays.shape[0]
    new = block.times(xp.astype(rays[k - 1 :, :], block.dtype).T)
    products = xp.concat([products, new], axis=1)
    gram = rays @ rays.T
    guess = xp.concat([weights, xp.astype(new > 0, weights.dtype)], axis=1)
    narrow = SharedGram(xp.astype(gram, block.dtype))
    weights = nonnegative_least_squares(narrow, products, start=guess)
    wide, cross = xp.astype(weights, xp.float64), xp.astype(products, xp.float64)
    left = original[:, 0] - 2.0 * xp.sum(wide * cross, axis=1) + xp.sum((wide @ gram) * wide, axis=1)

    def squares_of(rows: Array, places: Array) -> Array:
        rows = rows - nonnegative_least_squares(SharedGram(gram), rows @ rays.T) @ rays
        return xp.sum(rows * rows, axis=1)

    left = settled(block, xp.clip(left, min=0.0), original[:, 0], 0.0, squares_of)
    return (original, products, weights), left
