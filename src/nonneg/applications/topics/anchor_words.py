"""Anchor words: words that occur in one topic alone, found among the rows of the word-word correlation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.word_correlation import WordCorrelation
from nonneg.data import as_data_matrix
from nonneg.data.spectral import leading_vectors
from nonneg.iteration import Progress
from nonneg.separable.certificate import with_statements
from nonneg.separable.registry import METHODS, split_params
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from nonneg.separable.weights import anchor_weights

# The paper's settings for topics, in the objective with the 1/2 of its (18): the authors' programs leave it
# out, so that their weight of 1e-6 and gap of 0.5 are twice these.
LAM, MU, GAP, LAST_ITERATION = 5e-7, 1e-5, 0.25, 100


def reduced_words(weights: Any, n_directions: int) -> FloatArray:
    """Return the words in few dimensions: normalized correlations along their leading directions."""
    correlation = WordCorrelation(weights, normalized=True)
    return correlation.times(correlation.to_device(leading_vectors(correlation, n_directions)))


def find_anchor_words(
    points: FloatArray,
    n_topics: int,
    *,
    method: str = "merit",
    rng: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    as_published: bool = False,
    **options: Any,
) -> SelectionResult:
    """Search for anchor words."""
    # MERIT starts from the anchors of successive projections and goes on at iteration t, the whole part of
    # ``sqrt(n_words) / ||R||`` with R the residuals of that start, to iteration 100 or a duality gap of 0.25.
    name = "merit" if method == "merit-0" else METHODS.name_of(method)
    if name == "merit":
        settings = merit_settings(to_float64(points), n_topics, options, as_published=as_published)
        if method == "merit-0":
            settings["lam"] = 0.0
    else:
        settings = {}
    settings |= options
    if METHODS.find(name).kind == "convex":
        settings["verbose"] = verbose
    if not METHODS.find(name).signed:
        # XRAY takes projections of nonnegative points, which `select_anchors` cannot tell from signed data.
        return _projected_search(name, points, n_topics, settings, rng=rng, n_jobs=n_jobs)
    return select_anchors(points, n_topics, method=name, rng=rng, n_jobs=n_jobs, **split_params(settings))


def _projected_search(
    name: str,
    points: FloatArray,
    n_topics: int,
    settings: Mapping[str, Any],
    *,
    rng: Seed,
    n_jobs: int | None,
) -> SelectionResult:
    entry, data = METHODS.find(name), as_data_matrix(points)
    keywords = {**settings, "rng": rng} if entry.seeded else dict(settings)
    METHODS.check_options(name, settings)
    with threads(n_jobs):
        return with_statements(entry.run(data, n_topics, **keywords), data)


def merit_settings(
    points: FloatArray, n_topics: int, given: Mapping[str, Any], *, as_published: bool = False
) -> dict[str, Any]:
    """Return the options with which the paper runs MERIT on words."""
    common = {"lam": LAM, "mu": MU, "steps": "open-loop", "choice": "row-maxima"}
    if "init" in given or "t_init" in given:
        return {**common, "max_iter": LAST_ITERATION, "tol": GAP}
    first = select_anchors(points, n_topics, method="spa").anchors
    t = start_iteration(points, first)
    found = {**common, "init": first, "t_init": t, "max_iter": LAST_ITERATION - t}
    if as_published:
        return {**found, "callback": _one_step_after(GAP), "tol": 0.0, "ties": "first"}
    return {**found, "tol": GAP}


def start_iteration(points: FloatArray, anchors: IntArray) -> int:
    """Return from which iteration MERIT continues after a start with anchors."""
    corners = points[anchors]
    residual = points - anchor_weights(as_data_matrix(points), corners, sum_to_one=True) @ corners
    size = float(np.linalg.norm(residual))
    theirs = math.inf if size == 0 else math.sqrt(len(points)) / size
    return int(np.clip(math.floor(min(theirs, 1e6)) - 1, 1, LAST_ITERATION - 1))


def _one_step_after(gap: float) -> Callable[[Progress], bool]:
    # The authors look at the gap of the iterate before a step once the step is done.
    before = [math.inf]

    def stop(progress: Progress) -> bool:
        enough = before[0] < gap
        before[0] = float(progress.history["gap"][-1])
        return enough

    return stop
