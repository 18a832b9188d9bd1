"""Facets of a simplex where pixels thin out: the edge of a crowd that noise has blurred."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from nonneg._typing import FloatArray

# Pixels within this number of standard deviations of the noise say where a facet is; it moves by at most
# MAX_SHIFT of them, and by at most a quarter of the way to the opposite vertex.
WINDOW, OUTER, MAX_SHIFT, MAX_SHARE = 4.0, 6.0, 3.0, 0.25
# A simplex less thick than this is too blurred, and fewer pixels say nothing.
MIN_THICKNESS, MIN_PIXELS, MAX_PIXELS = 4.0, 20, 4000
N_PLACES, N_EM_STEPS, N_ROUNDS = 41, 6, 2


def facets_at_edges(points: FloatArray, vertices: FloatArray, normal: FloatArray, noise: float) -> FloatArray:
    """Move every facet to the edge of the pixels; the products with `normal` are the brightness."""
    usual = float(np.median(points @ normal))
    for _ in range(N_ROUNDS):
        # Products with the columns are abundances times brightness: zero on a facet, below zero beyond it.
        duals = np.linalg.inv(vertices)
        moved = duals.copy()
        for at in range(len(vertices)):
            unit = float(np.linalg.norm(duals[:, at])) * noise
            shift = edge_of(-(points @ duals[:, at]) / unit, usual / unit)
            moved[:, at] += shift * unit / usual * normal
        found = np.linalg.inv(moved)
        light = found @ normal
        if not (light > 0).all():
            break
        vertices = found / light[:, None]
    return vertices


def edge_of(outward: FloatArray, thickness: float) -> float:
    """Return how far outward the edge lies, by maximum likelihood."""
    # Two crowds end at the edge, each blurred by noise of variance one: pixels without the material, which
    # lie on the facet, and pixels with a little of it, spread evenly inside.
    if thickness < MIN_THICKNESS:
        return 0.0
    lowest = -min(WINDOW, 0.5 * thickness)
    near = outward[(outward > lowest) & (outward < OUTER)]
    if len(near) < MIN_PIXELS:
        return 0.0
    near = near[:: len(near) // MAX_PIXELS + 1]
    most = min(MAX_SHIFT, MAX_SHARE * thickness)
    best, place = -math.inf, 0.0
    for shift in np.linspace(max(-most, lowest + 1.0), most, N_PLACES):
        gaps, depth = near - shift, float(shift) - lowest
        on = _density(gaps) / float(ndtr(depth))
        inside = ndtr(-gaps) / (depth * float(ndtr(depth)) + float(_density(np.array(depth))))
        share = 0.5
        for _ in range(N_EM_STEPS):
            mixed = share * on + (1.0 - share) * inside
            share = float(np.mean(share * on / (mixed + 1e-300)))
        likelihood = float(np.mean(np.log(share * on + (1.0 - share) * inside + 1e-300)))
        if likelihood > best:
            best, place = likelihood, float(shift)
    return place


def _density(values: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * values * values) / math.sqrt(2.0 * math.pi))
