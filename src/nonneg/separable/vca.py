"""Vertex component analysis (VCA): extreme samples along random directions orthogonal to the anchors."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.separable.greedy import GreedyRule, select_greedily
from nonneg.separable.preprocessing import mean_row, principal_directions, projected, squared_norms
from nonneg.separable.result import SelectionResult

# Samples count as centered if their mean is below this fraction of their norm: rounding in single precision.
CENTERED = 1e-5


def vca(
    data: DataMatrix, n_components: int, *, snr: float | None = None, rng: Seed = None
) -> SelectionResult:
    """Select extreme samples along random directions orthogonal to the anchors so far."""
    # One pass over the reduced samples per anchor.
    # Nascimento & Dias (2005), IEEE Trans. Geosci. Remote Sens. 43(4), Algorithm 1.
    k = n_components
    draws = generator(rng)
    estimate = _signal_to_noise(data, k) if snr is None else float(snr)
    points = None
    if estimate > 15.0 + 10.0 * math.log10(k):
        directions, _ = principal_directions(data, min(k, *data.shape), centered=False)
        flat = projected(data, directions)
        mean = mean_row(flat)
        # Else the direction of the mean is rounding error.
        if float(np.linalg.norm(mean)) > CENTERED * math.sqrt(flat.squared_norm() / flat.shape[0]):
            scaled = flat.map_rows(_scaled_to_plane, mean=flat.to_device(mean[:, None]))
            points = as_data_matrix(scaled)
    plane = points is not None
    if points is None:
        directions, mean = principal_directions(data, max(1, min(k - 1, *data.shape)), centered=True)
        points = projected(data, directions, offset=mean)
        longest = math.sqrt(float(squared_norms(points).max()))
        points = as_data_matrix(points.map_rows(_widened, constant=longest))
    anchors: list[Any] = []

    def direction() -> Any:
        drawn = draws.standard_normal(points.shape[1])
        if anchors:
            basis = np.linalg.qr(np.asarray(anchors).T)[0]
            for _ in range(2):
                drawn = drawn - basis @ (basis.T @ drawn)
        else:
            # The method starts with the last unit vector in place of an anchor.
            drawn[-1] = 0.0 if len(drawn) > 1 else drawn[-1]
        return drawn / np.linalg.norm(drawn)

    def shared(row: Array, n_picks: int) -> dict[str, Any]:
        anchors.append(to_float64(row))
        last = n_picks >= min(points.shape[1], k)
        return {"along": np.zeros(points.shape[1]) if last else direction()}

    rule = GreedyRule(begin=partial(_along, along=direction()), advance=_along, shared=shared, n_kept=0)
    details = {"snr": estimate, "projection": "plane" if plane else "principal components"}
    return select_greedily(points, k, rule, method="vca", squared=False, details=details, finish=False)


def _along(block: LocalMatrix, *, along: Any) -> tuple[tuple[()], Array]:
    xp = block.xp
    return (), xp.abs(xp.astype(block.times(block.to_device(along[:, None])), xp.float64)[:, 0])


def _signal_to_noise(data: DataMatrix, k: int) -> float:
    # Energy within k principal components, the mean included, against the rest (section III of the paper).
    n, m = data.shape
    directions, mean = principal_directions(data, min(k, n, m), centered=True)
    inside = projected(data, directions, offset=mean).squared_norm() / n + float(mean @ mean)
    whole = data.squared_norm() / n
    if whole - inside <= 1e-12 * whole:
        return math.inf
    ratio = (inside - k / m * whole) / (whole - inside)
    return 10.0 * math.log10(ratio) if ratio > 0 else -math.inf


def _scaled_to_plane(block: LocalMatrix, *, mean: Array) -> Array:
    # Zero samples stay; those whose height is rounding error have no image in the plane.
    heights = block.times(mean)
    xp = array_namespace(heights)
    rows = block.dense_rows(0, block.shape[0])
    lengths = xp.linalg.vector_norm(rows, axis=1, keepdims=True) * xp.linalg.vector_norm(mean)
    finite = xp.abs(heights) > 64.0 * xp.finfo(heights.dtype).eps * lengths
    return xp.where(finite, rows / xp.where(finite, heights, xp.ones_like(heights)), rows * 0.0)


def _widened(block: LocalMatrix, *, constant: float) -> Array:
    rows = block.dense_rows(0, block.shape[0])
    return block.xp.concat([rows, block.xp.full_like(rows[:, :1], constant)], axis=1)
