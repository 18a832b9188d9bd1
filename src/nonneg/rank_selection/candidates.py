"""Candidate ranks: the range, its limits, the grid, and the answer where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonneg._arguments import is_count
from nonneg._random import Seed
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix
from nonneg.data.spectral import leading_singular_values, machine_epsilon
from nonneg.data.views import normalized_rows
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.rank_selection.result import RankResult

# The last singular values of real data measure rounding and constant columns, not components.
DEFAULT_K_MAX = 64
# The grid holds every candidate up to here; then it grows by a quarter, and is refined around the best by so
# many more.
ALL_UP_TO, MOST_BETWEEN = 8, 6
NORMS = ("l1", "l2")


@dataclass(frozen=True)
class RankProblem:
    """The data, and the ranks to choose from."""

    data: DataMatrix  # the data
    k_min: int  # the smallest candidate
    k_max: int  # the largest one, capped at the smaller side minus one
    candidates: tuple[int, ...] | None  # the candidates of the user
    side: int  # the smaller dimension; weights count like repeated rows
    singular_values: FloatArray = field(repr=False)  # the k_max + 1 largest
    noise: float  # below it a singular value is rounding
    numerical_rank: int  # how many lie above it
    normalize: str | None  # the norm that every sample is scaled to, if any

    @property
    def last(self) -> int:
        """The largest candidate that makes sense."""
        return min(self.k_max, self.numerical_rank)

    def within(self) -> list[int]:
        """Return every candidate of the range."""
        chosen = range(self.k_min, self.last + 1)
        return list(chosen) if self.candidates is None else [k for k in self.candidates if k in chosen]

    def grid(self) -> list[int]:
        """Return candidates for methods that fit every one of them."""
        return self.within() if self.candidates is not None else spaced(self.k_min, self.last)

    def ratios(self) -> FloatArray:
        """Return the ratio of each candidate's singular value to the next."""
        # Beyond the numerical rank the next value is rounding, whose size is not its own.
        values = self.singular_values
        return np.array([values[k - 1] / max(values[k], self.noise) for k in self.within()])

    def largest_ratio(self) -> int:
        """Return the candidate of the largest ratio."""
        return self.within()[int(np.argmax(self.ratios()))]

    def answer(self, rank: int, reason: str, method: str, **more: Any) -> RankResult:
        """Build a result."""
        return RankResult(
            rank=rank,
            scores=more.pop("scores", {}),
            reason=reason,
            method=method,
            singular_values=self.singular_values,
            numerical_rank=self.numerical_rank,
            k_min=self.k_min,
            k_max=max(self.k_max, 0),
            normalize=self.normalize,
            **more,
        )

    def trivial_answer(self, method: str) -> RankResult | None:
        """Return the answer that needs no method, where there is one."""
        k_min, side, rank = self.k_min, self.side, self.numerical_rank
        if not self.singular_values[0] > 0.0:
            return self.answer(1, "X is zero, so all ranks are equal: 1 by convention.", method)
        if side <= 2:
            reason = (
                f"the smaller dimension of X is {side}, too few singular values to compare: 1 by convention."
            )
            return self.answer(1, reason, method)
        if rank < k_min:
            reason = f"only {rank} singular values lie above rounding, fewer than k_min={k_min}."
            return self.answer(rank, reason, method)
        if self.last < k_min:
            reason = (
                f"no candidate is left from k_min={k_min} on for a smaller dimension of {side}: "
                "k_min, capped at the numerical rank."
            )
            return self.answer(min(k_min, rank), reason, method)
        if not self.within():
            reason = (
                f"no candidate lies between {k_min} and {self.last}: the numerical rank, capped at k_max."
            )
            return self.answer(self.last, reason, method)
        return None


def rank_problem(
    data: DataMatrix,
    k_min: int,
    k_max: int | None,
    candidates: Sequence[int] | None,
    *,
    normalize: str | None = None,
    rng: Seed = None,
) -> RankProblem:
    """Compute the singular values and the limits that follow from them."""
    k_min, k_max, chosen = _checked(k_min, k_max, candidates)
    if normalize is not None:
        UnknownNameError.check("normalize", normalize, NORMS)
    view = data if normalize is None else normalized_rows(data, normalize)
    # Weights count like repeated rows, whose further singular values are zero.
    side = min(round(data.counted_rows()), data.shape[1])
    if k_max is None:
        k_max = max(k_min, min(side // 2, DEFAULT_K_MAX)) if chosen is None else chosen[-1]
    k_max = min(k_max, side - 1)
    n_values = max(1, min(k_max + 1, side))
    values = leading_singular_values(view, min(n_values, *data.shape), rng)
    values = np.concatenate([values, np.zeros(n_values - len(values))])
    noise = numerical_noise(data, float(values[0]))
    rank = int(np.sum(values > noise)) if values[0] > 0 else 0
    return RankProblem(view, k_min, k_max, chosen, side, values, noise, rank, normalize)


def numerical_noise(data: DataMatrix, largest: float) -> float:
    """Return the size below which a computed singular value is rounding."""
    eps = machine_epsilon(data)
    return largest * max(10 * eps**0.75, max(data.shape) * eps)


def spaced(first: int, last: int) -> list[int]:
    """Return a grid of ranks: all small ones, then steps of a quarter."""
    chosen = [first]
    while chosen[-1] < last:
        k = chosen[-1]
        chosen.append(min(last, k + (1 if k < ALL_UP_TO else k // 4)))
    return chosen


def between(grid: Sequence[int], chosen: int) -> list[int]:
    """Return further candidates on both sides of a chosen one, up to its neighbors on the grid."""
    at = list(grid).index(chosen)
    low = grid[at - 1] if at else chosen
    high = grid[at + 1] if at + 1 < len(grid) else chosen
    inside = [k for k in range(low + 1, high) if k != chosen]
    if len(inside) <= MOST_BETWEEN:
        return inside
    places = np.linspace(0, len(inside) - 1, MOST_BETWEEN).round().astype(int)
    return [inside[place] for place in sorted(set(places.tolist()))]


def _checked(
    k_min: Any, k_max: Any, candidates: Sequence[int] | None
) -> tuple[int, int | None, tuple[int, ...] | None]:
    for name, value in (("k_min", k_min), ("k_max", k_max)):
        if (value is not None or name == "k_min") and not is_count(value):
            raise InvalidParameterError(f"Expected {name} to be an integer of at least 1, got {value!r}.")
    if k_max is not None and k_max < k_min:
        raise InvalidParameterError(f"Expected k_min <= k_max, got k_min={k_min} and k_max={k_max}.")
    if candidates is None:
        return int(k_min), None if k_max is None else int(k_max), None
    values = list(candidates) if isinstance(candidates, Iterable) else []
    if not values or not all(is_count(value) for value in values):
        raise InvalidParameterError(
            f"Expected candidates to be a sequence of integers of at least 1, got {candidates!r}."
        )
    chosen = tuple(sorted({int(value) for value in values}))
    return min(int(k_min), chosen[0]), None if k_max is None else int(k_max), chosen
