"""Several estimates of the rank, compared, and a recommendation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._html import facts, table
from nonneg._interruption import ended_by_interrupt
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg.data import DataMatrix
from nonneg.data.checks import checked_data
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    UnknownNameError,
    UnsupportedInputError,
)
from nonneg.rank_selection import cross_validation, spectrum, stability
from nonneg.rank_selection.candidates import rank_problem
from nonneg.rank_selection.estimate import MAX_SAMPLES, METHODS, checked_max_samples, checked_method_params
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
"""The columns of the table, by curve."""
# A ratio that exceeds the second largest by this factor is a step of the spectrum. In docs/guide/rank.md,
# cones have 2.9 against 1.23 and the digits no such step.
CLEAR = 1.5


@dataclass(frozen=True)
class RankComparison:
    """Estimates of the rank by several methods, and a recommendation.

    Attributes
    ----------
    rank : int
        The recommendation.
    reason : str
        Why, and whether the estimates agree.
    estimates : mapping of str to RankResult
        The estimate of each method.
    left_out : mapping of str to str
        Methods that could not be used, and why.
    """

    rank: int
    reason: str
    estimates: Mapping[str, RankResult]
    left_out: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimates", MappingProxyType(dict(self.estimates)))
        object.__setattr__(self, "left_out", MappingProxyType(dict(self.left_out)))

    def table(self) -> list[dict[str, Any]]:
        """Return one record per candidate.

        Returns
        -------
        list of dict
            "k" and a column for every measure, with its spread over folds or restarts. Ratios are shown at
            the candidates that were fitted, and at those recommended.
        """
        curves = [curve for estimate in self.estimates.values() for curve in estimate.curves]
        fitted = {k for curve in curves if curve.name != "singular-value ratio" for k in curve.candidates}
        chosen = {estimate.rank for estimate in self.estimates.values()} | {self.rank}
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
            "estimates": {name: estimate.as_dict() for name, estimate in self.estimates.items()},
            "left_out": dict(self.left_out),
            "table": self.table(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RankComparison:
        """Build a comparison from what `as_dict` gave.

        Parameters
        ----------
        values : mapping
            Plain values.

        Returns
        -------
        RankComparison
            Equal to the one they came from.
        """
        estimates = {name: RankResult.from_dict(each) for name, each in values["estimates"].items()}
        return cls(int(values["rank"]), str(values["reason"]), estimates, values["left_out"])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rank, self.reason, dict(self.estimates), dict(self.left_out))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}: {estimate.rank}" for name, estimate in self.estimates.items())
        return f"RankComparison(rank={self.rank}; {said}. {self.reason})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, int | str, str]] = [
            (name, each.rank, each.reason) for name, each in self.estimates.items()
        ]
        rows += [(name, "left out", why) for name, why in self.left_out.items()]
        said = facts(f"{self.rank} components", [("reason", self.reason)])
        return said + table(["method", "components", "reason"], rows)


@ended_by_interrupt()
def compare_ranks(
    X: Any,
    *,
    methods: Sequence[str] | None = None,
    k_min: int = 2,
    k_max: int | None = None,
    candidates: Sequence[int] | None = None,
    normalize: str | None = None,
    max_samples: int | None = MAX_SAMPLES,
    mask: Any = None,
    missing: str = "error",
    rng: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
    method_params: Mapping[str, Any] | None = None,
) -> RankComparison:
    """Estimate the number of components by several methods, and recommend one.

    Parameters
    ----------
    X : array-like, sparse matrix, Dask array or DataMatrix of shape (n_samples, n_features)
        Nonnegative data; never changed.
    methods : sequence of str, optional
        Names of methods of `estimate_rank`; all by default.
    k_min, k_max : int, default 2 and None
        The range of the candidates; see `estimate_rank`.
    candidates : sequence of int, optional
        The ranks to choose from.
    normalize : None, "l1" or "l2"
        Scale the samples to norm one first.
    max_samples : int or None
        The maximum number of samples that cross-validation and stability use; None uses all.
    mask : bool array or sparse matrix of the shape of X, optional
        True where observed.
    missing : {"error", "mask"}, default "error"
        What NaN means.
    rng : None, int, Generator, RandomState or SeedSequence
        Draws folds, initializations and samples.
    n_jobs : int, optional
        Number of threads; all cores by default.
    verbose : int, default 0
        1 shows how many fits are done.
    checkpoint : str or Path, optional
        Folder in which cross-validation and stability are saved after every candidate. The same call resumes
        them there.
    method_params : dict, optional
        Parameters of the methods: `tolerance` of the singular-value ratio, `n_folds` and `holdout` of
        cross-validation, `n_init` of stability; see `estimate_rank`.

    Returns
    -------
    RankComparison
        The recommendation, its reason and the estimates.

    Notes
    -----
    The recommendation follows the ratio if the spectrum has a step there (Theorem 9's condition holds, or the
    ratio exceeds every other by half); otherwise the number on which two estimates agree, up to one component
    or a tenth (the ratio and stability only if a ratio stands out from the others); otherwise
    cross-validation, the only one that predicts new entries. If entries are missing, it follows
    cross-validation, because the singular values treat them as zeros.
    """
    chosen = list(METHODS) if methods is None else list(methods)
    for name in chosen:
        if name not in METHODS:
            raise UnknownNameError.of("methods", name, METHODS)
    if not chosen:
        raise InvalidParameterError(f"methods must name at least one of {sorted(METHODS)}, got none.")
    params = checked_method_params(method_params)
    for option in params:
        if not any(option in METHODS[name].options for name in chosen):
            METHODS.check_options(chosen[0], [option])
    max_samples, verbose = checked_max_samples(max_samples), checked_verbose(verbose)
    folder = checked_checkpoint(checkpoint)
    data = checked_data(X, mask=mask, missing=missing, signed=chosen == [spectrum.NAME], who="compare_ranks")
    estimates: dict[str, RankResult] = {}
    left_out: dict[str, str] = {}
    with threads(n_jobs):
        problem = rank_problem(data, k_min, k_max, candidates, normalize=normalize)
        for name, seed in _seeds(rng).items():
            if name not in chosen:
                continue
            entry = METHODS[name]
            own = {option: value for option, value in params.items() if option in entry.options}
            try:
                estimates[name] = entry.run(
                    problem, rng=seed, max_samples=max_samples, verbose=verbose, checkpoint=folder, **own
                )
            except InvalidDataError as error:
                if chosen == [name]:
                    raise
                left_out[name] = str(error)
    rank, reason = recommend(estimates, incomplete=data.has_missing)
    return RankComparison(rank, reason, estimates, left_out)


def automatic_rank(data: DataMatrix, *, n_jobs: int | None = None, verbose: int = 0) -> RankComparison:
    """Recommend the rank of ``compare_ranks(data, rng=0)``, without the methods that cannot change it."""
    estimates: dict[str, RankResult] = {}
    left_out: dict[str, str] = {}
    signed = data.extremes()[0] < 0
    with threads(n_jobs):
        problem = rank_problem(data, 2, None, None)
        for name, seed in _seeds(0).items():
            if signed and name != spectrum.NAME:
                left_out[name] = "It fits nonnegative factors, but X has negative entries."
                continue
            try:
                estimates[name] = METHODS[name].run(
                    problem, rng=seed, max_samples=MAX_SAMPLES, verbose=verbose
                )
            except (InvalidDataError, UnsupportedInputError) as error:
                left_out[name] = str(error)
            if _settled(estimates, incomplete=data.has_missing):
                break
    rank, reason = recommend(estimates, incomplete=data.has_missing)
    ratio = estimates[spectrum.NAME]
    if len(estimates) == 1 and ratio.curve is not None:
        why = _step_words(ratio)
        why = f"The spectrum has a step: {why}." if why else " ".join(left_out.values())
        reason = f"{_capital(ratio.reason)} {why}"
    return RankComparison(rank, reason, estimates, left_out)


def _seeds(rng: Seed) -> dict[str, int]:
    # The seed of a method does not depend on which other methods run.
    return {
        name: int(seed)
        for name, seed in zip(METHODS, generator(rng).integers(2**62, size=len(METHODS)), strict=True)
    }


def _settled(estimates: Mapping[str, RankResult], *, incomplete: bool) -> bool:
    """Say whether `recommend` would return the same rank whatever the remaining methods said."""
    ratio, held_out = (estimates.get(name) for name in (spectrum.NAME, cross_validation.NAME))
    if ratio is None or ratio.curve is None:
        return True
    if held_out is None:
        return not incomplete and bool(_step_words(ratio))
    # Restarts count where they confirm another estimate, and that of cross-validation is followed anyway.
    return incomplete or _close(held_out.rank, ratio.rank) or not _stands_out(ratio)


def recommend(estimates: Mapping[str, RankResult], *, incomplete: bool = False) -> tuple[int, str]:
    """Choose among estimates, and give the reason."""
    said = "; ".join(f"{WORDS[name]} gives {estimate.rank}" for name, estimate in estimates.items())
    ranks = {name: estimate.rank for name, estimate in estimates.items()}
    if len(estimates) == 1:
        ((name, estimate),) = estimates.items()
        return estimate.rank, f"{WORDS[name]} alone was used: {estimate.reason}"
    if all(not estimate.curves for estimate in estimates.values()):
        first = next(iter(estimates.values()))
        return first.rank, first.reason
    if len(set(ranks.values())) == 1:
        return next(iter(ranks.values())), f"all agree ({said})."
    if incomplete and cross_validation.NAME in ranks:
        why = "entries are missing, which the singular values treat as zeros"
        return ranks[cross_validation.NAME], f"{said}. Cross-validation is followed: {why}."
    ratio = estimates.get(spectrum.NAME)
    if ratio is not None and ratio.curve is not None and (step := _step_words(ratio)):
        return ratio.rank, f"{said}. The spectrum has a step: {step}."
    for one, other in (
        (cross_validation.NAME, spectrum.NAME),
        (cross_validation.NAME, stability.NAME),
        (spectrum.NAME, stability.NAME),
    ):
        if (one, other) == (spectrum.NAME, stability.NAME) and not _stands_out(ratio):
            continue  # both may be small by chance: digits have 5 and 2 to 4, and predict best with 16
        if one in ranks and other in ranks and _close(ranks[one], ranks[other]):
            return ranks[one], f"{said}. {_capital(WORDS[one])} and {WORDS[other]} agree."
    name = cross_validation.NAME if cross_validation.NAME in ranks else next(iter(ranks))
    why = (
        "cross-validation is followed, because it alone predicts new entries"
        if name == cross_validation.NAME
        else f"{WORDS[name]} is followed, because there is no cross-validation"
    )
    return ranks[name], f"{said}. They differ, so the number of components is not clear-cut; {why}."


def _stands_out(ratio: RankResult | None) -> bool:
    return ratio is not None and ratio.curve is not None and spectrum.stands_out(ratio.curve.mean)


def _step_words(ratio: RankResult) -> str:
    curve = ratio.curve
    assert curve is not None
    if CONDITION in ratio.certificate and ratio.certificate[CONDITION].holds:
        return "condition (92) of Theorem 9 holds"
    ordered = np.sort(curve.mean)
    if len(ordered) > 1 and ordered[-1] > CLEAR * ordered[-2]:
        top = curve.candidates[int(np.argmax(curve.mean))]
        times = f"{ordered[-1] / ordered[-2]:.2g} times"
        return f"the ratio at {top}, {ordered[-1]:.3g}, is {times} the second largest"
    return ""


def _close(first: int, second: int) -> bool:
    return abs(first - second) <= max(1, round(0.1 * max(first, second)))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
