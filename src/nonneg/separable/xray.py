"""XRAY: an extreme ray of the cone in the direction of the largest residual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._random import Seed, generator
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.candidates import Candidate, best_candidate, block_candidates
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.separable.greedy import GreedyRule, accurate_squares, select_greedily
from nonneg.separable.preprocessing import mean_row
from nonneg.separable.result import SelectionResult

RANDOM_TRIES = 50
# A sample whose residual is at most this fraction of the largest one is not drawn.
EXPLAINED = 1e-6


def xray(data: DataMatrix, n_components: int, *, variant: str = "max", rng: Seed = None) -> SelectionResult:
    """Select extreme rays of the cone of the data, one after another."""
    # With r the residual of one sample after its nonnegative fit to the anchors, the next anchor is the
    # sample x of largest ``(r'x) / (p'x)``, with p all ones (the mean of the samples where entries are
    # negative). The fits are exact, in Gram form. The third variant of the paper ("dist") compares all pairs
    # of samples and is left out for that reason. Two passes over the data per anchor: one updates the fits,
    # one looks for the ray. Kumar, Sindhwani & Kambadur (2013), ICML, Algorithm 1 with selection rules "max"
    # and "rand".
    search = _RaySearch(data, generator(rng) if variant == "rand" else None)
    rule = GreedyRule(begin=_begin, advance=_advance, shared=search.shared, n_kept=4, refine=search.refine)
    result = select_greedily(data, n_components, rule, method="xray")
    return replace(result, n_passes=(result.n_passes or 0) + search.n_passes)


class _RaySearch:
    """The state of the search outside the passes."""

    def __init__(self, data: DataMatrix, draws: np.random.Generator | None) -> None:
        self.data, self.draws = data, draws
        self.anchors: list[Array] = []
        self.rays: Array = None  # the anchors as a matrix
        # Rays are compared where they meet a plane: sum one for nonnegative samples, else (projected samples)
        # the plane through the mean and orthogonal to it.
        signed = data.extremes()[0] < 0
        self.heights: Any = mean_row(data) if signed else np.ones(data.shape[1])
        self.n_passes = int(signed)

    def shared(self, row: Array, n_picks: int) -> dict[str, Any]:
        """Return the arguments of the pass after a selection."""
        self.anchors.append(_wide(row))
        self.rays = array_namespace(row).stack(self.anchors, axis=0)
        return {"rays": self.rays}

    def refine(self, data: DataMatrix, index: int, row: Array) -> tuple[int, Array]:
        """Return the extreme ray in the direction of the largest residual, or of a drawn one."""
        direction = self._residual(_wide(row))
        if self.draws is not None:
            direction = self._drawn(direction)
        xp = data.xp
        heights = xp.astype(data.to_device(self.heights), direction.dtype)
        columns = xp.stack([direction, heights], axis=1)
        self.n_passes += 1
        ray = best_candidate(data.reduce_rows(_look, columns=columns))[0]
        return (index, row) if ray == index else (ray, data.take_rows([ray])[0, :])

    def _residual(self, row: Array) -> Array:
        return _residuals(row[None, :], self.rays, self.rays @ self.rays.T)[0, :] if self.anchors else row

    def _drawn(self, worst: Array) -> Array:
        assert self.draws is not None
        for _ in range(RANDOM_TRIES):
            drawn = self.data.take_rows([int(self.draws.integers(self.data.shape[0]))])[0, :]
            residual = self._residual(_wide(drawn))
            if _length(residual) > EXPLAINED * _length(worst):
                return residual
        return worst


def _begin(block: LocalMatrix) -> tuple[tuple[Array, ...], Array]:
    # Kept: squared norm, squared residual, products with the rays, weights.
    xp = block.xp
    squares = block.row_powers(2.0)
    nothing = xp.zeros((block.shape[0], 0), dtype=block.dtype, device=squares.device)
    return (squares[:, None], squares[:, None], nothing, nothing), squares


def _advance(
    block: LocalMatrix, original: Array, residual: Array, products: Array, weights: Array, *, rays: Array
) -> tuple[tuple[Array, ...], Array]:
    xp = block.xp
    new = block.times(xp.astype(rays[-1:, :], block.dtype).T)
    products = xp.concat([products, new], axis=1)
    gram = rays @ rays.T
    guess = xp.concat([weights, xp.astype(new > 0, weights.dtype)], axis=1)
    weights = nonnegative_least_squares(SharedGram(xp.astype(gram, block.dtype)), products, start=guess)
    wide = xp.astype(weights, xp.float64)
    squares = xp.sum((wide @ gram - 2.0 * xp.astype(products, xp.float64)) * wide, axis=1)
    squares = xp.clip(original[:, 0] + squares, min=0.0)

    def squares_of(rows: Array) -> Array:
        rows = _residuals(rows, rays, gram)
        return xp.sum(rows * rows, axis=1)

    squares = accurate_squares(block, squares, original[:, 0], 0.0, squares_of)
    return (original, squares[:, None], products, weights), squares


def _look(block: LocalMatrix, *, columns: Array) -> list[Candidate]:
    # The sample with the largest product with a direction, relative to its height.
    xp = block.xp
    along = xp.astype(block.times(xp.astype(columns, block.dtype)), xp.float64)
    heights = along[:, 1]
    safe = xp.where(heights > 0, heights, xp.ones_like(heights))
    ratios = xp.where(heights > 0, along[:, 0] / safe, xp.full_like(heights, -float("inf")))
    return block_candidates(block, ratios, rows=False)


def _residuals(rows: Array, rays: Array, gram: Array) -> Array:
    return rows - nonnegative_least_squares(SharedGram(gram), rows @ rays.T) @ rays


def _wide(row: Array) -> Array:
    xp = array_namespace(row)
    return xp.astype(row, xp.float64)


def _length(vector: Array) -> float:
    return float(array_namespace(vector).linalg.vector_norm(vector))
