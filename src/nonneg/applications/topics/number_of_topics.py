"""The number of topics: the one that divides the documents most clearly, by modularity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._random import generator
from nonneg._typing import FloatArray
from nonneg.applications.topics.certificate import topic_npmi
from nonneg.applications.topics.documents import term_weights, unit_rows
from nonneg.applications.topics.methods import METHODS, Task, document_weights
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration.progress import StepCounter

CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 40, 50)
# "Values above about 0.3 indicate significant community structure": Clauset, Newman & Moore (2004), Physical
# Review E 70, 066111.
CLEAR = 0.3
# Limits to the cost of a comparison: more documents than this are sampled; candidates are fitted coarsely.
MAX_DOCUMENTS = 3000
COARSE = {"tol": 1e-4, "max_iter": 200}


def compare_numbers(
    task: Task, method: str, candidates: Any, *, min_documents: int, verbose: int = 0
) -> dict[str, Any]:
    """Compare candidate numbers of topics, and recommend one.

    None stands for the usual ones with `min_documents` documents per topic or more.
    """
    from sklearn.neighbors import kneighbors_graph

    rng = generator(task.rng)
    params = (COARSE if method in ("nmf", "kl") else {}) | dict(task.params)
    params = {name: value for name, value in params.items() if name not in ("callback", "checkpoint")}
    rows = np.flatnonzero(np.diff(task.counts.indptr) > 0)
    if len(rows) > MAX_DOCUMENTS:
        rows = np.sort(rng.choice(rows, MAX_DOCUMENTS, replace=False))
    counts = sp.csr_array(task.counts[rows])
    # The same numbers are drawn for every candidate, whatever comes before.
    coarse = replace(task, counts=counts, params=params, rng=int(rng.integers(2**31 - 1)), verbose=0)
    options, largest = sorted(set(candidates or CANDIDATES)), min(counts.shape)
    if candidates is None:
        largest = min(largest, max(2, len(rows) // max(1, min_documents)))
    numbers = [k for k in options if len(task.seeds) <= k <= largest]
    if not numbers:
        raise InvalidParameterError(
            f"None of the candidates {options} for n_topics fits {counts.shape[0]} documents with "
            f"{counts.shape[1]} used words. Pass a number, or more documents."
        )
    # Every document is connected with the most similar ones, weighted by the cosine: with the square root of
    # their number, as is typical (Silverman 1986, Density Estimation, section 2.5).
    unit = unit_rows(term_weights(counts, task.inverse))
    n_neighbors = min(max(1, round(math.sqrt(len(rows)))), len(rows) - 1)
    graph = kneighbors_graph(unit, n_neighbors, mode="distance", metric="cosine")
    graph.data = np.maximum(1.0 - graph.data, 0.0)
    graph = sp.csr_array(graph.maximum(graph.T))
    counter = StepCounter("number of topics", len(numbers), verbose)
    parts, npmi = [], []
    for k in numbers:
        topics = METHODS[method].run(replace(coarse, n_topics=k))
        weights = document_weights(counts, topics.components, task.inverse, METHODS[method].encoding)
        parts.append(modularity_parts(graph, np.argmax(weights, axis=1)))
        values = topic_npmi(counts, topics.components)
        npmi.append(float("nan") if np.isnan(values).all() else float(np.nanmean(values)))
        counter.done(f"candidates ({k} topics)")
    return recommendation(numbers, np.array(parts)) | {"npmi": npmi}


def recommendation(numbers: Sequence[int], parts: FloatArray) -> dict[str, Any]:
    """Recommend the number with the largest modularity; `parts` has that of every document."""
    # Digits beyond the sixth depend on the machine.
    modularity = np.round(parts.sum(axis=1), 6)
    best = int(np.argmax(modularity))
    # The standard error of the difference from the best one, over documents.
    apart = parts[best] - parts
    error = np.sqrt(parts.shape[1]) * apart.std(axis=1)
    near = [k for k, q, e in zip(numbers, modularity, error, strict=True) if q >= modularity[best] - e]
    return {
        "n_topics": numbers[best],
        "range": [near[0], near[-1]],
        "reason": _reason(list(numbers), best, float(modularity[best]), near),
        "candidates": list(numbers),
        "modularity": modularity.tolist(),
        "modularity_error": error.tolist(),
    }


def _reason(numbers: list[int], best: int, modularity: float, near: list[int]) -> str:
    k = numbers[best]
    others = ", ".join(str(one) for one in near if one != k)
    if len(numbers) == 1:
        return f"{k} is the only number that was compared (modularity {modularity:.2f})."
    largest = f"{k} topics have the largest modularity ({modularity:.2f})"
    if modularity < CLEAR:
        return (
            f"No number stands out: {largest}, and documents with distinct subjects have {CLEAR:g} or more. "
            "Choose the number by what the topics are for."
        )
    if len(near) - 1 >= len(numbers) / 2:
        largest = f"No number stands out: {largest}"
    reason = f"{largest}; within one standard error: {others or 'no other number that was tried'}."
    return reason + " Larger numbers were not tried." * (best == len(numbers) - 1)


def modularity_parts(graph: Any, groups: Any) -> FloatArray:
    """Return what every document contributes to the modularity of groups (Newman & Girvan, 2004)."""
    total = float(graph.sum())
    if not total > 0:
        return np.zeros(len(groups))
    member = sp.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))
    degrees = np.asarray(graph.sum(axis=1)).ravel() / total
    within = np.asarray((graph @ member).multiply(member).sum(axis=1)).ravel() / total
    return within - degrees * (member.T @ degrees)[groups]
