"""Data sets: real ones, found in a folder or downloaded once, and generated ones.

`nonneg.datasets.store` documents where they are searched for, where they come from, and offline use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg.datasets.cells import CellData as CellData
from nonneg.datasets.cells import single_cells as single_cells
from nonneg.datasets.communities import CommunityGraph as CommunityGraph
from nonneg.datasets.communities import mixed_membership_graph as mixed_membership_graph
from nonneg.datasets.cones import circular_cones as circular_cones
from nonneg.datasets.dataset import Dataset as Dataset
from nonneg.datasets.dataset import PlantedData as PlantedData
from nonneg.datasets.dataset import Recording as Recording
from nonneg.datasets.music_notes import MusicNotesData as MusicNotesData
from nonneg.datasets.music_notes import music_notes as music_notes
from nonneg.datasets.purification import purification_data as purification_data
from nonneg.datasets.real import load_armstrong as load_armstrong
from nonneg.datasets.real import load_bbc as load_bbc
from nonneg.datasets.real import load_brca_sbs96 as load_brca_sbs96
from nonneg.datasets.real import load_les_miserables as load_les_miserables
from nonneg.datasets.real import load_samson as load_samson
from nonneg.datasets.scene import scene_like as scene_like
from nonneg.datasets.separable import SeparableData as SeparableData
from nonneg.datasets.separable import separable_dirichlet as separable_dirichlet
from nonneg.datasets.standard_library import load_standard_library as load_standard_library
from nonneg.datasets.store import DatasetNotFoundError as DatasetNotFoundError

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__ = [*sorted(name for name, value in globals().items() if callable(value))]  # noqa: PLE0604
