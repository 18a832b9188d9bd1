"""Seeds: whatever a user passes becomes one NumPy generator; its `spawn` gives repeats their own streams."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from nonneg._arguments import is_count
from nonneg.exceptions import InvalidParameterError

Seed: TypeAlias = (
    int | np.integer | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None
)
"""Accepted sources of random numbers."""


def generator(seed: Seed = None) -> np.random.Generator:
    """Return a generator of random numbers for any accepted kind of seed."""
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(0, 2**32, size=4, dtype=np.uint32).tolist())
    if seed is None or isinstance(seed, np.random.Generator | np.random.SeedSequence) or is_count(seed, 0):
        return np.random.default_rng(seed)  # a generator is returned as it is
    raise InvalidParameterError(
        "A seed must be None, a nonnegative integer, a numpy.random.Generator, RandomState or SeedSequence. "
        f"Got {seed!r}."
    )
