"""State of a batch of restarts; restarts are the first axis of every array."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from array_api_compat import array_namespace

from nonneg._lazy import cached_property
from nonneg._typing import Array
from nonneg.transforms.rotations.group import newton_schulz_step

State = TypeVar("State", bound=Any)

# Iterations between re-orthogonalizations: often enough that rounding errors do not pile up, seldom enough
# that its two products cost nothing.
REORTHOGONALIZATION_PERIOD = 25


@dataclass(frozen=True)
class TransformState:
    """A batch of transforms, with factors unless they are only joint diagonalizers."""

    transform: Array  # columns are orthonormal; rows are atoms, in the coordinates of the data
    frames: Array  # virtual realizations, transformed
    activations: Array | None  # the paper's H, transposed; None for a joint diagonalization
    components: Array | None  # the paper's W, transposed; rows have l1 norm one
    n_done: int = 0  # iterations done

    @property
    def batch(self) -> int:
        """The number of restarts."""
        return int(self.transform.shape[0])

    @cached_property
    def known(self) -> dict[Any, Any]:
        """Intermediate results of the iteration that ended here, for the next one; a copy begins empty."""
        return {}


@dataclass(frozen=True)
class FactorState:
    """A batch of factorizations of variances."""

    activations: Array  # the paper's H, transposed
    components: Array  # the paper's W, transposed; rows have l1 norm one
    n_done: int = 0  # iterations done

    @property
    def batch(self) -> int:
        """The number of restarts."""
        return int(self.activations.shape[0])


def part_of(state: State, restarts: slice) -> State:
    """Return some of the restarts of a batch."""

    def taken(array: Any) -> Any:
        return array if array is None or isinstance(array, int) else array[restarts, ...]

    return replace(state, **{item.name: taken(getattr(state, item.name)) for item in fields(state)})


def concatenated(states: list[State]) -> State:
    """Return one batch of several, in their order."""
    first = states[0]
    if len(states) == 1:
        return first

    def together(name: str) -> Any:
        parts = [getattr(state, name) for state in states]
        if parts[0] is None or isinstance(parts[0], int):
            return parts[0]
        return array_namespace(parts[0]).concat(parts, axis=0)

    return replace(first, **{item.name: together(item.name) for item in fields(first)})


def transformed_frames(data: Any, transform: Array) -> Array:
    """Return the virtual realizations in the coordinates of a batch of transforms."""
    return data.rows @ array_namespace(transform).matrix_transpose(transform)


def reorthogonalized(state: TransformState, data: Any) -> TransformState:
    """Remove the rounding errors of many rotations."""
    transform = newton_schulz_step(state.transform)
    return replace(state, transform=transform, frames=transformed_frames(data, transform))
