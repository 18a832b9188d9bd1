"""The initial features of PurificationNMF and their number, composed of several families."""

from __future__ import annotations

from typing import Any

from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.estimators.preparation import estimated_rank
from nonneg.purification.initialization import initial_features
from nonneg.separable import select_anchors


def purification_init(model: Any, data: DataMatrix) -> FloatArray:
    """Return as many initial features as asked for; "auto" takes those given, or the estimated rank."""
    vars(model).pop("rank_estimate_", None)
    if model.n_components != "auto":
        n = int(model.n_components)
    else:
        n = estimated_rank(model, data) if isinstance(model.init, str) else len(model.init)
    return initial_features(data, n, model.init, model.random_state, _successive_projections)


def _successive_projections(points: FloatArray, n: int) -> IntArray:
    return select_anchors(points, n, method="spa").anchors
