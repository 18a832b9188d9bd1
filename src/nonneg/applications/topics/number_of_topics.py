"""How many topics: how clearly they divide the documents, and how stable and coherent they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from nonneg._random import generator, whole_number
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.methods import FoundTopics, Task
from nonneg.applications.topics.quality import topic_npmi
from nonneg.applications.topics.term_weights import term_weights
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration.progress import StepCounter
from nonneg.metrics.networks import overlapping_modularity
from nonneg.metrics.topics import top_words

CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 40, 50)
# Every document is connected with its most similar ones, this many of them. The study `studies/topic-numbers`
# chose this number (against 10 and all documents) and the modularity itself (against stability, held-out
# error and others).
N_NEIGHBORS = 30
# Numbers of topics whose modularity is at least this share of the largest one are in the range: there it
# contains the number of classes in three of four collections.
NEAR = 0.95
# Divisions below this modularity are hardly ones (Newman & Girvan, 2004).
CLEAR = 0.3
# Greene, O'Callaghan & Cunningham (2014), "How many topics? Stability analysis for topic models", ECML PKDD:
# 80% of the documents in every sample, agreement of the 20 top words.
PART, N_WORDS, N_SAMPLES = 0.8, 20, 3
# More documents change the curves little and cost as much as they take.
MAX_DOCUMENTS = 3000
# Fewer documents than this per topic say nothing about it, and this many candidates are always tried. The
# search ends after N_BELOW numbers in a row below FAR of the largest modularity.
LEAST_PER_TOPIC, LEAST_TRIED, N_BELOW, FAR = 10, 9, 3, 0.9
# Coarse fits rank candidates as well as exact ones do.
COARSE: dict[str, dict[str, Any]] = {
    "nmf": {"tol": 1e-4, "max_iter": 200},
    "kl": {"tol": 1e-4, "max_iter": 200},
    "lda": {"max_iter": 10},
}


@dataclass(frozen=True)
class TopicNumbers:
    """What is known of candidate numbers of topics, and the one that is recommended."""

    n_topics: int
    range: list[int]
    reason: str
    candidates: list[int]
    modularity: list[float]
    stability: list[float]
    stability_spread: list[float]
    npmi: list[float]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(vars(self))


def compare_numbers(
    task: Task, method: str, run: Callable[[Task], FoundTopics], candidates: Any, *, verbose: int = 0
) -> TopicNumbers:
    """Compare candidate numbers of topics, and recommend one."""
    rng = generator(task.rng)
    # The same numbers are drawn for every candidate and sample, whatever comes before.
    seed = whole_number(rng)
    params = {**COARSE.get(method, {}), **task.params, "callback": None, "checkpoint": None}
    params = {name: value for name, value in params.items() if value is not None}
    rough = replace(task, params=params, rng=seed, verbose=0)
    counts, chosen = task.counts, np.flatnonzero(np.diff(task.counts.indptr) > 0)
    if len(chosen) > MAX_DOCUMENTS:
        chosen = np.sort(rng.choice(chosen, MAX_DOCUMENTS, replace=False))
    counts = sp.csr_array(counts[chosen])
    numbers = _checked_candidates(candidates, counts, len(task.seeds))
    if method == "nmf":
        counts = _without_small_groups(rough, counts, numbers, run)
    rough, n = replace(rough, set_aside=False), counts.shape[0]
    graph = similar_documents(term_weights(counts, task.inverse, unit_rows=True), N_NEIGHBORS)
    samples = [np.sort(rng.choice(n, max(1, round(PART * n)), replace=False)) for _ in range(N_SAMPLES)]
    counter = StepCounter("number of topics", len(numbers), verbose)
    modularity: list[float] = []
    stability: list[list[float]] = []
    npmi: list[FloatArray] = []
    for k in numbers:
        if candidates is None and _is_hopeless(modularity):
            break
        whole = run(replace(rough, counts=counts, n_topics=k))
        modularity.append(group_modularity(graph, whole.encode(counts)))
        parts = [run(replace(rough, counts=sp.csr_array(counts[rows]), n_topics=k)) for rows in samples]
        words = top_words(whole.components, N_WORDS)
        stability.append([word_agreement(words, top_words(part.components, N_WORDS)) for part in parts])
        npmi.append(topic_npmi(counts, whole.components))
        counter.done(f"{k} topics")
    numbers = numbers[: len(stability)]
    at, near = recommended(np.array(modularity))
    return TopicNumbers(
        numbers[at], [numbers[place] for place in near], _reason(numbers, modularity, at, near), numbers,
        modularity, np.mean(stability, axis=1).tolist(), np.std(stability, axis=1).tolist(),
        [float(np.nanmean(values)) if not np.isnan(values).all() else float("nan") for values in npmi],
    )  # fmt: skip


def _without_small_groups(
    task: Task, counts: Any, numbers: list[int], run: Callable[[Task], FoundTopics]
) -> Any:
    """Leave out the documents of groups that are too small for a topic, of about twenty."""
    some = min(numbers, key=lambda k: abs(k - 20))
    aside = run(replace(task, counts=counts, n_topics=some)).set_aside
    if aside is None or not len(aside):
        return counts
    return sp.csr_array(counts[np.setdiff1d(np.arange(counts.shape[0]), aside)])


def similar_documents(weights: Any, many: int) -> Any:
    """Return the graph that connects every document with its most similar ones, weighted by the cosine."""
    n = weights.shape[0]
    many = min(many, n - 1)
    rows, columns, values = [], [], []
    for first in range(0, n, 500):
        cosines = (weights[first : first + 500] @ weights.T).toarray()
        inside = np.arange(len(cosines))
        cosines[inside, first + inside] = -1.0
        nearest = np.argpartition(-cosines, many - 1, axis=1)[:, :many]
        rows.append(np.repeat(first + inside, many))
        columns.append(nearest.ravel())
        values.append(np.maximum(cosines[inside[:, None], nearest], 0.0).ravel())
    place = np.concatenate(rows), np.concatenate(columns)
    graph = sp.csr_array((np.concatenate(values), place), shape=(n, n))
    return sp.csr_array(graph.maximum(graph.T))


def group_modularity(graph: Any, weights: FloatArray) -> float:
    """Return the modularity of the groups of documents with the same main topic."""
    main = np.argmax(weights, axis=1)
    groups = sp.csr_array((np.ones(len(main)), (np.arange(len(main)), main)), shape=weights.shape)
    return overlapping_modularity(graph, groups.toarray()) if graph.sum() > 0 else 0.0


def _is_hopeless(modularity: list[float]) -> bool:
    """Tell whether larger numbers of topics need not be tried."""
    return len(modularity) >= LEAST_TRIED and max(modularity[-N_BELOW:]) < FAR * max(modularity)


def recommended(modularity: FloatArray) -> tuple[int, tuple[int, int]]:
    """Return the place of the largest modularity, and the first and last place that are near it."""
    # Digits beyond the sixth depend on the machine.
    values = np.round(modularity, 6)
    at = int(np.argmax(values))
    near = np.flatnonzero(values >= (NEAR if values[at] > 0 else 1.0) * values[at])
    return at, (int(near[0]), int(near[-1]))


def _reason(numbers: list[int], modularity: list[float], at: int, near: tuple[int, int]) -> str:
    low, high = numbers[near[0]], numbers[near[1]]
    between = np.round(modularity[near[0] : near[1] + 1], 6)
    some = "Numbers" if between.min() >= NEAR * between.max() else "Some numbers"
    if modularity[at] < CLEAR:
        return (
            "None of the numbers of topics that were tried divides the documents clearly: their modularity "
            f"is {CLEAR:g} or more in collections with distinct subjects, and {modularity[at]:.2f} at most "
            f"here, with {numbers[at]} topics. Choose the number by what the topics are for."
        )
    ending = " Larger numbers were not tried." if at == len(numbers) - 1 > 0 else ""
    around = (
        f"{some} from {low} to {high} divide them nearly as well: compare topics for some of these."
        if low < high
        else "No other number that was tried comes near."
        if len(numbers) > 1
        else "No other number was tried."
    )
    return (
        f"{numbers[at]} topics divide the documents most clearly (modularity {modularity[at]:.2f}). "
        f"{around}{ending}"
    )


def _checked_candidates(candidates: Any, counts: Any, least: int) -> list[int]:
    given: Iterable[Any] = CANDIDATES if candidates is None else candidates
    numbers = sorted({int(k) for k in given})
    limit = min(counts.shape[1], counts.shape[0])
    if candidates is None:
        limit = min(limit, max(2, counts.shape[0] // LEAST_PER_TOPIC))
    kept = [k for k in numbers if least <= k <= limit]
    if not kept:
        raise InvalidParameterError(
            f"None of the candidates {numbers} for n_topics fits {counts.shape[0]} documents with "
            f"{counts.shape[1]} used words. Pass a number, or more documents."
        )
    return kept


def word_agreement(words: IntArray, others: IntArray) -> float:
    """Return how well the top words of two sets of topics agree: mean average Jaccard after matching."""
    agreement = _agreements(words, others)
    return float(agreement[linear_sum_assignment(agreement, maximize=True)].mean())


def _agreements(words: IntArray, others: IntArray) -> FloatArray:
    """Return the mean over depths of the Jaccard similarity of two ranked lists, for all pairs of topics."""
    depth = words.shape[1]
    size = int(max(words.max(), others.max())) + 1
    ranks = np.full((len(others), size), depth)
    np.put_along_axis(ranks, others, np.arange(depth), axis=1)
    depths = np.arange(1, depth + 1)
    found = np.empty((len(words), len(others)))
    for at, row in enumerate(words):
        # A word is in both lists from the depth on at which the later one of them has it.
        later = np.maximum(ranks[:, row], np.arange(depth))
        both = (later[:, :, None] < depths).sum(axis=1)
        found[at] = np.mean(both / (2 * depths - both), axis=1)
    return found
