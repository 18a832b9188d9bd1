"""Where a batch of runs stands, and where runs begin."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

from array_api_compat import array_namespace
from array_api_compat import device as device_of

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.transforms.rotations.group import polished

State = TypeVar("State", bound=Any)

# Iterations after which rounding is taken off the transforms.
RENEWAL = 25


@dataclass(frozen=True)
class TransformState:
    """A batch of runs that advance together."""

    transform: Array  # columns are orthonormal; rows are atoms, in the coordinates of the data
    frames: Array  # virtual realizations, transformed
    activations: Array | None  # the paper's H, transposed; None for a joint diagonalization
    components: Array | None  # the paper's W, transposed; rows have l1 norm one
    lanes: IntArray  # which starts these are: hopeless ones leave the batch
    n_done: int = 0  # iterations done
    marks: FloatArray | None = None  # the losses when hopeless starts were last looked for

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What an iteration that ended here has computed, for the next one; a copy begins with nothing."""
        return {}

    @property
    def batch(self) -> int:
        """How many runs there are."""
        return int(self.transform.shape[0])

    def part(self, kept: Any) -> TransformState:
        """Return some of the runs."""

        def taken(array: Array | None) -> Array | None:
            if array is None or isinstance(kept, slice):
                return None if array is None else array[kept, ...]
            xp = array_namespace(array)
            return xp.take(array, xp.asarray(kept, device=device_of(array)), axis=0)

        return replace(
            self,
            transform=taken(self.transform),
            frames=taken(self.frames),
            activations=taken(self.activations),
            components=taken(self.components),
            lanes=self.lanes[kept],
            marks=None if self.marks is None else self.marks[kept],
        )


def joined(states: list[State]) -> State:
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


def renewed(state: TransformState, data: Any) -> TransformState:
    """Take the rounding of many rotations off."""
    transform = polished(state.transform)
    return replace(state, transform=transform, frames=transformed_frames(data, transform))
