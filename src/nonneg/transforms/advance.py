"""Which code makes an iteration: compiled kernels where they serve, else the array code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import is_numpy_array

from nonneg._threads import parallel_for
from nonneg.transforms.compiled_advance import compiled_advance
from nonneg.transforms.device_advance import DeviceAdvance
from nonneg.transforms.fused_line_search import searches_whole
from nonneg.transforms.joint_diagonalization import advance_joint_diagonalization
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import joined
from nonneg.transforms.transform_learning import Measures, advance_transform_learning
from nonneg.transforms.two_stage import advance_factors

Advance = Callable[[Any], tuple[Any, Measures]]
"""From a batch of runs to the batch after one more iteration, with its measures."""

PORTABLE: dict[str, Callable[[Any, Any, TransformOptions], tuple[Any, Measures]]] = {
    "tl": advance_transform_learning,
    "jd": advance_joint_diagonalization,
    "factors": advance_factors,
}
"""One function a method: ``advance(state, data, options) -> state, measures``."""


def advancer(method: str, data: Any, options: TransformOptions) -> Advance:
    """Return the function that advances a batch."""
    # On NumPy the runs of a batch are advanced one by one, on the pool's threads, small ones by compiled
    # kernels: the numbers do not depend on the batch or the threads. Elsewhere the batch is one computation,
    # recorded and replayed on NVIDIA GPUs.
    compiled: Advance | None = compiled_advance(method, data, options)
    if compiled is not None:
        return compiled
    step = PORTABLE[method]
    if getattr(data if method == "factors" else data.virtual, "is_cuda", False) and options.reads:
        searches = _searches(method, data, options)
        return DeviceAdvance(step, data, options, searches=searches, stays=method == "jd")

    def one_batch(state: Any) -> tuple[Any, Measures]:
        return step(state, data, options)

    def by_lane(state: Any) -> tuple[Any, Measures]:
        if state.batch == 1:
            return one_batch(state)

        def work(start: int, stop: int) -> list[tuple[Any, Measures]]:
            return [one_batch(state.part(slice(i, i + 1))) for i in range(start, stop)]

        parts = [pair for some in parallel_for(work, state.batch, chunk_size=1) for pair in some]
        states, measures = [pair[0] for pair in parts], [pair[1] for pair in parts]
        return joined(states), {name: _column(measures, name) for name in measures[0]}

    return by_lane if is_numpy_array(data if method == "factors" else data.virtual) else one_batch


def _searches(method: str, data: Any, options: TransformOptions) -> bool:
    """Say whether an iteration has searches that a fixed number of operations may leave open."""
    if method == "factors":
        return False
    learns = method == "tl"
    if learns and options.objective != "C":
        return True
    return not searches_whole(data, options.search, options.retraction, learns=learns)


def _column(measures: list[Measures], name: str) -> Any:
    from numpy import concatenate

    return concatenate([one[name] for one in measures])
