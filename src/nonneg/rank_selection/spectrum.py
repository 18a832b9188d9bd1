"""The rank read off the singular values: where one is largest in proportion to the next."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from nonneg._random import Seed
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.data.singular_values import leading_singular_values
from nonneg.data.spectral import numerical_noise
from nonneg.exceptions import InvalidParameterError, UnknownNameError

DEFAULT_K_MAX = 64


@dataclass(frozen=True, repr=False)
class RankResult:
    """An estimate of the rank and what it rests on.

    Attributes
    ----------
    rank : int
        The estimate, at least 1.
    scores : mapping of int to float
        The score of each candidate; the largest one wins. Empty where there was no candidate.
    reason : str
        Why this rank, in a sentence.
    method : str
        The name of the method.
    singular_values : array
        The leading singular values that were computed, in descending order.
    numerical_rank : int
        How many of them stand above rounding (a lower bound of the matrix's numerical rank).
    k_min, k_max : int
        The range of the candidates.
    """

    rank: int
    scores: Mapping[int, float]
    reason: str
    method: str
    singular_values: Any
    numerical_rank: int
    k_min: int
    k_max: int

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view of a dict cannot be pickled or copied.
        return _rebuild, (
            self.rank,
            dict(self.scores),
            self.reason,
            self.method,
            self.singular_values,
            self.numerical_rank,
            self.k_min,
            self.k_max,
        )

    def __repr__(self) -> str:
        return f"RankResult(rank={self.rank}, method={self.method!r}: {self.reason})"


def _rebuild(*values: Any) -> RankResult:
    rank, scores, *rest = values
    return RankResult(rank, MappingProxyType(scores), *rest)


def estimate_rank(
    X: Any,
    *,
    method: str = "singular-value-ratio",
    k_min: int = 2,
    k_max: int | None = None,
    rng: Seed = None,
) -> RankResult:
    """Estimate the number of components.

    Parameters
    ----------
    X : array-like, sparse matrix, dask array or DataMatrix of shape (n_samples, n_features)
        The data.
    method : {"singular-value-ratio"}
        The rank k with the largest ratio of the k-th singular value to the next.
    k_min : int
        The smallest candidate. The ratio of the first two singular values of nonnegative data is nearly
        always the largest one and says that the mean is not zero, so that 1 is not a candidate by default.
    k_max : int, optional
        The largest candidate. By default half of the smaller side of X, at most 64: the last singular
        values of real data fall off steeply, where the ratio measures rounding and constant columns, not
        components (digits would give 58 of 64). In any case it is capped at the smaller side minus one,
        where the ratio ends, and at the numerical rank.
    rng : None, int, Generator, RandomState or SeedSequence
        For the start of the Lanczos method; None starts from vectors that depend on the number of columns
        alone.

    Returns
    -------
    RankResult
        The rank, the scores by candidate and the reason.

    Notes
    -----
    Where no candidate is left, the numerical rank is returned if it is below k_min, and 1 for a matrix of
    zeros or with a side of at most 2; the reason says so. Computing k_max + 1 singular values costs a few
    passes over the data.

    References
    ----------
    .. [1] Liu & Tan (2017), IEEE Trans. Image Processing 26(1), 254-269, equation (45).
    """
    if method not in METHODS:
        raise UnknownNameError.of("method", method, METHODS)
    data = X if isinstance(X, DataMatrix) else as_data_matrix(_array(X))
    for name, value in (("k_min", k_min), ("k_max", k_max)):
        if value is not None and (
            not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1
        ):
            raise InvalidParameterError(f"Expected {name} to be an integer of at least 1, got {value!r}.")
    if k_max is not None and k_max < k_min:
        raise InvalidParameterError(f"Expected k_min <= k_max, got k_min={k_min} and k_max={k_max}.")
    return METHODS[method](data, int(k_min), None if k_max is None else int(k_max), rng)


def _array(X: Any) -> Any:
    # Lists and data frames; arrays of any namespace, sparse matrices and dask arrays pass as they are.
    known = hasattr(X, "__array_namespace__") or hasattr(X, "to_delayed") or hasattr(X, "tocsr")
    return X if known or hasattr(X, "device") else np.asarray(X)


def _singular_value_ratio(data: DataMatrix, k_min: int, k_max: int | None, rng: Seed) -> RankResult:
    # Weights count like repeated rows, whose further singular values are zero.
    side = min(round(data.counted_rows()), data.shape[1])
    asked = k_max
    if k_max is None:
        k_max = max(k_min, min(side // 2, DEFAULT_K_MAX))
    k_max = min(k_max, side - 1)

    def result(
        rank: int, scores: dict[int, float], reason: str, values: Any, numerical_rank: int
    ) -> RankResult:
        return RankResult(
            rank,
            MappingProxyType(scores),
            reason,
            "singular-value-ratio",
            values,
            numerical_rank,
            k_min,
            max(k_max, 0),
        )

    n_values = max(1, min(k_max + 1, side))
    values = leading_singular_values(data, min(n_values, *data.shape), rng)
    values = np.concatenate([values, np.zeros(n_values - len(values))])
    largest = float(values[0])
    if not largest > 0.0:
        return result(1, {}, "X is zero, so that the ratio is undefined: 1 by convention.", values, 0)
    noise = numerical_noise(data, largest)
    numerical_rank = int(np.sum(values > noise))
    if side <= 2:
        reason = f"X has a side of {side}, too few singular values for a ratio: 1 by convention."
        return result(1, {}, reason, values, numerical_rank)
    if numerical_rank < k_min:
        reason = f"only {numerical_rank} singular values stand above rounding, fewer than k_min={k_min}."
        return result(numerical_rank, {}, reason, values, numerical_rank)
    last = min(k_max, numerical_rank)
    if last < k_min:
        rank = min(k_min, numerical_rank)
        reason = (
            f"no ratio is defined from k_min={k_min} on for a smaller side of {side}: "
            "k_min, capped at the numerical rank."
        )
        return result(rank, {}, reason, values, numerical_rank)
    scores = {k: float(values[k - 1] / max(values[k], noise)) for k in range(k_min, last + 1)}
    rank = max(scores, key=scores.__getitem__)
    limit = (
        f"k_max={last}"
        + (" (the default)" if asked is None else "")
        + (" (the numerical rank)" if last == numerical_rank else "")
    )
    reason = (
        f"the ratio of singular values {rank} and {rank + 1}, {scores[rank]:.4g}, "
        f"is the largest from k_min={k_min} to {limit}."
    )
    return result(rank, scores, reason, values, numerical_rank)


METHODS: dict[str, Callable[[DataMatrix, int, int | None, Seed], RankResult]] = {
    "singular-value-ratio": _singular_value_ratio
}
