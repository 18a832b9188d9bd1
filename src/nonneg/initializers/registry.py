"""The starts by name, with what each can do; more are registered by `register`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from nonneg._typing import Array, SampleArray
from nonneg.exceptions import UnknownNameError
from nonneg.initializers.given import given_init
from nonneg.initializers.nndsvd import nndsvd_init
from nonneg.initializers.random import random_init
from nonneg.initializers.spherical_kmeans import spherical_kmeans_init


@dataclass(frozen=True)
class Initializer:
    """A start and what it can do.

    Attributes
    ----------
    function : callable
        ``function(data, k, *, rng)`` returns W (left-like, n_rows by k) and B = H' (n_columns by k), both
        nonnegative.
    description : str
        One line for the documentation.
    positive : bool
        Whether no entry is zero, as multiplicative updates need, but for rows and columns of zeros.
    seeded : bool
        Whether `rng` matters.
    at_most_smaller_side : bool
        Whether k may not exceed the smaller side of X.
    takes_factors : bool
        Whether it takes the keywords `W` and `H`.
    weights : bool
        Whether integer row weights give what repeated rows give.
    aliases : tuple of str
        Other names.
    """

    function: Callable[..., tuple[SampleArray, Array]]
    description: str
    positive: bool = True
    seeded: bool = True
    at_most_smaller_side: bool = False
    takes_factors: bool = False
    weights: bool = True
    aliases: tuple[str, ...] = ()

    def __call__(self, data: Any, k: int, **options: Any) -> tuple[SampleArray, Array]:
        """Run the start."""
        return self.function(data, k, **options)


def _cone(data: Any, k: int, **options: Any) -> tuple[SampleArray, Array]:
    from nonneg.cones.initialization import cone_init  # with kernels that other starts do not need

    return cone_init(data, k, **options)


def _nndsvd(name: str, fill: str) -> Callable[..., tuple[SampleArray, Array]]:
    return partial(nndsvd_init, fill=fill, name=name)


INITS: dict[str, Initializer] = {
    "random": Initializer(random_init, "half-normal entries of the data's scale"),
    "nndsvd": Initializer(
        _nndsvd("nndsvd", "zero"),
        "halves of the singular vectors, with zeros",
        positive=False,
        seeded=False,
        at_most_smaller_side=True,
    ),
    "nndsvda": Initializer(
        _nndsvd("nndsvda", "mean"),
        "halves of the singular vectors, zeros filled with the mean",
        seeded=False,
        at_most_smaller_side=True,
    ),
    "nndsvdar": Initializer(
        _nndsvd("nndsvdar", "random"),
        "halves of the singular vectors, zeros filled with small random numbers",
        at_most_smaller_side=True,
    ),
    "spherical-kmeans": Initializer(
        spherical_kmeans_init,
        "centres of clusters of the rows' directions",
        aliases=("kmeans", "k-means", "spherical_kmeans"),
    ),
    "cone": Initializer(
        _cone,
        "leading directions of clusters of the rows (clustering and rank-one NMF), moved apart",
        seeded=False,
        aliases=("cr1",),
    ),
    "custom": Initializer(
        given_init,
        "the W and H that are given; a missing one is made to fit",
        positive=False,
        seeded=False,
        takes_factors=True,
        aliases=("given",),
    ),
}


def register(name: str, start: Initializer) -> None:
    """Add a start to the registry."""
    INITS[name] = start


def find_initializer(name: str) -> Initializer:
    """Return the start of a name or alias."""
    if isinstance(name, str):
        if name in INITS:
            return INITS[name]
        for start in INITS.values():
            if name in start.aliases:
                return start
    raise UnknownNameError.of("init", name, INITS)


def default_init(shape: tuple[int, int], k: int) -> str:
    """Return the name that ``init=None`` stands for: scikit-learn's rule."""
    return "nndsvda" if k <= min(shape) else "random"
