"""Registry of initializations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from nonneg._registry import Entry, Registry
from nonneg._typing import Array, SampleArray
from nonneg.initializers.nndsvd import nndsvd_init


@dataclass(frozen=True)
class Initializer(Entry):
    """An initialization: ``function(data, k, *, rng)`` returns W and H', with k columns each."""

    seeded: bool = True  # whether `rng` matters
    takes_factors: bool = False  # whether it takes the keywords `W` and `H`

    def __call__(self, data: Any, k: int, **options: Any) -> tuple[SampleArray, Array]:
        """Return W and H'."""
        factors: tuple[SampleArray, Array] = self.run(data, k, **options)
        return factors


_ENTRIES = {
    "random": Initializer("nonneg.initializers.random:random_init", "half-normal entries on the scale of X"),
    "nndsvd": Initializer(
        partial(nndsvd_init, name="nndsvd"), "nonnegative double SVD, with zeros", seeded=False
    ),
    "nndsvd-scaled": Initializer(
        partial(nndsvd_init, name="nndsvd-scaled"),
        "nonnegative double SVD, zeros filled with a small number in the unit of the factors",
        seeded=False,
    ),
    "nndsvda": Initializer(
        partial(nndsvd_init, name="nndsvda"),
        "nonnegative double SVD, zeros filled with the mean of X: scikit-learn's, depends on the unit of X",
        seeded=False,
    ),
    "nndsvdar": Initializer(
        partial(nndsvd_init, name="nndsvdar"),
        "nonnegative double SVD, zeros filled with random numbers of up to a few percent of the mean of X: "
        "scikit-learn's, depends on the unit of X",
    ),
    "cr1": Initializer(
        "nonneg.cones.initialization:cr1_init",
        "clusters of the samples and their rank-one factorizations (Liu & Tan), deterministic",
        seeded=False,
    ),
    "custom": Initializer(
        "nonneg.initializers.custom:custom_init",
        "the given W and H; a missing one is fitted to the other",
        seeded=False,
        takes_factors=True,
    ),
}
INITS = Registry("init", _ENTRIES)


def default_init(shape: tuple[int, int], k: int) -> str:
    """Return the name that ``init=None`` stands for."""
    # As in scikit-learn, but for the unit of what replaces zeros.
    return "nndsvd-scaled" if k <= min(shape) else "random"
