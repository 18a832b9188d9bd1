"""What a run may be told, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._arguments import checked_count, checked_size
from nonneg.exceptions import UnknownNameError, UnsupportedError
from nonneg.transforms.rotations.line_search import SEARCHES
from nonneg.transforms.rotations.retractions import CURVES

METHODS = ("tl", "jd")
OBJECTIVES = ("C", "I")


@dataclass(frozen=True)
class TransformOptions:
    """How an iteration is made.

    Attributes
    ----------
    eps0 : float
        Added to variances and model: part of what is minimised.
    n_nmf_updates, n_rotation_updates : int
        Updates of the factors and of the transform in an iteration (the paper's J_NMF and J_TL).
    objective : {"C", "I"}
        What TL-NMF minimises: C = L + I, or I alone as the original TL-NMF did.
    l1 : float
        Weight of the l1 norm of the activations, with components of l1 norm one.
    search : {"wolfe", "halving"}
        The line search.
    retraction : {"exponential", "polar"}
        How a skew direction becomes a rotation.
    max_trials : int
        Steps that a search may try.
    reads : bool
        Whether values may be read within an iteration. Otherwise every iteration makes the same operations,
        and a device need not wait.
    """

    eps0: float = 5e-7
    n_nmf_updates: int = 10
    n_rotation_updates: int = 1
    objective: str = "C"
    l1: float = 0.0
    search: str = "wolfe"
    retraction: str = "exponential"
    max_trials: int = 20
    reads: bool = True

    def __post_init__(self) -> None:
        checked_size("eps0", self.eps0)
        checked_size("l1", self.l1)
        for name, least in (("n_nmf_updates", 0), ("n_rotation_updates", 0), ("max_trials", 1)):
            checked_count(name, getattr(self, name), least)
        for name, known in (("objective", OBJECTIVES), ("search", SEARCHES), ("retraction", CURVES)):
            if getattr(self, name) not in known:
                raise UnknownNameError.of(name, getattr(self, name), known)
        if self.l1 and self.objective != "I":
            raise UnsupportedError(
                "A penalty on the activations belongs to objective='I' (the original TL-NMF): C is a "
                "likelihood. "
                "Pass objective='I' or l1=0."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the options as plain values.

        Returns
        -------
        dict
            By name, without those that do not change the result.
        """
        values = dict(self.__dict__)
        values.pop("reads")
        return values


def method_options(method: str, **given: Any) -> TransformOptions:
    """Return the options of a method, with the paper's search and retraction where none is given."""
    if method not in METHODS:
        raise UnknownNameError.of("method", method, METHODS)
    own: dict[str, Any] = {"search": "wolfe", "retraction": "exponential", "max_trials": 20}
    if method == "jd":
        own = {"search": "halving", "retraction": "polar", "max_trials": 30}
    return TransformOptions(**(own | {name: value for name, value in given.items() if value is not None}))
