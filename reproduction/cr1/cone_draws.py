"""Draws of the paper's synthetic data.

Smaller samples are the first points of a draw: they are a draw themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.datasets import circular_cones

SIZES = (100, 215, 464, 1000, 2154, 4642, 10_000)
"""Numbers of points, evenly spaced on a logarithmic scale from 1e2 to 1e4."""
FULL = {"n_drawn": 10_000, "n_features": 1600, "n_cones": 40}
"""The paper's numbers of points, dimensions and cones."""
QUICK = {"n_drawn": 960, "n_features": 300, "n_cones": 6}
"""Those of the quick setting."""


def draw_cones(setting: Mapping[str, Any]) -> tuple[FloatArray, IntArray, np.random.Generator]:
    """Draw data, and a generator for whatever else the trial draws."""
    # Whole thousandths of the angle: a seed is an integer.
    seeds = np.random.SeedSequence([round(1000 * setting["alpha"]), setting["draw"]]).spawn(2)
    planted = circular_cones(
        setting["n_drawn"],
        setting["n_features"],
        setting["n_cones"],
        size_angle=setting["alpha"],
        rng=np.random.default_rng(seeds[0]),
    )
    return planted.X, np.asarray(planted.labels), np.random.default_rng(seeds[1])


def n_mixed_clusters(found: IntArray, cones: IntArray) -> int:
    """Count the found clusters that hold points of more than one cone."""
    pairs = np.unique(np.stack([found, cones]), axis=1)
    clusters, counts = np.unique(pairs[0], return_counts=True)
    return int(np.sum(counts[clusters >= 0] > 1))
