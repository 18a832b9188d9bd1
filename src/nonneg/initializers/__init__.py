"""Initializations of a factorization: functions from the data to a first W and H, and their registry."""

from __future__ import annotations

from nonneg.initializers.given import given_init
from nonneg.initializers.nndsvd import nndsvd_init
from nonneg.initializers.random import random_init
from nonneg.initializers.registry import INITS, Initializer, default_init
from nonneg.initializers.spherical_kmeans import spherical_kmeans_init

__all__ = [
    "INITS",
    "Initializer",
    "default_init",
    "given_init",
    "nndsvd_init",
    "random_init",
    "spherical_kmeans_init",
]
