"""The largest rank for which restarts from random factors find the same components."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import is_count
from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray, IntArray
from nonneg.data import LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration import Checkpoint, History, Run
from nonneg.iteration.progress import StepCounter
from nonneg.metrics import match_components
from nonneg.rank_selection.candidates import RankProblem
from nonneg.rank_selection.consensus import consensus_matrix, cophenetic_correlation, dispersion
from nonneg.rank_selection.result import RankCurve, RankResult, scores_of
from nonneg.rank_selection.sampling import sample
from nonneg.solvers.restarts import run_restarts

NAME = "stability"
N_INIT = 10
# Maximum number of samples in the consensus matrix, drawn at random: it is quadratic in their number.
MAX_POINTS = 1000
# Groups of the jackknife over restarts.
N_GROUPS = 5
# Restarts are compared with each other, for which loosely converged fits suffice.
MAX_ITER, TOL = 100, 1e-3
# Mean cosines that differ by less (an angle of 4 degrees from 1) are considered equal.
CLOSE = 0.003


@dataclass(frozen=True)
class Restart:
    """One run from random factors."""

    labels: IntArray  # the strongest component of each sample
    H: FloatArray  # the components
    loss: float  # the final loss


@dataclass(frozen=True)
class Compared:
    """What was measured so far, by candidate, as the checkpoint keeps it: three means with their spreads."""

    measures: FloatArray = field(default_factory=lambda: np.zeros((0, 3, 2)))


def stability(
    problem: RankProblem,
    *,
    n_init: int = N_INIT,
    max_samples: int | None = None,
    rng: Seed = None,
    verbose: int = 0,
    checkpoint: Path | None = None,
) -> RankResult:
    """Return the largest candidate for which restarts agree as well as for the best candidate."""
    if not is_count(n_init, 3):
        raise InvalidParameterError(f"n_init must be an integer of at least 3 restarts, got {n_init!r}.")
    found = problem.trivial_answer(NAME)
    if found is not None:
        return found
    source = generator(rng)
    data = sample(problem.data, max_samples, source)
    root = int(source.integers(2**62))
    n_rows = data.shape[0]
    points = np.sort(np.random.default_rng([root, 0]).permutation(n_rows)[:MAX_POINTS])
    candidates = [k for k in problem.grid() if k <= min(data.shape)] or [min(data.shape)]
    counter = StepCounter("stability", n_init * len(candidates), verbose)
    measures: list[list[tuple[float, float]]] = []
    saved = None
    if checkpoint is not None:
        facts = [NAME, candidates, root, n_init]
        saved = Checkpoint.of(checkpoint / NAME, facts, fingerprint(data))
    if saved is not None and (found_saved := saved.load(Compared())) is not None:
        measures = [[(mean, spread) for mean, spread in each] for each in found_saved[0].measures.tolist()]
        counter.done(f"resumed after k={candidates[len(measures) - 1]}", n_init * len(measures))
    for k in candidates[len(measures) :]:
        measures.append(_measures(data, k, points, n_init, root, counter))
        if saved is not None:
            saved.save(Compared(np.array(measures)), len(measures), 0.0, History())
    curves = tuple(
        RankCurve(
            name,
            tuple(candidates),
            np.array([each[at][0] for each in measures]),
            np.array([each[at][1] for each in measures]),
        )
        for at, name in enumerate(("component agreement", "cophenetic correlation", "dispersion"))
    )
    rank = largest_as_stable(curves[0], n_init - 1)
    at = candidates.index(rank)
    reason = (
        f"{rank} is the largest of {len(candidates)} candidates for which {n_init} restarts agree as well as "
        f"for the best: matched components have a mean cosine of {measures[at][0][0]:.4f}; cophenetic "
        f"correlation {measures[at][1][0]:.3f}, dispersion {measures[at][2][0]:.3f} on {len(points)} samples."
    )
    return problem.answer(rank, reason, NAME, scores=scores_of(curves[0]), curves=curves)


def _measures(
    data: LocalMatrix, k: int, points: IntArray, n_init: int, root: int, counter: StepCounter
) -> list[tuple[float, float]]:
    runs = run_restarts(
        data,
        k,
        [np.random.default_rng([root, 1, k, number]) for number in range(n_init)],
        solver="hals",
        max_iter=MAX_ITER,
        tol=TOL,
        finish=lambda run: _restart(run, points),
    )
    counter.done(f"k={k}", n_init)
    labels = np.array([run.labels for run in runs])
    best = min(runs, key=lambda run: run.loss)
    # Each of the others against the best one.
    cosines = np.array([match_components(best.H, run.H).cosines.mean() for run in runs if run is not best])
    whole = consensus_matrix(labels)
    groups = np.array_split(np.arange(n_init), min(N_GROUPS, n_init))
    parts = [consensus_matrix(np.delete(labels, group, axis=0)) for group in groups]
    return [
        (float(cosines.mean()), float(cosines.std(ddof=1))),
        (cophenetic_correlation(whole), _jackknife([cophenetic_correlation(part) for part in parts])),
        (dispersion(whole), _jackknife([dispersion(part) for part in parts])),
    ]


def _restart(run: Run[Any], points: IntArray) -> Restart:
    W, Ht = to_float64(run.state.W), to_float64(run.state.Ht)
    # The scale of a component is arbitrary: compare the norms of the parts of the sample.
    shares = W[points] * np.linalg.norm(Ht, axis=0)
    return Restart(np.argmax(shares, axis=1), Ht.T, float(run.history.loss[-1]))


def _jackknife(values: list[float]) -> float:
    n = len(values)
    return float(np.sqrt((n - 1) / n * np.sum((np.array(values) - np.mean(values)) ** 2)))


def largest_as_stable(curve: RankCurve, n_compared: int) -> int:
    """Return the largest candidate whose measure is as high as the best one's, up to its standard error."""
    best = int(np.argmax(curve.mean))
    allowed = max(CLOSE, float(curve.spread[best]) / np.sqrt(n_compared))
    return int(curve.candidates[int(np.flatnonzero(curve.mean >= curve.mean[best] - allowed)[-1])])
