"""The rank that predicts entries it has not seen best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from nonneg._random import Seed, generator
from nonneg._threads import over_ranges
from nonneg._typing import FloatArray
from nonneg.data import LocalMatrix
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.iteration.progress import StepCounter
from nonneg.rank_selection.candidates import Question, between
from nonneg.rank_selection.holdouts import RIDGE, SHARE, Holdout, block_holdouts, entry_holdouts
from nonneg.rank_selection.result import RankCurve, RankResult, listed, scores_of
from nonneg.rank_selection.sampling import sample

NAME = "cross-validation"
HOLDOUTS = ("auto", "entries", "blocks")
N_FOLDS = 5
FEW_ENTRIES = 2_000_000
"""Up to so many entries single ones are held out by default, beyond it blocks."""
PATIENCE = 3
"""The search ends after so many candidates that are all worse than the best by more than a standard error."""


def cross_validation(
    question: Question,
    *,
    n_repeats: int | None = None,
    holdout: str = "auto",
    max_samples: int | None = None,
    rng: Seed = None,
    verbose: int = 0,
) -> RankResult:
    """Return the smallest candidate that predicts held-out entries as well as the best, up to its error.

    Parameters
    ----------
    question : Question
        The data and the candidates.
    n_repeats : int, optional
        The number of folds, at least 2; 5 by default.
    holdout : {"auto", "entries", "blocks"}
        What a fold holds out; see `nonneg.estimate_rank`.
    max_samples : int, optional
        At most so many points take part.
    rng : None, int, Generator, RandomState or SeedSequence
        Draws points, folds and starts.
    verbose : int
        1 shows the fits that are done.

    Returns
    -------
    RankResult
        Its curve is the share of the held-out squares that is not explained, smaller is better.
    """
    n_folds = N_FOLDS if n_repeats is None else n_repeats
    if n_folds < 2:
        raise InvalidParameterError(f"Expected n_repeats of at least 2 folds, got {n_folds}.")
    if holdout not in HOLDOUTS:
        raise UnknownNameError.of("holdout", holdout, HOLDOUTS)
    found = question.way_out(NAME)
    if found is not None:
        return found
    source = generator(rng)
    data = sample(question.data, max_samples, source)
    root = int(source.integers(2**62))
    folds, kind = _folds(data, holdout, n_folds, np.random.default_rng([root, 0]))
    grid = _possible(question.grid(), data, kind, n_folds)
    ridge = RIDGE * float(question.singular_values[-1])
    measure = partial(_measure, data, folds, root=root, ridge=ridge, verbose=verbose)
    errors = measure(grid, patience=PATIENCE if question.candidates is None else None)
    grid = grid[: errors.shape[1]]
    if question.candidates is None:
        chosen, _ = smallest_as_good(grid, errors)
        more = between(grid, chosen)
        if more:
            errors = np.concatenate([errors, measure(more)], axis=1)
            order = np.argsort([*grid, *more])
            grid, errors = sorted([*grid, *more]), errors[:, order]
    rank, best = smallest_as_good(grid, errors)
    curve = RankCurve(
        "held-out error", tuple(grid), errors.mean(axis=0), errors.std(axis=0, ddof=1), better="smaller"
    )
    return question.answer(
        rank,
        _reason(curve, rank, best, kind, n_folds),
        NAME,
        scores=scores_of(curve),
        curves=(curve,),
    )


def _folds(
    data: LocalMatrix, holdout: str, n_folds: int, rng: np.random.Generator
) -> tuple[list[Holdout], str]:
    n_rows, n_columns = data.shape
    if holdout == "auto":
        small = n_rows * n_columns <= FEW_ENTRIES or min(n_rows, n_columns) < 2 * n_folds
        holdout = "entries" if small or data.observed is not None else "blocks"
    if holdout == "entries":
        return entry_holdouts(data, n_folds, rng), holdout
    if data.observed is not None:
        raise InvalidParameterError(
            "holdout='blocks' needs complete data, and entries are missing. Use holdout='entries'."
        )
    return block_holdouts(data, n_folds, rng), holdout


def _possible(grid: list[int], data: LocalMatrix, kind: str, n_folds: int) -> list[int]:
    # A fit without a block has fewer rows and columns than the data.
    limit = min(data.shape)
    if kind == "blocks":
        limit -= -(-limit // n_folds)
    kept = [k for k in grid if k <= limit]
    if not kept:
        raise InvalidParameterError(
            f"Every candidate ({listed(grid)}) is larger than the {limit} rows or columns that a fold "
            "leaves. "
            "Use smaller candidates, more folds, or method='singular-value-ratio'."
        )
    return kept


def _measure(
    data: LocalMatrix,
    folds: Sequence[Holdout],
    candidates: list[int],
    *,
    root: int,
    ridge: float,
    verbose: int,
    patience: int | None = None,
) -> FloatArray:
    # All folds go from candidate to candidate together, so that where to stop does not depend on threads.
    paths = [
        fold.errors(data, candidates, np.random.default_rng([root, 1, number]), ridge=ridge)
        for number, fold in enumerate(folds)
    ]
    counter = StepCounter(NAME, len(candidates), verbose)
    errors = np.zeros((len(folds), 0))

    def work(start: int, stop: int) -> list[float]:
        return [next(paths[fold])[1] for fold in range(start, stop)]

    for k in candidates:
        column = [error for part in over_ranges(work, len(folds), grain=1) for error in part]
        errors = np.column_stack([errors, column])
        counter.done(f"k={k}")
        best = int(np.argmin(errors.mean(axis=0)))
        if patience is not None and errors.shape[1] - 1 - best >= patience:
            later = errors[:, best + 1 :] - errors[:, [best]]
            if np.all(later.mean(axis=0) > later.std(axis=0, ddof=1) / np.sqrt(len(folds))):
                break
    return errors


def smallest_as_good(candidates: Sequence[int], errors: FloatArray) -> tuple[int, int]:
    """Apply the one-standard-error rule to differences within folds.

    Parameters
    ----------
    candidates : sequence of int
        In ascending order.
    errors : array of shape (n_folds, n_candidates)
        The held-out errors.

    Returns
    -------
    rank : int
        The smallest candidate whose error exceeds that of the best by at most one standard error of their
        difference over the folds. What all candidates of a fold share, such as a part of the data that is
        hard to predict, is no uncertainty about which of them is better.
    best : int
        The candidate with the smallest mean error.
    """
    best = int(np.argmin(errors.mean(axis=0)))
    excess = errors - errors[:, [best]]
    allowed = excess.std(axis=0, ddof=1) / np.sqrt(len(errors))
    # Exact fits differ by rounding.
    as_good = excess.mean(axis=0) <= np.maximum(allowed, 1e-9)
    return int(candidates[int(np.flatnonzero(as_good)[0])]), int(candidates[best])


def _reason(curve: RankCurve, rank: int, best: int, kind: str, n_folds: int) -> str:
    error, least = curve.at(rank), curve.at(best)
    assert error is not None
    assert least is not None
    what = f"{100 * SHARE:.0f}% of the entries at a time" if kind == "entries" else "blocks of entries"
    if rank == best:
        compared = f"the least of {len(curve.candidates)} candidates"
    else:
        compared = f"within one standard error of the least, {least[0]:.4g} at {best}"
    return (
        f"with {rank} components {error[0]:.4g} of the squares of held-out entries is not explained, "
        f"{compared} ({n_folds} folds, {what})."
    )
