"""Overlapping communities of graphs."""

from __future__ import annotations

from nonneg.applications.communities.eigenvectors import Eigenpairs, leading_eigenvectors
from nonneg.applications.communities.graph import Graph, as_graph
from nonneg.applications.communities.methods import METHODS
from nonneg.applications.communities.mixed_membership import LabelComparison, MixedMembership
from nonneg.applications.communities.number import CommunityCount

__all__ = [
    "METHODS",
    "CommunityCount",
    "Eigenpairs",
    "Graph",
    "LabelComparison",
    "MixedMembership",
    "as_graph",
    "leading_eigenvectors",
]
