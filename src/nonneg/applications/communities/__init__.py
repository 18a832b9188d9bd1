"""Overlapping communities of graphs."""

from __future__ import annotations

from nonneg.applications.communities.comparison import LabelComparison
from nonneg.applications.communities.eigenvectors import Eigenpairs, leading_eigenvectors
from nonneg.applications.communities.geonmf import GeoNMFOptions, GeoNMFResult, geonmf
from nonneg.applications.communities.graph import Graph, as_graph
from nonneg.applications.communities.methods import METHODS
from nonneg.applications.communities.mixed_membership import MixedMembership
from nonneg.applications.communities.number import CommunityCount
from nonneg.applications.communities.spoc import spoc

__all__ = [
    "METHODS",
    "CommunityCount",
    "Eigenpairs",
    "GeoNMFOptions",
    "GeoNMFResult",
    "Graph",
    "LabelComparison",
    "MixedMembership",
    "as_graph",
    "geonmf",
    "leading_eigenvectors",
    "spoc",
]
