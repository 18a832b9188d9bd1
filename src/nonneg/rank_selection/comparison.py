"""Several opinions about the rank, side by side, and what to make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from nonneg._arguments import checked_verbose, is_count
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg.data.checks import checked_data
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError
from nonneg.iteration.interruption import ended_by_interrupt
from nonneg.rank_selection import cross_validation, spectrum, stability
from nonneg.rank_selection.candidates import pose
from nonneg.rank_selection.estimate import MAX_SAMPLES, METHODS
from nonneg.rank_selection.ratio_certificate import CONDITION
from nonneg.rank_selection.result import RankResult

WORDS = {
    spectrum.NAME: "the singular-value ratio",
    cross_validation.NAME: "cross-validation",
    stability.NAME: "stability over restarts",
}
COLUMNS = {
    "singular-value ratio": "ratio",
    "held-out error": "held_out_error",
    "component agreement": "agreement",
    "cophenetic correlation": "cophenetic",
    "dispersion": "dispersion",
}
"""The curves, and the columns of the table that they fill."""
CLEAR = 1.5
"""A ratio that exceeds the second largest by this factor is taken for a step of the spectrum."""


@dataclass(frozen=True, repr=False)
class RankComparison:
    """What several methods say about the rank.

    Attributes
    ----------
    rank : int
        The recommendation.
    reason : str
        Why, and how the opinions agree or differ.
    opinions : mapping of str to RankResult
        By method.
    left_out : mapping of str to str
        Methods that could not be used, and why.
    """

    rank: int
    reason: str
    opinions: Mapping[str, RankResult]
    left_out: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "opinions", MappingProxyType(dict(self.opinions)))
        object.__setattr__(self, "left_out", MappingProxyType(dict(self.left_out)))

    def table(self) -> list[dict[str, Any]]:
        """Return one record a candidate.

        Returns
        -------
        list of dict
            "k" and a column for every measure that was taken, with its spread where repeats gave one. Ratios
            are shown at the candidates that were fitted, and at those that stand out.
        """
        curves = [curve for opinion in self.opinions.values() for curve in opinion.curves]
        fitted = {k for curve in curves if curve.name != "singular-value ratio" for k in curve.candidates}
        chosen = {opinion.rank for opinion in self.opinions.values()} | {self.rank}
        known = {k for curve in curves for k in curve.candidates}
        rows = []
        for k in sorted((fitted or known) | (chosen & known)):
            row: dict[str, Any] = {"k": k}
            for curve in curves:
                column = COLUMNS[curve.name]
                found = curve.at(k)
                row[column] = None if found is None else found[0]
                if np.any(curve.spread > 0):
                    row[f"{column}_spread"] = None if found is None else found[1]
            rows.append(row)
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, ready for JSON.

        Returns
        -------
        dict
            Numbers, texts and lists of them.
        """
        return {
            "rank": self.rank,
            "reason": self.reason,
            "opinions": {name: opinion.as_dict() for name, opinion in self.opinions.items()},
            "left_out": dict(self.left_out),
            "table": self.table(),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rank, self.reason, dict(self.opinions), dict(self.left_out))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}: {opinion.rank}" for name, opinion in self.opinions.items())
        return f"RankComparison(rank={self.rank}; {said}. {self.reason})"


@ended_by_interrupt()
def compare_ranks(
    X: Any,
    *,
    methods: Sequence[str] | None = None,
    k_min: int = 2,
    k_max: int | None = None,
    rng: Seed = None,
    normalize: bool = False,
    tolerance: float = spectrum.TOLERANCE,
    candidates: Sequence[int] | None = None,
    n_repeats: int | None = None,
    holdout: str = "auto",
    max_samples: int | None = MAX_SAMPLES,
    mask: Any = None,
    missing: str = "error",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> RankComparison:
    """Ask several methods for the number of components, and recommend one.

    Parameters
    ----------
    X : array-like, sparse matrix, dask array or DataMatrix of shape (n_samples, n_features)
        Nonnegative data; never changed.
    methods : sequence of str, optional
        Names of methods of `estimate_rank`; all by default.
    k_min, k_max : int
        The range of the candidates; see `estimate_rank`.
    rng : None, int, Generator, RandomState or SeedSequence
        Draws folds, starts and samples of points.
    normalize : bool
        Whether points are scaled to unit length first.
    tolerance : float
        Of the singular-value ratio; see `estimate_rank`.
    candidates : sequence of int, optional
        The ranks to choose from.
    n_repeats : int, optional
        Folds, and restarts a candidate.
    holdout : {"auto", "entries", "blocks"}
        What a fold holds out; see `estimate_rank`.
    max_samples : int or None
        Cross-validation and stability take at most so many points; None takes all.
    mask : bool array or sparse matrix of the shape of X, optional
        True where observed.
    missing : {"error", "mask"}
        What NaN means.
    n_jobs : int, optional
        Threads; all cores by default.
    verbose : int
        1 shows how many fits are done.

    Returns
    -------
    RankComparison
        The recommendation, its reason and the opinions.

    Notes
    -----
    The recommendation is the ratio's where the spectrum has a step there (Theorem 9's condition holds, or
    the ratio exceeds every other by half); otherwise what two opinions share, up to one component or a
    tenth; otherwise that of cross-validation, which alone asks what new entries look like. Where entries are
    missing it is that of cross-validation, because they are zeros to the singular values.
    """
    chosen = list(METHODS) if methods is None else list(methods)
    for name in chosen:
        if name not in METHODS:
            raise UnknownNameError.of("methods", name, METHODS)
    if not chosen:
        raise InvalidParameterError(f"Expected at least one method among {sorted(METHODS)}, got none.")
    if max_samples is not None and not is_count(max_samples, 10):
        raise InvalidParameterError(f"Expected max_samples to be None or at least 10, got {max_samples!r}.")
    verbose = checked_verbose(verbose)
    data = checked_data(X, mask=mask, missing=missing, signed=chosen == [spectrum.NAME], who="compare_ranks")
    seeds = [int(seed) for seed in generator(rng).integers(2**62, size=len(METHODS))]
    opinions: dict[str, RankResult] = {}
    left_out: dict[str, str] = {}
    options: dict[str, Any] = {
        "n_repeats": n_repeats,
        "holdout": holdout,
        "max_samples": max_samples,
        "verbose": verbose,
    }
    options["tolerance"] = tolerance
    with threads(n_jobs):
        question = pose(data, k_min, k_max, candidates, normalize=normalize)
        for seed, name in zip(seeds, METHODS, strict=True):
            if name not in chosen:
                continue
            try:
                opinions[name] = METHODS[name](question, rng=seed, **options)
            except InvalidDataError as error:
                if chosen == [name]:
                    raise
                left_out[name] = str(error)
    rank, reason = recommend(opinions, incomplete=data.has_missing)
    return RankComparison(rank, reason, opinions, left_out)


def recommend(opinions: Mapping[str, RankResult], *, incomplete: bool = False) -> tuple[int, str]:
    """Choose among opinions, and say why."""
    said = "; ".join(f"{WORDS[name]} says {opinion.rank}" for name, opinion in opinions.items())
    ranks = {name: opinion.rank for name, opinion in opinions.items()}
    if len(opinions) == 1:
        ((name, opinion),) = opinions.items()
        return opinion.rank, f"{WORDS[name]} alone was asked: {opinion.reason}"
    if all(not opinion.curves for opinion in opinions.values()):
        first = next(iter(opinions.values()))
        return first.rank, first.reason
    if len(set(ranks.values())) == 1:
        return next(iter(ranks.values())), f"all agree ({said})."
    if incomplete and cross_validation.NAME in ranks:
        why = "entries are missing, which are zeros to the singular values"
        return ranks[cross_validation.NAME], f"{said}. Cross-validation is followed: {why}."
    ratio = opinions.get(spectrum.NAME)
    if ratio is not None and ratio.curve is not None and (step := _step_words(ratio)):
        return ratio.rank, f"{said}. The spectrum has a step there: {step}."
    for one, other in (
        (cross_validation.NAME, spectrum.NAME),
        (cross_validation.NAME, stability.NAME),
        (spectrum.NAME, stability.NAME),
    ):
        if one in ranks and other in ranks and _near(ranks[one], ranks[other]):
            return ranks[one], f"{said}. {_capital(WORDS[one])} and {WORDS[other]} agree."
    name = cross_validation.NAME if cross_validation.NAME in ranks else next(iter(ranks))
    why = (
        "cross-validation is followed, because it alone asks how new entries are predicted"
        if name == cross_validation.NAME
        else f"{WORDS[name]} is followed, because there is no cross-validation"
    )
    return ranks[name], f"{said}. They differ, so that the number of components is not clear cut; {why}."


def _step_words(ratio: RankResult) -> str:
    curve = ratio.curve
    assert curve is not None
    if CONDITION in ratio.certificate and ratio.certificate[CONDITION].holds:
        return "condition (92) of Theorem 9 holds"
    ordered = np.sort(curve.mean)
    if len(ordered) > 1 and ordered[-1] > CLEAR * ordered[-2]:
        return f"the ratio {ordered[-1]:.3g} is {ordered[-1] / ordered[-2]:.2g} times the second largest"
    return ""


def _near(first: int, second: int) -> bool:
    return abs(first - second) <= max(1, round(0.1 * max(first, second)))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
