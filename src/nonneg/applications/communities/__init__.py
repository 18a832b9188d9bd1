"""Overlapping communities of graphs."""

from __future__ import annotations

from nonneg.applications.communities.eigenvectors import Eigenpairs, leading_eigenvectors
from nonneg.applications.communities.graph import Graph, as_graph
from nonneg.applications.communities.methods import METHODS
from nonneg.applications.communities.mixed_membership import MixedMembership

__all__ = ["METHODS", "Eigenpairs", "Graph", "MixedMembership", "as_graph", "leading_eigenvectors"]
