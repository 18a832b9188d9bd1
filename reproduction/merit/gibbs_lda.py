"""Latent Dirichlet allocation by collapsed Gibbs sampling (Griffiths & Steyvers, 2004, PNAS 101)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray

N_SWEEPS = 500
PRIOR_OF_WORDS = 0.1
"""As Griffiths & Steyvers; the prior of the topics is 50 divided by their number."""


def gibbs_lda(counts: Any, k: int, seed: int, n_sweeps: int = N_SWEEPS) -> tuple[FloatArray, FloatArray]:
    """Return topics and memberships of the last sweep."""
    table = sp.csr_array(counts).tocoo()
    repeats = np.asarray(table.data, dtype=np.intp)
    documents, words = (np.repeat(part.astype(np.int32), repeats) for part in table.coords)
    n_documents, n_words = table.shape
    in_topics, in_documents = np.zeros((n_words, k)), np.zeros((n_documents, k))
    rng = np.random.default_rng(seed)
    _sweep(documents, words, in_documents, in_topics, 50.0 / k, PRIOR_OF_WORDS, n_sweeps, rng)
    topics = in_topics.T + PRIOR_OF_WORDS
    memberships = in_documents + 50.0 / k
    return topics / topics.sum(axis=1, keepdims=True), memberships / memberships.sum(axis=1, keepdims=True)


@numba.njit(nogil=True)
def _sweep(documents, words, in_documents, in_topics, prior, prior_of_words, n_sweeps, rng):
    """Draw the topic of every token again, given all others, and count."""
    n_tokens, (n_words, k) = len(words), in_topics.shape
    topic_of, sizes, heights = np.empty(n_tokens, np.int32), np.zeros(k), np.empty(k)
    for token in range(n_tokens):
        topic_of[token] = int(k * rng.random())
        in_documents[documents[token], topic_of[token]] += 1.0
        in_topics[words[token], topic_of[token]] += 1.0
        sizes[topic_of[token]] += 1.0
    for _ in range(n_sweeps):
        for token in range(n_tokens):
            document, word, topic = documents[token], words[token], topic_of[token]
            in_documents[document, topic] -= 1.0
            in_topics[word, topic] -= 1.0
            sizes[topic] -= 1.0
            total = 0.0
            for a in range(k):
                likely = (in_topics[word, a] + prior_of_words) / (sizes[a] + n_words * prior_of_words)
                total += likely * (in_documents[document, a] + prior)
                heights[a] = total
            drawn, topic = rng.random() * total, 0
            while topic < k - 1 and heights[topic] < drawn:
                topic += 1
            topic_of[token] = topic
            in_documents[document, topic] += 1.0
            in_topics[word, topic] += 1.0
            sizes[topic] += 1.0
