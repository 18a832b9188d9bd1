"""Data of the experiments: the sets of `nonneg.datasets`, and those that only experiments use."""

from __future__ import annotations

from nonneg.datasets import (
    circular_cones,
    load_armstrong,
    load_brca_sbs96,
    load_les_miserables,
    load_samson,
    load_standard_library,
    mixed_membership_graph,
    music_notes,
    purification_data,
    scene_like,
    separable_dirichlet,
    single_cells,
)
from nonneg.datasets.cones import equiangular_directions
from reproduction.data.biology import load_leukemia, load_pbmc3k
from reproduction.data.documents import (
    load_bbc,
    load_cluto,
    load_hitech,
    load_reuters21578,
    load_tdt2,
)
from reproduction.data.faces import faces_like
from reproduction.data.gaussian_composite import (
    GaussianCompositeData,
    GaussianCompositeModel,
    gaussian_composite,
    gaussian_composite_model,
)
from reproduction.data.graphs import (
    load_dblp,
    load_facebook_ego,
    load_football,
    load_karate,
    load_mag,
)
from reproduction.data.hyperspectral import (
    load_indian_pines,
    load_moffett,
    load_pavia_u_classes,
    load_pavia_u_crop,
)
from reproduction.data.images import (
    load_cbcl_faces,
    load_ck_plus,
    load_coil20,
    load_olivetti,
    load_orl,
    load_swimmer,
    load_yale_b,
)
from reproduction.data.instruments import instrument_sound
from reproduction.data.low_rank import low_rank_plus_noise
from reproduction.data.middle_points import middle_points
from reproduction.data.purification import PurificationModel, purification_model
from reproduction.data.recordings import load_nonstationary440
from reproduction.data.text import text_like
from reproduction.data.weighting import tfidf

__all__ = [
    "GaussianCompositeData",
    "GaussianCompositeModel",
    "PurificationModel",
    "circular_cones",
    "equiangular_directions",
    "faces_like",
    "gaussian_composite",
    "gaussian_composite_model",
    "instrument_sound",
    "load_armstrong",
    "load_bbc",
    "load_brca_sbs96",
    "load_cbcl_faces",
    "load_ck_plus",
    "load_cluto",
    "load_coil20",
    "load_dblp",
    "load_facebook_ego",
    "load_football",
    "load_hitech",
    "load_indian_pines",
    "load_karate",
    "load_les_miserables",
    "load_leukemia",
    "load_mag",
    "load_moffett",
    "load_nonstationary440",
    "load_olivetti",
    "load_orl",
    "load_pavia_u_classes",
    "load_pavia_u_crop",
    "load_pbmc3k",
    "load_reuters21578",
    "load_samson",
    "load_standard_library",
    "load_swimmer",
    "load_tdt2",
    "load_yale_b",
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
    "tfidf",
]
