"""The second fit of small data, from random factors, which the default compares with its first.

From NNDSVD a fit may end in a local minimum that lies percents above others, and nothing in its first
iterations tells. Small data can afford to try another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._arguments import checked_count
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix
from nonneg.initializers.registry import INITS
from nonneg.iteration import Run, StopReason
from nonneg.solvers.restarts import final_loss

# Products of an iteration up to which data count as small: two milliseconds, half a second for a fit.
SMALL = 5e6
# By how much, relatively, the second fit must end lower: the choice may not hinge on last digits.
GAIN = 1e-3


def n_restarts(n_init: Any) -> int:
    """Return the number of restarts that `n_init` stands for."""
    return 1 if isinstance(n_init, str) and n_init == "auto" else checked_count("n_init", n_init)


def is_small(data: DataMatrix, k: int) -> bool:
    """Tell whether a second fit takes little time; the same for every container."""
    n_rows = data.counted_rows()
    of_factors = k * k * (n_rows + data.shape[1])
    if of_factors > SMALL:
        return False
    return of_factors + k * data.count_nonzero() * n_rows / max(1, data.shape[0]) <= SMALL


def second_factors(data: DataMatrix, k: int) -> tuple[SampleArray, Array]:
    """Return random factors, the same for every call: a default fit draws no numbers."""
    return INITS["random"](data, k, rng=np.random.default_rng([k, data.shape[1]]))


def lower_of(first: Run[Any], second: Callable[[], Run[Any]]) -> Run[Any]:
    """Return the second fit if it ends lower; it does not begin if the user has stopped the first."""
    if first.stop_reason in (StopReason.CALLBACK, StopReason.INTERRUPTED):
        return first
    other = second()
    return other if final_loss(other) < (1.0 - GAIN) * final_loss(first) else first
