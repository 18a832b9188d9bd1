"""Where a batch of restarts stands; restarts are the first axis of every array."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from array_api_compat import array_namespace
from array_api_compat import device as device_of

from nonneg._lazy import cached_property
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.transforms.rotations.group import newton_schulz_step

State = TypeVar("State", bound=Any)

# Iterations between re-orthogonalizations: often enough that rounding errors do not pile up, seldom enough
# that its two products cost nothing.
REORTHOGONALIZATION_PERIOD = 25


class _Batch:
    """What states of both stages share."""

    restarts: IntArray

    @property
    def batch(self) -> int:
        """The number of restarts."""
        return len(self.restarts)

    def part(self: State, kept: Any) -> State:
        """Return some of the restarts: a slice of them, or an array of indices."""

        def taken(array: Any) -> Any:
            if array is None or isinstance(array, int):
                return array
            if isinstance(kept, slice):
                return array[kept, ...]
            xp = array_namespace(array)
            return xp.take(array, xp.asarray(kept, device=device_of(array)), axis=0)

        return replace(self, **{item.name: taken(getattr(self, item.name)) for item in fields(self)})


@dataclass(frozen=True)
class TransformState(_Batch):
    """A batch of transforms, with factors unless they are only joint diagonalizers."""

    transform: Array  # columns are orthonormal; rows are atoms, in the coordinates of the data
    frames: Array  # virtual realizations, transformed
    activations: Array | None  # the paper's H, transposed; None for a joint diagonalization
    components: Array | None  # the paper's W, transposed; rows have l1 norm one
    restarts: IntArray  # which restarts these are: pruned ones leave the batch
    n_done: int = 0  # iterations done
    pruning_losses: FloatArray | None = None  # the losses when restarts were last pruned

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What an iteration that ended here has computed, for the next one; a copy begins with nothing."""
        return {}


@dataclass(frozen=True)
class FactorState(_Batch):
    """A batch of factorizations of variances."""

    activations: Array  # the paper's H, transposed
    components: Array  # the paper's W, transposed; rows have l1 norm one
    restarts: IntArray  # which restarts these are
    n_done: int = 0  # iterations done


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
