"""Starts of a factorization: functions from the data to a first pair of factors, and their registry."""

from __future__ import annotations

from nonneg.initializers.given import given_init
from nonneg.initializers.nndsvd import nndsvd_init
from nonneg.initializers.random import random_init
from nonneg.initializers.registry import INITS, Initializer, default_init, find_initializer, register
from nonneg.initializers.spherical_kmeans import spherical_kmeans_init

__all__ = [
    "INITS",
    "Initializer",
    "default_init",
    "find_initializer",
    "given_init",
    "nndsvd_init",
    "random_init",
    "register",
    "spherical_kmeans_init",
]
