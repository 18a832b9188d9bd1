"""Starts of a factorization: functions from the data to a first pair of factors, and their registry."""

from __future__ import annotations

from nonneg.initializers.given import given_start
from nonneg.initializers.nndsvd import nndsvd_start
from nonneg.initializers.random import random_start
from nonneg.initializers.registry import STARTS, Start, default_start, find_start, register
from nonneg.initializers.spherical_kmeans import spherical_kmeans_start

__all__ = [
    "STARTS",
    "Start",
    "default_start",
    "find_start",
    "given_start",
    "nndsvd_start",
    "random_start",
    "register",
    "spherical_kmeans_start",
]
