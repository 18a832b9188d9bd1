"""Loaders of real data sets, one module per domain."""

from __future__ import annotations

from nonneg.datasets.real.biology import load_brca_sbs96, load_leukemia, load_pbmc3k
from nonneg.datasets.real.documents import (
    load_bbc,
    load_cluto,
    load_hitech,
    load_reuters21578,
    load_tdt2,
)
from nonneg.datasets.real.graphs import (
    load_dblp,
    load_facebook_ego,
    load_football,
    load_karate,
    load_mag,
)
from nonneg.datasets.real.hyperspectral import (
    load_indian_pines,
    load_moffett,
    load_pavia_u_classes,
    load_pavia_u_crop,
    load_samson,
)
from nonneg.datasets.real.images import (
    load_cbcl_faces,
    load_ck_plus,
    load_coil20,
    load_olivetti,
    load_orl,
    load_swimmer,
    load_yale_b,
)
from nonneg.datasets.real.networkx_graphs import load_les_miserables, load_southern_women
from nonneg.datasets.real.recordings import load_armstrong, load_nonstationary440

__all__ = [
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
    "load_southern_women",
    "load_swimmer",
    "load_tdt2",
    "load_yale_b",
]
