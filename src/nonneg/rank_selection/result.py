"""An estimate of the rank: the number, its curves and its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from nonneg._html import element, table
from nonneg._typing import FloatArray
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.plain_values import PlainValues
from nonneg.exceptions import ShapeError


@dataclass(frozen=True)
class RankCurve(PlainValues):
    """One measure of every candidate, over folds or restarts where there are any.

    Attributes
    ----------
    name : str
        What was measured, such as "held-out error".
    candidates : tuple of int
        The candidates, in ascending order.
    mean : array of shape (n_candidates,)
        The measure of each.
    spread : array of shape (n_candidates,)
        Its standard deviation over folds or restarts; 0 without them.
    better : {"larger", "smaller"}
        Which direction is better.
    """

    name: str
    candidates: tuple[int, ...]
    mean: FloatArray
    spread: FloatArray
    better: str = "larger"

    def __post_init__(self) -> None:
        candidates = tuple(int(k) for k in self.candidates)
        mean, spread = np.asarray(self.mean, dtype=float), np.asarray(self.spread, dtype=float)
        if not len(candidates) == len(mean) == len(spread):
            raise ShapeError(
                f"Expected a mean and a spread for each of {len(candidates)} candidates, got {len(mean)} and "
                f"{len(spread)}."
            )
        for name, value in (("candidates", candidates), ("mean", mean), ("spread", spread)):
            object.__setattr__(self, name, value)

    def at(self, k: int) -> tuple[float, float] | None:
        """Return mean and spread of a candidate.

        Parameters
        ----------
        k : int
            The candidate.

        Returns
        -------
        tuple of float or None
            None where it is not on the curve.
        """
        if k not in self.candidates:
            return None
        place = self.candidates.index(k)
        return float(self.mean[place]), float(self.spread[place])

    def __repr__(self) -> str:
        return f"RankCurve({self.name!r}, {len(self.candidates)} candidates, better={self.better!r})"


@dataclass(frozen=True)
class RankResult(PlainValues):
    """An estimate of the rank and its evidence.

    Attributes
    ----------
    rank : int
        The estimate, at least 1.
    scores : mapping of int to float
        The score of each candidate (the means of `curve`); `curve.better` says which direction is better.
        Empty where there was no candidate.
    reason : str
        Why this rank, in a sentence.
    method : str
        The name of the method.
    singular_values : array
        The leading singular values that were computed, in descending order.
    numerical_rank : int
        How many of them lie above rounding (a lower bound of the matrix's numerical rank).
    k_min, k_max : int
        The range of the candidates.
    curves : tuple of RankCurve
        All that was measured, the deciding curve first.
    certificate : Certificate
        What is known about the estimate.
    normalize : None, "l1" or "l2"
        The norm that every sample was scaled to first.
    as_good : tuple of int
        The candidates that the method cannot tell from its best one: those whose held-out error is
        not significantly above the least. Empty for the singular-value ratio.
    """

    rank: int
    scores: Mapping[int, float]
    reason: str
    method: str
    singular_values: Any
    numerical_rank: int
    k_min: int
    k_max: int
    curves: tuple[RankCurve, ...] = ()
    certificate: Certificate = field(default_factory=Certificate)
    normalize: str | None = None
    as_good: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", dict(self.scores))
        object.__setattr__(self, "curves", tuple(self.curves))
        object.__setattr__(self, "as_good", tuple(self.as_good))

    @property
    def curve(self) -> RankCurve | None:
        """The deciding curve; None where there was no candidate."""
        return self.curves[0] if self.curves else None

    def _as_plain(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "method": self.method,
            "reason": self.reason,
            "numerical_rank": self.numerical_rank,
            "k_min": self.k_min,
            "k_max": self.k_max,
            "normalize": self.normalize,
            "as_good": list(self.as_good),
            "singular_values": np.asarray(self.singular_values).tolist(),
            "curves": [curve.as_dict() for curve in self.curves],
            "certificate": [statement.as_dict() for statement in self.certificate],
        }

    @classmethod
    def _of_plain(cls, values: Mapping[str, Any]) -> Self:
        curves = tuple(RankCurve.from_dict(curve) for curve in values["curves"])
        rest = {name: value for name, value in values.items() if name not in ("curves", "certificate")}
        rest["singular_values"] = np.asarray(rest["singular_values"], dtype=float)
        return cls(
            scores=scores_of(curves[0]) if curves else {},
            curves=curves,
            certificate=Certificate.from_dict({"statements": values["certificate"]}),
            **rest,
        )

    def __repr__(self) -> str:
        return f"RankResult(rank={self.rank}, method={self.method!r}: {self.reason})"

    def _repr_html_(self) -> str:
        text = element("p", f"{self.rank} components by {self.method}: {self.reason}")
        if self.curve is None:
            return text
        rows = zip(self.curve.candidates, self.curve.mean.tolist(), self.curve.spread.tolist(), strict=True)
        return text + table(["components", self.curve.name, "spread"], rows)


def scores_of(curve: RankCurve) -> dict[int, float]:
    """Return the means of a curve by candidate."""
    return {k: float(value) for k, value in zip(curve.candidates, curve.mean, strict=True)}
