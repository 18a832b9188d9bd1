"""Data sets: real ones, found in a folder or downloaded once, and generated ones.

`nonneg.datasets.store` documents where they are searched for, where they come from, and offline use.
"""

from __future__ import annotations

from nonneg.datasets.cells import CellData, single_cells
from nonneg.datasets.communities import CommunityGraph, mixed_membership_graph
from nonneg.datasets.cones import circular_cones
from nonneg.datasets.dataset import Dataset, PlantedData, Recording
from nonneg.datasets.music_notes import MusicNotesData, music_notes
from nonneg.datasets.purification import purification_data
from nonneg.datasets.real import (
    load_armstrong,
    load_bbc,
    load_brca_sbs96,
    load_les_miserables,
    load_samson,
)
from nonneg.datasets.scene import scene_like
from nonneg.datasets.separable import SeparableData, separable_dirichlet
from nonneg.datasets.standard_library import load_standard_library
from nonneg.datasets.store import DatasetNotFoundError

__all__ = [
    "CellData",
    "CommunityGraph",
    "Dataset",
    "DatasetNotFoundError",
    "MusicNotesData",
    "PlantedData",
    "Recording",
    "SeparableData",
    "circular_cones",
    "load_armstrong",
    "load_bbc",
    "load_brca_sbs96",
    "load_les_miserables",
    "load_samson",
    "load_standard_library",
    "mixed_membership_graph",
    "music_notes",
    "purification_data",
    "scene_like",
    "separable_dirichlet",
    "single_cells",
]
