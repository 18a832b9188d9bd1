"""Generators of synthetic data, which all take `rng` and draw without a loop over samples."""

from __future__ import annotations

from nonneg.datasets.synthetic.cells import CellData, single_cells
from nonneg.datasets.synthetic.communities import CommunityGraph, mixed_membership_graph
from nonneg.datasets.synthetic.cones import circular_cones, equiangular_directions
from nonneg.datasets.synthetic.faces import faces_like
from nonneg.datasets.synthetic.gaussian_composite import (
    GaussianCompositeData,
    GaussianCompositeModel,
    gaussian_composite,
    gaussian_composite_model,
)
from nonneg.datasets.synthetic.instruments import instrument_sound
from nonneg.datasets.synthetic.low_rank import low_rank_plus_noise
from nonneg.datasets.synthetic.music_notes import MusicNotesData, music_notes
from nonneg.datasets.synthetic.planted import PlantedData
from nonneg.datasets.synthetic.purification import (
    PurificationData,
    PurificationModel,
    purification_data,
    purification_model,
)
from nonneg.datasets.synthetic.scene import scene_like
from nonneg.datasets.synthetic.separable import SeparableData, middle_points, separable_dirichlet
from nonneg.datasets.synthetic.text import text_like

__all__ = [
    "CellData",
    "CommunityGraph",
    "GaussianCompositeData",
    "GaussianCompositeModel",
    "MusicNotesData",
    "PlantedData",
    "PurificationData",
    "PurificationModel",
    "SeparableData",
    "circular_cones",
    "equiangular_directions",
    "faces_like",
    "gaussian_composite",
    "gaussian_composite_model",
    "instrument_sound",
    "low_rank_plus_noise",
    "middle_points",
    "mixed_membership_graph",
    "music_notes",
    "purification_data",
    "purification_model",
    "scene_like",
    "separable_dirichlet",
    "single_cells",
    "text_like",
]
