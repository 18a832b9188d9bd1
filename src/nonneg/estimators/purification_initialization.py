"""The initial features of PurificationNMF and their number, composed of several families."""

from __future__ import annotations

from typing import Any

from nonneg._random import Seed
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.purification.initialization import initial_features
from nonneg.rank_selection import estimate_rank
from nonneg.separable import select_anchors


def purification_init(data: DataMatrix, n_components: int | str, init: Any, rng: Seed) -> FloatArray:
    """Return as many initial features as asked for; "auto" takes those given, or the estimated rank."""
    if n_components != "auto":
        n = int(n_components)
    else:
        n = int(estimate_rank(data).rank) if isinstance(init, str) else len(init)
    return initial_features(data, n, init, rng, _successive_projections)


def _successive_projections(points: FloatArray, n: int) -> IntArray:
    return select_anchors(points, n, method="spa").anchors
