"""Translated and lifted successive projections: the place of the origin no longer hides vertices.

Barbarino & Gillis (2024), "On the robustness of the successive projection algorithm", arXiv:2411.16195.
Both are for mixtures whose weights sum to one, of which a translation is of the same kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.greedy import GreedyRule
from nonneg.separable.fast_anchor import fast_anchor
from nonneg.separable.greedy import GrowingBasis, accurate_squares, relative_floor, select_greedily
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL, squared_row_norms, squares_outside


def translated_spa(data: DataMatrix, n_components: int, *, tie_tol: float = TIE_TOL) -> SelectionResult:
    """Select the largest sample, make it the origin, and continue with successive projections (T-SPA)."""
    # FastAnchor (Arora et al. 2013) without its clean-up pass; the name and the bounds are those of
    # Barbarino & Gillis. One pass over the data per anchor.
    found = fast_anchor(data, n_components, tie_tol=tie_tol, clean_up=False)
    return replace(found, method="translated-spa")


def lifted_spa(data: DataMatrix, n_components: int, *, tie_tol: float = TIE_TOL) -> SelectionResult:
    """Translate the samples by the mean of first vertices, append a constant, and run `spa` (TL-SPA)."""
    # The first vertices are those of `translated_spa`. Two passes over the data per anchor. The lifted
    # samples are never formed.
    first = translated_spa(data, n_components, tie_tol=tie_tol)
    if first.n_components < n_components or n_components == 1:
        return replace(first, method="lifted-spa")
    origin, height = best_lift(to_float64(data.take_rows(first.anchors)))
    found = lifted_projections(data, n_components, origin, height, tie_tol=tie_tol)
    return replace(
        found,
        method="lifted-spa",
        n_passes=(first.n_passes or 0) + (found.n_passes or 0),
        facts={"height": height},
    )


def best_lift(vertices: Any) -> tuple[Any, float]:
    """Return the translation and the constant that condition some vertices best."""
    # Around their mean, the K vertices have K - 1 singular values that are not zero; the constant c adds
    # sqrt(K) c. The smallest c that does not lower the smallest one leaves the largest norm smallest.
    origin = vertices.mean(axis=0)
    values = np.linalg.svd(vertices - origin, compute_uv=False)
    return origin, float(values[len(vertices) - 2]) / float(np.sqrt(len(vertices)))


def lifted_projections(
    data: DataMatrix, n_components: int, origin: Any, height: float, *, tie_tol: float = TIE_TOL
) -> SelectionResult:
    """Run successive projections on the samples (x - origin, height)."""
    basis = GrowingBasis()
    shared = {"origin": data.to_device(origin), "height": height, "tie_tol": tie_tol}

    def facts(row: Array, n_picks: int) -> dict[str, Any]:
        xp = data.xp
        center = xp.astype(shared["origin"], xp.float64)
        lifted = xp.concat([xp.astype(row, xp.float64) - center, center[:1] * 0.0 + height], axis=0)
        return {**shared, "direction": basis.extended(xp, lifted), "basis": basis.matrix}

    rule = GreedyRule(
        begin=_lifted_norms,
        advance=_projected,
        facts=facts,
        n_kept=2,
        tie_break=(1, tie_tol),
        first_facts=shared,
    )
    return select_greedily(data, n_components, rule, method="spa", relative_floor=relative_floor(data))


def _lifted_norms(
    block: LocalMatrix, *, origin: Array, height: float, tie_tol: float
) -> tuple[tuple[Array, Array], Array]:
    xp = block.xp
    center = xp.astype(origin, xp.float64)
    along = xp.astype(block.times(origin[:, None]), xp.float64)[:, 0]
    scale = squared_row_norms(block) + xp.sum(center * center) + height**2
    left = xp.clip(scale - 2.0 * along, min=0.0)

    def squares_of(rows: Array, places: Array) -> Array:
        rows = rows - center
        return xp.sum(rows * rows, axis=1) + height**2

    left = accurate_squares(block, left, scale, tie_tol, squares_of)
    return (left[:, None], scale[:, None]), left


def _projected(
    block: LocalMatrix,
    residual: Array,
    original: Array,
    *,
    origin: Array,
    height: float,
    direction: Array | None,
    basis: Array,
    tie_tol: float,
) -> tuple[tuple[Array, Array], Array]:
    xp = block.xp
    center = xp.astype(origin, xp.float64)
    left = residual[:, 0]
    if direction is not None:
        inner = direction[:-1, :]
        along = xp.astype(block.times(xp.astype(inner, block.dtype)), xp.float64)[:, 0]
        along = along - xp.sum(center * inner[:, 0]) + height * direction[-1, 0]
        left = xp.clip(left - along * along, min=0.0)

    def squares_of(rows: Array, places: Array) -> Array:
        lifted = xp.concat([rows - center, rows[:, :1] * 0.0 + height], axis=1)
        return squares_outside(lifted, basis)

    left = accurate_squares(block, left, original[:, 0], tie_tol, squares_of)
    return (left[:, None], original), left
