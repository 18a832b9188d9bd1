"""Comparison of estimates of the rank, judged by the held-out error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from nonneg._arguments import checked_checkpoint, checked_verbose, typed
from nonneg._html import element, table
from nonneg._interruption import ended_by_interrupt
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import MatrixLike
from nonneg.certificates.plain_values import PlainValues
from nonneg.data import DataMatrix
from nonneg.data.door import Request, wrap
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError, UnsupportedInputError
from nonneg.rank_selection import cross_validation, spectrum
from nonneg.rank_selection.candidates import RankProblem, rank_problem
from nonneg.rank_selection.estimate import MAX_SAMPLES, METHODS, checked_max_samples
from nonneg.rank_selection.result import RankResult

# The rank of one among so many more is a test at the level of 5%.
N_PERMUTED = 19


@dataclass(frozen=True)
class RankComparison(PlainValues):
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

    def table(self) -> list[dict[str, Any]]:
        """Return one record per candidate.

        Returns
        -------
        list of dict
            "k" and a column for every measure, with its spread (standard deviation over folds). Ratios
            are shown at the candidates that were fitted, and at those recommended.
        """
        curves = [curve for estimate in self.estimates.values() for curve in estimate.curves]
        fitted = {k for curve in curves if curve.name != "singular-value ratio" for k in curve.candidates}
        chosen = {estimate.rank for estimate in self.estimates.values()} | {self.rank}
        known = {k for curve in curves for k in curve.candidates}
        rows = []
        for k in sorted((fitted or known) | (chosen & known)):
            row: dict[str, Any] = {"k": k}
            for curve in curves:
                column = "held_out_error" if curve.name == "held-out error" else "ratio"
                value = curve.at(k)
                row[column] = None if value is None else value[0]
                if np.any(curve.spread > 0):
                    row[f"{column}_spread"] = None if value is None else value[1]
            rows.append(row)
        return rows

    def _as_plain(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "reason": self.reason,
            "estimates": {name: estimate.as_dict() for name, estimate in self.estimates.items()},
            "left_out": dict(self.left_out),
            "table": self.table(),
        }

    @classmethod
    def _of_plain(cls, values: Mapping[str, Any]) -> Self:
        estimates = {name: RankResult.from_dict(entry) for name, entry in values["estimates"].items()}
        return cls(int(values["rank"]), str(values["reason"]), estimates, values["left_out"])

    def __repr__(self) -> str:
        ranks = ", ".join(f"{name}: {estimate.rank}" for name, estimate in self.estimates.items())
        return f"RankComparison(rank={self.rank}; {ranks}. {self.reason})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, int | str, str]] = [
            (name, result.rank, result.reason) for name, result in self.estimates.items()
        ]
        rows += [(name, "left out", why) for name, why in self.left_out.items()]
        text = element("p", f"{self.rank} components: {self.reason}")
        return text + table(["method", "components", "reason"], rows)


@ended_by_interrupt()
def compare_ranks(
    X: MatrixLike,
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
        Names of methods of `estimate_rank`; both by default.
    k_min, k_max : int, default 2 and None
        The range of the candidates; see `estimate_rank`, also for the parameters that follow.
    candidates, normalize, max_samples, mask : Any, optional
        Candidates, norm of the samples, samples of cross-validation, observed entries.
    missing : {"error", "mask"}, default "error"
        What NaN means.
    rng, n_jobs : Any, optional
        Random numbers of folds and samples, and number of threads.
    verbose : int, default 0
        1 shows how many fits are done.
    checkpoint : str or Path, optional
        Folder in which cross-validation is saved, and from which the same call resumes it.
    method_params : dict, optional
        Parameters of the methods: `n_folds` of cross-validation.

    Returns
    -------
    RankComparison
        The recommendation, its reason and the estimates.

    Notes
    -----
    The singular-value ratio proposes and the held-out error judges: the recommendation is the rank with the
    largest ratio, unless its held-out error is significantly above that of the best rank (a paired t test of
    the logarithms over folds, level 0.05), or one component predicts as well and the ratio is not beyond
    chance (above those of 19 permutations of the entries of each column; Buja & Eyuboglu, 1992). Then no
    number stands out, and the smallest rank whose error is not significantly above is recommended. Where
    there is no held-out error (sample weights, negative entries, very small data), the ratio is followed.
    """
    typed(compare_ranks, locals())
    chosen = list(METHODS) if methods is None else list(methods)
    for name in chosen:
        UnknownNameError.check("methods", name, METHODS)
    if not chosen:
        raise InvalidParameterError(f"methods must name at least one of {sorted(METHODS)}, got none.")
    params = dict(method_params or {})
    for option in params:
        if not any(option in METHODS[name].options for name in chosen):
            METHODS.check_options(chosen[0], [option])
    max_samples, verbose = checked_max_samples(max_samples), checked_verbose(verbose)
    folder = checked_checkpoint(checkpoint)
    data = wrap(X, Request(mask=mask, missing=missing, signed=chosen == [spectrum.NAME], who="compare_ranks"))
    with threads(n_jobs):
        problem = rank_problem(data, k_min, k_max, candidates, normalize=normalize)
        return _compared(problem, chosen, rng, params, max_samples, verbose, folder)


def automatic_rank(
    data: DataMatrix,
    *,
    methods: Sequence[str] = (spectrum.NAME, cross_validation.NAME),
    n_jobs: int | None = None,
    verbose: int = 0,
) -> RankComparison:
    """Recommend the rank of ``compare_ranks(data, rng=0)``, for any data that an estimator accepts."""
    with threads(n_jobs):
        problem = rank_problem(data, 2, None, None)
        signed = data.extremes()[0] < 0
        chosen = [spectrum.NAME] if signed else methods
        result = _compared(problem, chosen, 0, {}, MAX_SAMPLES, verbose, None)
    notes = ["Held-out errors need data without negative entries."] if signed else result.left_out.values()
    return replace(result, reason=" ".join([result.reason, *notes]))


def _compared(
    problem: RankProblem,
    chosen: Sequence[str],
    rng: Seed,
    params: Mapping[str, Any],
    max_samples: int | None,
    verbose: int,
    folder: Path | None,
) -> RankComparison:
    estimates: dict[str, RankResult] = {}
    left_out: dict[str, str] = {}
    # The seed of a method does not depend on which other methods run.
    *seeds, chance = generator(rng).integers(2**62, size=len(METHODS) + 1).tolist()
    for (name, entry), seed in zip(METHODS.items(), seeds, strict=True):
        if name not in chosen:
            continue
        own = {option: value for option, value in params.items() if option in entry.options}
        try:
            estimates[name] = entry.run(
                problem, rng=int(seed), max_samples=max_samples, verbose=verbose, checkpoint=folder, **own
            )
        except (InvalidDataError, UnsupportedInputError) as error:
            if list(chosen) == [name]:
                raise
            left_out[name] = str(error)
    alone = len(estimates) > 1 and 1 in estimates[cross_validation.NAME].as_good and problem.k_min > 1
    n_as_large = ratios_by_chance(problem, max_samples, np.random.default_rng(chance)) if alone else None
    return RankComparison(*recommend(estimates, n_as_large), estimates, left_out)


def ratios_by_chance(problem: RankProblem, max_samples: int | None, rng: np.random.Generator) -> int:
    """Count the matrices with the entries of each column permuted whose largest ratio is as large."""
    # Buja & Eyuboglu (1992), Remarks on parallel analysis, Multivariate Behavioral Research 27(4).
    X, mask = cross_validation.sample(problem.data, max_samples, rng)
    X = sp.csc_array(X if mask is None else X * mask)

    def largest(matrix: Any) -> float:
        data = wrap(sp.csr_array(matrix), Request(signed=True, who="compare_ranks"))
        return float(rank_problem(data, problem.k_min, problem.k_max, problem.candidates).ratios().max())

    observed, n_as_large = largest(X), 0
    for _ in range(N_PERMUTED):
        rows = [rng.permutation(X.shape[0])[:count] for count in np.diff(X.indptr)]
        n_as_large += largest(sp.csc_array((X.data, np.concatenate(rows), X.indptr), X.shape)) >= observed
    return n_as_large


def recommend(estimates: Mapping[str, RankResult], n_as_large: int | None = None) -> tuple[int, str]:
    """Let the held-out error judge the rank of the largest ratio, which `n_as_large` have by chance."""
    judge, proposal = estimates.get(cross_validation.NAME), estimates.get(spectrum.NAME)
    if judge is None or proposal is None or not judge.curves:
        only = judge or next(iter(estimates.values()))
        name = cross_validation.NAME if only is judge else "the singular-value ratio"
        return only.rank, f"{name} alone was used: {only.reason}" if only.curves else only.reason
    k, least = proposal.rank, min(judge.as_good, key=lambda rank: judge.scores[rank])
    proposed = proposal.reason.rstrip(".")
    if k not in judge.scores:
        why = f"but the held-out error with {k} components was not measured"
        return judge.rank, f"no number stands out: {proposed}, {why}. Here, {judge.reason}"
    error, best = f"{judge.scores[k]:.4g}", f"{judge.scores[least]:.4g} with {least}"
    # Of up to `max_samples` samples, whose ratio is not that of all.
    permuted = f"of {N_PERMUTED} permutations of the entries of each column"
    own = "the same samples a ratio as large as their own."
    if n_as_large:
        return judge.rank, (
            f"no number stands out: {proposed}, but {n_as_large} {permuted} give{'s' * (n_as_large == 1)} "
            f"{own} A single component predicts held-out entries as well: error {judge.scores[1]:.4g} "
            f"(least: {best})."
        )
    if k in judge.as_good:
        compared = "the least" if k == least else f"not significantly above the least ({best})"
        few = min(judge.as_good)
        like = f" {few} predict{'s' * (few == 1)} as well, up to chance"
        fewer = f"{like}: held-out errors do not single out {k}." * (few < k)
        fewer += f" None {permuted} gives {own}" * (n_as_large == 0)
        return k, f"{proposed}. The held-out error with {k} is {error}, {compared}.{fewer}"
    smallest = f"{judge.rank} is the smallest number with an error that is not"
    if judge.rank not in judge.as_good:
        smallest = "So are those of all candidates"
    elif judge.rank != least:
        smallest += f" ({judge.scores[judge.rank]:.4g})"
    return judge.rank, (
        f"no number stands out: the singular values propose {k}, but the held-out error with {k} components, "
        f"{error}, is significantly above the least ({best}). {smallest}."
    )
