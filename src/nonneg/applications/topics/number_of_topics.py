"""How many topics: stability of topics when documents are left out, and coherence of their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from nonneg._random import generator
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.methods import FoundTopics, Task
from nonneg.applications.topics.quality import topic_npmi
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration.progress import StepCounter
from nonneg.metrics.topics import top_words

CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 40, 50)
# Greene, O'Callaghan & Cunningham (2014), "How many topics? Stability analysis for topic models", ECML PKDD:
# 80 % of the documents in every sample, agreement of the 20 top words.
PART, N_WORDS, N_SAMPLES = 0.8, 20, 5
# More documents change the curves little and cost as much as they take.
MAX_DOCUMENTS = 3000
# Fewer documents than this per topic say nothing about it, and so many candidates are always tried.
LEAST_PER_TOPIC, LEAST_TRIED = 10, 9
# The largest number of topics counts that keeps two thirds of its top words, and nearly as many as every
# other number from half as many topics on: far smaller numbers are easier to keep. The search ends after so
# many numbers in a row that keep fewer. Six collections of CLUTO (tr11, tr12, tr23, tr41, re0, k1a) and
# documents with five planted topics chose these.
ENOUGH, NEARLY, N_BELOW = 2 / 3, 0.92, 5
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
    reason: str
    candidates: list[int]
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
    seed = int(rng.integers(2**31 - 1))
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
    samples = [np.sort(rng.choice(n, max(1, round(PART * n)), replace=False)) for _ in range(N_SAMPLES)]
    counter = StepCounter("number of topics", len(numbers), verbose)
    stability: list[list[float]] = []
    npmi: list[FloatArray] = []
    for k in numbers:
        if candidates is None and _is_hopeless(stability):
            break
        whole = run(replace(rough, counts=counts, n_topics=k)).components
        parts = [run(replace(rough, counts=sp.csr_array(counts[rows]), n_topics=k)) for rows in samples]
        words = top_words(whole, N_WORDS)
        stability.append([word_agreement(words, top_words(part.components, N_WORDS)) for part in parts])
        npmi.append(topic_npmi(counts, whole))
        counter.done(f"{k} topics")
    numbers = numbers[: len(stability)]
    mean, spread = np.mean(stability, axis=1), np.std(stability, axis=1)
    at = recommended(numbers, mean)
    return TopicNumbers(
        numbers[at], _reason(numbers, mean, at), numbers, mean.tolist(), spread.tolist(),
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


def _is_hopeless(stability: list[list[float]]) -> bool:
    """Tell whether larger numbers of topics need not be tried."""
    return len(stability) >= LEAST_TRIED and np.mean(stability[-N_BELOW:], axis=1).max() < ENOUGH


def stable_enough(numbers: list[int], stability: FloatArray) -> Any:
    """Tell which candidates keep their top words, on their own and beside numbers from half as many on."""
    # Digits beyond the sixth depend on the machine.
    k, values = np.asarray(numbers), np.round(stability, 6)
    best = np.array([values[2 * k >= one].max() for one in k])
    return (values >= ENOUGH) & (values >= NEARLY * best)


def recommended(numbers: list[int], stability: FloatArray) -> int:
    """Return the place of the largest candidate that is stable enough, or else of the most stable one."""
    enough = np.flatnonzero(stable_enough(numbers, stability))
    return int(enough[-1] if len(enough) else np.argmax(np.round(stability, 6)))


def _reason(numbers: list[int], stability: FloatArray, at: int) -> str:
    if stable_enough(numbers, stability)[at]:
        return (
            f"{numbers[at]} is the largest number of topics that is stable: {stability[at]:.0%} of the top "
            "words stay when a fifth of the documents is left out."
        )
    return (
        "No number of topics keeps two thirds of its top words when a fifth of the documents is left out; "
        f"{numbers[at]} keeps most ({stability[at]:.0%})."
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
