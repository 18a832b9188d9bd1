"""The rank whose fit predicts held-out entries best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nonneg._arguments import is_count
from nonneg._arrays import to_numpy
from nonneg._random import Seed, generator
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import FileFormatError, InvalidParameterError, UnknownNameError
from nonneg.iteration import Checkpoint, History
from nonneg.iteration.progress import StepCounter
from nonneg.rank_selection.candidates import RankProblem, between
from nonneg.rank_selection.holdouts import RIDGE, SHARE, Holdout, bi_cross_validation, wold_holdouts
from nonneg.rank_selection.result import RankCurve, RankResult, listed, scores_of
from nonneg.rank_selection.sampling import sample

NAME = "cross-validation"
HOLDOUTS = ("auto", "wold", "bi-cross-validation")
N_FOLDS = 5  # scikit-learn's default
# The default is the Wold hold-out up to this many entries: it costs k^2 operations per hidden entry and
# iteration more than a fit of complete data.
FEW_ENTRIES = 200_000
# The search ends once this many candidates in a row are worse than the best by more than a standard error.
PATIENCE = 3
# Differences below it are those of fits that have not converged: exact data give shares from 1e-13 to 7e-9.
_EXACT = 1e-8


def cross_validation(
    problem: RankProblem,
    *,
    n_folds: int = N_FOLDS,
    holdout: str = "auto",
    max_samples: int | None = None,
    rng: Seed = None,
    verbose: int = 0,
    checkpoint: Path | None = None,
) -> RankResult:
    """Return the smallest candidate that predicts held-out entries as well as the best, up to its error."""
    if not is_count(n_folds, 2):
        raise InvalidParameterError(f"n_folds must be an integer of at least 2, got {n_folds!r}.")
    if not isinstance(holdout, str) or holdout not in HOLDOUTS:
        raise UnknownNameError.of("holdout", holdout, HOLDOUTS)
    found = problem.trivial_answer(NAME)
    if found is not None:
        return found
    source = generator(rng)
    data = sample(problem.data, max_samples, source)
    root = int(source.integers(2**62))
    folds, kind = _folds(data, holdout, n_folds, np.random.default_rng([root, 0]))
    grid = _possible(problem.grid(), data, kind, n_folds)
    ridge = RIDGE * float(problem.singular_values[-1])
    # Only a grid is refined later, which needs the factors H of its candidates.
    known: dict[tuple[int, int], Array] | None = {} if problem.candidates is None else None
    search = Search(data, folds, root, ridge, verbose, known, checkpoint)
    errors = search.errors(grid, patience=PATIENCE if problem.candidates is None else None)
    grid = grid[: errors.shape[1]]
    if problem.candidates is None:
        chosen, _ = smallest_as_good(grid, errors)
        more = between(grid, chosen)
        if more:
            below = max((k for k in grid if k < more[0]), default=None)
            errors = np.concatenate([errors, search.errors(more, init_from=below)], axis=1)
            order = np.argsort([*grid, *more])
            grid, errors = sorted([*grid, *more]), errors[:, order]
    rank, best = smallest_as_good(grid, errors)
    curve = RankCurve(
        "held-out error", tuple(grid), errors.mean(axis=0), errors.std(axis=0, ddof=1), better="smaller"
    )
    return problem.answer(
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
        holdout = "wold" if small or data.observed is not None else "bi-cross-validation"
    if holdout == "wold":
        return wold_holdouts(data, n_folds, rng), holdout
    if data.observed is not None:
        raise InvalidParameterError(
            "holdout='bi-cross-validation' needs complete data, but entries are missing. Use holdout='wold'."
        )
    return bi_cross_validation(data, n_folds, rng), holdout


def _possible(grid: list[int], data: LocalMatrix, kind: str, n_folds: int) -> list[int]:
    # A fit without a block has fewer rows and columns than the data.
    limit = min(data.shape)
    if kind == "bi-cross-validation":
        limit -= -(-limit // n_folds)
    kept = [k for k in grid if k <= limit]
    if not kept:
        raise InvalidParameterError(
            f"Every candidate ({listed(grid)}) exceeds the {limit} rows or columns that a fold leaves. "
            "Use smaller candidates, more folds, or method='singular-value-ratio'."
        )
    return kept


@dataclass(frozen=True)
class Search:
    """Fits of all folds, which advance from candidate to candidate together."""

    data: LocalMatrix  # the data
    folds: Sequence[Holdout]  # what is held out
    root: int  # the seed
    ridge: float  # see `nested_fits`
    verbose: int  # 1 shows the candidates done
    # The factors Ht by fold and candidate, to initialize other candidates.
    factors: dict[tuple[int, int], Array] | None = None
    checkpoint: Path | None = None  # the folder in which it is saved

    def errors(
        self, candidates: list[int], *, init_from: int | None = None, patience: int | None = None
    ) -> FloatArray:
        """Return the held-out errors."""
        known = self.factors or {}
        stage = 1 if init_from is None else 2
        rngs = [np.random.default_rng([self.root, stage, number]) for number in range(len(self.folds))]
        saved = self._saved(stage, candidates)
        errors: FloatArray = np.zeros((len(self.folds), 0))
        fitted: list[tuple[Array, Array]] | None = None
        counter = StepCounter(NAME, len(candidates), self.verbose)
        if saved is not None and (found := saved.load(Reached())) is not None:
            errors, fitted = self._resumed(found[0], candidates, rngs)
            counter.done(f"resumed after k={candidates[errors.shape[1] - 1]}", errors.shape[1])
        paths = [
            fold.errors(
                self.data,
                candidates[errors.shape[1] :],
                rngs[number],
                ridge=self.ridge,
                init=None if init_from is None else known[number, init_from],
                fitted=None if fitted is None else fitted[number],
            )
            for number, fold in enumerate(self.folds)
        ]

        def work(first: int, last: int) -> list[tuple[float, Array, Array]]:
            return [next(paths[fold]) for fold in range(first, last)]

        for k in candidates[errors.shape[1] :]:
            if patience is not None and _is_past_best(errors, patience):
                break
            fits = [each for part in parallel_for(work, len(self.folds), chunk_size=1) for each in part]
            errors = np.column_stack([errors, [error for error, _, _ in fits]])
            if self.factors is not None:
                self.factors.update({(number, k): Ht for number, (_, _, Ht) in enumerate(fits)})
            if saved is not None:
                self._save(saved, candidates[: errors.shape[1]], errors, fits, rngs)
            counter.done(f"k={k}")
        return errors

    def _saved(self, stage: int, candidates: list[int]) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        kinds = [type(fold).__name__ for fold in self.folds]
        facts = [NAME, stage, candidates, self.root, self.ridge, kinds, self.factors is None]
        return Checkpoint.of(self.checkpoint / f"{NAME}-{stage}", facts, fingerprint(self.data))

    def _save(
        self,
        saved: Checkpoint,
        done: list[int],
        errors: FloatArray,
        fits: list[tuple[float, Array, Array]],
        rngs: list[np.random.Generator],
    ) -> None:
        """Save the errors, the last factors of every fold, and those that other candidates may begin with."""
        arrays = [factor for _, W, Ht in fits for factor in (W, Ht)]
        if self.factors is not None:
            arrays += [self.factors[number, k] for k in done for number in range(len(fits))]
        plain = [to_numpy(array) for array in arrays]
        reached = Reached(
            errors,
            np.concatenate([array.ravel() for array in plain]),
            np.array([array.shape for array in plain]),
            json.dumps([rng.bit_generator.state for rng in rngs]),
        )
        saved.save(reached, len(done), 0.0, History())

    def _resumed(
        self, reached: Reached, candidates: list[int], rngs: list[np.random.Generator]
    ) -> tuple[FloatArray, list[tuple[Array, Array]]]:
        """Return the errors and the last factors of every fold; factors and generators are as they were."""
        n_folds, n_done = len(self.folds), reached.errors.shape[1]
        try:
            ends = np.cumsum(reached.shapes.prod(axis=1))[:-1]
            parts = zip(np.split(reached.entries, ends), reached.shapes.tolist(), strict=True)
            arrays = [self.data.to_device(part.reshape(shape)) for part, shape in parts]
            if self.factors is not None:
                names = [(number, k) for k in candidates[:n_done] for number in range(n_folds)]
                self.factors.update(zip(names, arrays[2 * n_folds :], strict=True))
            for rng, state in zip(rngs, json.loads(reached.generators), strict=True):
                rng.bit_generator.state = state
            fitted = [(arrays[2 * at], arrays[2 * at + 1]) for at in range(n_folds)]
            if not all(W.shape[1] == Ht.shape[1] == candidates[n_done - 1] for W, Ht in fitted):
                raise ValueError("factors of another candidate")
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise FileFormatError(
                f"The checkpoint in {self.checkpoint} cannot be read ({error}). Delete it to start over, or "
                "name another folder."
            ) from error
        return reached.errors, fitted


@dataclass(frozen=True)
class Reached:
    """How far a search has come, as its checkpoint keeps it: all factors in one array, with their shapes."""

    errors: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    entries: FloatArray = field(default_factory=lambda: np.zeros(0))
    shapes: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    generators: str = ""


def _is_past_best(errors: FloatArray, patience: int) -> bool:
    if errors.shape[1] <= patience:
        return False
    best = int(np.argmin(errors.mean(axis=0)))
    if errors.shape[1] - 1 - best < patience:
        return False
    later = errors[:, -patience:] - errors[:, [best]]
    return bool(np.all(later.mean(axis=0) > later.std(axis=0, ddof=1) / np.sqrt(len(errors))))


def smallest_as_good(candidates: Sequence[int], errors: FloatArray) -> tuple[int, int]:
    """Return the choice of the one-standard-error rule (on differences within folds) and the best one."""
    best = int(np.argmin(errors.mean(axis=0)))
    excess = errors - errors[:, [best]]
    allowed = excess.std(axis=0, ddof=1) / np.sqrt(len(errors))
    as_good = excess.mean(axis=0) <= np.maximum(allowed, _EXACT)
    return int(candidates[int(np.flatnonzero(as_good)[0])]), int(candidates[best])


def _reason(curve: RankCurve, rank: int, best: int, kind: str, n_folds: int) -> str:
    error, least = curve.at(rank), curve.at(best)
    assert error is not None
    assert least is not None
    what = f"{100 * SHARE:.0f}% of the entries at a time" if kind == "wold" else "blocks of entries"
    if rank == best:
        compared = f"the least of {len(curve.candidates)} candidates"
    else:
        compared = f"within one standard error or rounding of the least, {least[0]:.4g} at {best}"
    return (
        f"with {rank} components {error[0]:.4g} of the squares of held-out entries is not explained, "
        f"{compared} ({n_folds} folds, {what})."
    )
