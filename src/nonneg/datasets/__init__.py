"""Data to try the methods on: real sets from a local store, and generated ones.

Nothing here downloads anything; `nonneg.datasets.store` says what to put where.
"""

from __future__ import annotations

from nonneg.datasets.real import load_indian_pines, load_olivetti, load_tdt2
from nonneg.datasets.store import Dataset, DatasetNotFoundError
from nonneg.datasets.synthetic import (
    PlantedData,
    circular_cones,
    equiangular_directions,
    faces_like,
    low_rank_plus_noise,
    scene_like,
    text_like,
)
from nonneg.datasets.weighting import tfidf

__all__ = [
    "Dataset",
    "DatasetNotFoundError",
    "PlantedData",
    "circular_cones",
    "equiangular_directions",
    "faces_like",
    "load_indian_pines",
    "load_olivetti",
    "load_tdt2",
    "low_rank_plus_noise",
    "scene_like",
    "text_like",
    "tfidf",
]
