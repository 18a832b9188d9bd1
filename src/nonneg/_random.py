"""Seeds: whatever a user passes becomes one NumPy generator; its `spawn` gives repeats their own streams."""

from __future__ import annotations

import numbers
from typing import TypeAlias

import numpy as np

from nonneg.exceptions import InvalidParameterError

Seed: TypeAlias = (
    int | np.integer | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None
)
"""What is accepted as a source of random numbers."""


def generator(seed: Seed = None) -> np.random.Generator:
    """Return a generator of random numbers for any accepted kind of seed."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.RandomState):
        words = seed.randint(0, 2**32, size=4, dtype=np.uint32)
        return np.random.default_rng([int(word) for word in words])
    if seed is None or isinstance(seed, np.random.SeedSequence):
        return np.random.default_rng(seed)
    if isinstance(seed, numbers.Integral) and not isinstance(seed, (bool, np.bool_)) and int(seed) >= 0:
        return np.random.default_rng(int(seed))
    raise InvalidParameterError(
        "A seed must be None, a nonnegative integer, a numpy.random.Generator, RandomState or SeedSequence. "
        f"Got {seed!r}."
    )
