"""Stability of the rank over restarts: cophenetic correlation of the consensus matrix."""

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
from nonneg.data.local import local_matrix
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration import Checkpoint, History, Run
from nonneg.iteration.progress import StepCounter
from nonneg.rank_selection.candidates import RankProblem
from nonneg.rank_selection.cross_validation import sample
from nonneg.rank_selection.result import RankCurve, RankResult, scores_of
from nonneg.solvers.restarts import run_restarts

NAME = "stability"
N_INIT = 10
# Maximum number of samples in the consensus matrix, drawn at random: it is quadratic in their number.
MAX_POINTS = 1000
# Restarts are compared with each other, for which loosely converged fits suffice.
MAX_ITER, TOL = 100, 1e-3


@dataclass(frozen=True)
class Compared:
    """Cophenetic correlation and dispersion of the candidates so far, as the checkpoint keeps them."""

    measures: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))


def stability(
    problem: RankProblem,
    *,
    n_init: int = N_INIT,
    max_samples: int | None = None,
    rng: Seed = None,
    verbose: int = 0,
    checkpoint: Path | None = None,
) -> RankResult:
    """Return the candidate after which the cophenetic correlation begins to fall."""
    if not is_count(n_init, 3):
        raise InvalidParameterError(f"n_init must be an integer of at least 3 restarts, got {n_init!r}.")
    trivial = problem.trivial_answer(NAME)
    if trivial is not None:
        return trivial
    source = generator(rng)
    X, mask = sample(problem.data, max_samples, source)
    data = local_matrix(X, mask=mask)
    root = int(source.integers(2**62))
    points = np.sort(np.random.default_rng([root, 0]).permutation(data.shape[0])[:MAX_POINTS])
    candidates = [k for k in problem.grid() if k <= min(data.shape)] or [min(data.shape)]
    counter = StepCounter("stability", n_init * len(candidates), verbose)
    measures: list[list[float]] = []
    saved = None
    if checkpoint is not None:
        saved = Checkpoint.of(checkpoint / NAME, [NAME, candidates, root, n_init], fingerprint(data))
    if saved is not None and (loaded := saved.load(Compared())) is not None:
        measures = loaded[0].measures.tolist()
        counter.done(f"resumed after k={candidates[len(measures) - 1]}", n_init * len(measures))
    for k in candidates[len(measures) :]:
        consensus = consensus_matrix(_labels(data, k, points, n_init, root))
        measures.append([cophenetic_correlation(consensus), dispersion(consensus)])
        counter.done(f"k={k}", n_init)
        if saved is not None:
            saved.save(Compared(np.array(measures)), len(measures), 0.0, History())
    curves = tuple(
        RankCurve(name, tuple(candidates), values, np.zeros(len(candidates)))
        for name, values in zip(("cophenetic correlation", "dispersion"), np.transpose(measures), strict=True)
    )
    at = first_fall(curves[0].mean)
    rank = candidates[at]
    if at == len(candidates) - 1:
        compared = "and does not fall up to the largest candidate"
    else:
        compared = f"and falls to {curves[0].mean[at + 1]:.3f} with {candidates[at + 1]}"
    reason = (
        f"with {rank} components the cophenetic correlation of {n_init} restarts is "
        f"{curves[0].mean[at]:.3f}, {compared} ({len(points)} samples; dispersion "
        f"{curves[1].mean[at]:.3f})."
    )
    return problem.answer(rank, reason, NAME, scores=scores_of(curves[0]), curves=curves)


def first_fall(values: FloatArray) -> int:
    """Return the place after which values begin to fall, the last one if they never do."""
    # Brunet, Tamayo, Golub & Mesirov (2004), PNAS 101(12), 4164-4169. To the three digits that are shown.
    falls = np.flatnonzero(np.diff(np.round(values, 3)) < 0)
    return int(falls[0]) if len(falls) else len(values) - 1


def _labels(data: LocalMatrix, k: int, points: IntArray, n_init: int, root: int) -> IntArray:
    """Return the strongest component of each sample in every restart."""

    def strongest(run: Run[Any]) -> IntArray:
        W, Ht = to_float64(run.state.W), to_float64(run.state.Ht)
        # The scale of a component is arbitrary: compare the norms of the parts of the sample.
        return np.argmax(W[points] * np.linalg.norm(Ht, axis=0), axis=1)

    rngs = [np.random.default_rng([root, 1, k, number]) for number in range(n_init)]
    return np.array(run_restarts(data, k, rngs, solver="hals", max_iter=MAX_ITER, tol=TOL, finish=strongest))


def consensus_matrix(labels: Any) -> FloatArray:
    """Return the share of runs in which two samples have the same label."""
    labels = np.asarray(labels)
    # Short integers: all counts together stay in cache.
    total = np.zeros((labels.shape[1], labels.shape[1]), dtype=np.min_scalar_type(len(labels)))
    for run in labels:
        total += run[:, None] == run[None, :]
    return total / len(labels)


def cophenetic_correlation(consensus: FloatArray) -> float:
    """Return the cophenetic correlation of 1 - consensus with its average-linkage tree."""
    # Imported here, because a fit with a given number of components should not wait for it.
    from scipy.cluster.hierarchy import cophenet, linkage

    distances = 1.0 - consensus[np.triu_indices(len(consensus), 1)]
    if distances.size < 2 or np.all((distances == 0.0) | (distances == 1.0)):
        return 1.0
    tree = cophenet(linkage(distances, "average"))
    if np.ptp(distances) == 0.0 or np.ptp(tree) == 0.0:
        # Every pair is together equally often: there are no clusters.
        return 0.0
    return float(np.corrcoef(distances, tree)[0, 1])


def dispersion(consensus: FloatArray) -> float:
    """Return the dispersion coefficient: 1 where all entries are 0 or 1, 0 where all are 1/2."""
    # Kim & Park (2007), Bioinformatics 23(12), 1495-1502.
    return float(np.mean(4.0 * (consensus - 0.5) ** 2))
