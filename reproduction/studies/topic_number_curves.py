"""What may tell the right number of topics: measures of a candidate on a sample of a collection."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from nonneg._typing import FloatArray, IntArray
from nonneg.applications import TopicModel
from nonneg.applications.topics.methods import METHODS, Task
from nonneg.applications.topics.number_of_topics import (
    COARSE,
    MAX_DOCUMENTS,
    group_modularity,
    similar_documents,
    word_agreement,
)
from nonneg.applications.topics.quality import topic_npmi
from nonneg.applications.topics.term_weights import inverse_frequencies, term_weights
from nonneg.applications.topics.topic_recovery import document_weights
from nonneg.metrics import top_words


class Sample:
    """Documents on which numbers of topics are compared."""

    def __init__(self, counts: Any) -> None:
        rng = np.random.default_rng(0)
        model = TopicModel(20, random_state=0, n_jobs=1)
        model._read(counts, reset=True)
        words, distinct = model._words_and_documents(counts, 2)
        used = sp.csr_array(counts[distinct][:, words])
        self.inverse = inverse_frequencies(used)
        chosen = np.flatnonzero(np.diff(used.indptr) > 0)
        if len(chosen) > MAX_DOCUMENTS:
            chosen = np.sort(rng.choice(chosen, MAX_DOCUMENTS, replace=False))
        self.counts = sp.csr_array(used[chosen])
        some = min(20, max(2, len(chosen) // 10))
        task = Task(self.counts, self.inverse, some, params=COARSE["nmf"], rng=0, n_jobs=1)
        aside = METHODS["nmf"].run(task).set_aside
        if aside is not None and len(aside):
            self.counts = sp.csr_array(self.counts[np.setdiff1d(np.arange(len(chosen)), aside)])
        n = self.counts.shape[0]
        self.parts = [np.sort(rng.choice(n, round(0.8 * n), replace=False)) for _ in range(3)]
        self.halves = [np.array_split(rng.permutation(n), 2) for _ in range(2)]
        self.weights = term_weights(self.counts, self.inverse, unit_rows=True)
        self.words = rng.permutation(self.counts.shape[1]) % 2 == 0
        self.near = {
            "all": similar_documents(self.weights, n - 1),
            **{str(many): similar_documents(self.weights, many) for many in (10, 30)},
        }

    def fit(self, k: int, rows: Any = slice(None)) -> tuple[FloatArray, IntArray]:
        """Return topics of some documents, and the main topics of all."""
        task = Task(
            sp.csr_array(self.counts[rows]), self.inverse, k, set_aside=False, params=COARSE["nmf"], rng=0,
            n_jobs=1,
        )  # fmt: skip
        found = METHODS["nmf"].run(task)
        return found.components, np.argmax(found.encode(self.counts), axis=1)

    def curves(self, k: int) -> dict[str, Any]:
        """Return all that might tell whether a number is right."""
        H, main = self.fit(k)
        parts = [self.fit(k, rows) for rows in self.parts]
        words = top_words(H, 20)
        halves = [[self.fit(k, np.sort(half)) for half in pair] for pair in self.halves]
        pairs = [(one[1], other[1]) for one, other in halves]
        strengths = [strength(one, other, k) for pair in pairs for one, other in (pair, pair[::-1])]
        errors = [
            self.held_out(pair[at][0], self.halves[i][1 - at])
            for i, pair in enumerate(halves)
            for at in (0, 1)
        ]
        npmi = topic_npmi(self.counts, H)
        one_hot = np.eye(k)[main]
        return {
            **{f"modularity {many}": group_modularity(near, one_hot) for many, near in self.near.items()},
            "words 0.8": float(np.mean([word_agreement(words, top_words(part, 20)) for part, _ in parts])),
            "rand 0.8": [float(adjusted_rand_score(main, other)) for _, other in parts],
            "rand 0.5": [float(adjusted_rand_score(one, other)) for one, other in pairs],
            "strength": float(np.mean([np.mean(some) for some in strengths])),
            "held-out": float(np.mean(errors)),
            "npmi": float(np.nanmean(npmi)),
            "silhouette": silhouette(self.weights, main, k),
        }

    def held_out(self, H: FloatArray, rows: IntArray) -> float:
        """Return the squared error of half of the words of other documents, from the other half."""
        X = sp.csr_array(self.weights[rows])
        seen, hidden = sp.csr_array(X[:, self.words]), sp.csr_array(X[:, ~self.words])
        W = document_weights(seen, np.ascontiguousarray(H[:, self.words]))
        B = H[:, ~self.words]
        total = float(hidden.multiply(hidden).sum())
        cross = float(np.sum(W * (hidden @ B.T)))
        return (total - 2.0 * cross + float(np.sum((W.T @ W) * (B @ B.T)))) / total


def strength(one: IntArray, other: IntArray, k: int) -> FloatArray:
    """Return for each group the pairs of its documents that others keep together (Tibshirani & Walther)."""
    table = np.zeros((k, k))
    np.add.at(table, (one, other), 1.0)
    sizes = table.sum(axis=1)
    sizes, table = sizes[sizes > 1], table[sizes > 1]
    return (table * (table - 1.0)).sum(axis=1) / (sizes * (sizes - 1.0))


def silhouette(weights: Any, main: IntArray, k: int) -> float:
    """Return the simplified silhouette: the cosine with the own center against that with the next."""
    groups = sp.csr_array((np.ones(len(main)), (main, np.arange(len(main)))), shape=(k, len(main)))
    centers = (groups @ weights).toarray()
    centers /= np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-300)
    distance = 1.0 - weights @ centers.T
    own = distance[np.arange(len(main)), main]
    distance[np.arange(len(main)), main] = np.inf
    next_one = distance.min(axis=1)
    return float(np.mean((next_one - own) / np.maximum(own, next_one)))
