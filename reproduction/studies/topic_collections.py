"""Collections of documents with known classes: real ones by name, and generated ones with boilerplate."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import IntArray
from reproduction import data as datasets

LOADERS = {
    "bbc": datasets.load_bbc,
    "hitech": datasets.load_hitech,
    "tdt2": datasets.load_tdt2,
    "reuters": datasets.load_reuters21578,
}


N_COMMON, N_OWN, N_LISTED = 800, 120, 60
"""Words of all documents, words of each topic, and words of each group of lists."""


def planted_collection(n_documents: int, n_topics: int = 20, *, seed: int = 0) -> tuple[Any, IntArray]:
    """Return counts and main topics of documents with topics of unequal sizes, boilerplate and copies."""
    # The largest topic has twelve times the documents of the smallest. One document in twenty is a copy of
    # one of five, as chain letters are, and five groups of eight documents are lists of words that occur
    # nowhere else. The class of both is -1.
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(12.0, 1.0, n_topics)
    y = rng.choice(n_topics, size=n_documents, p=sizes / sizes.sum())
    lengths = rng.lognormal(4.2, 0.6, n_documents).astype(int) + 20
    # A quarter of the words are about the topic, and some about another one.
    parts = np.stack([rng.multinomial(length, [0.70, 0.25, 0.05]) for length in lengths])
    common = np.cumsum(rng.dirichlet(np.full(N_COMMON, 0.3)))
    own = np.cumsum([rng.dirichlet(np.full(N_OWN, 0.5)) for _ in range(n_topics)], axis=1)
    rows, words = [np.repeat(np.arange(n_documents), parts[:, 0])], [_drawn(rng, common, parts[:, 0].sum())]
    for topics, many in ((y, parts[:, 1]), (rng.integers(n_topics, size=n_documents), parts[:, 2])):
        for topic in range(n_topics):
            inside = np.flatnonzero(topics == topic)
            rows.append(np.repeat(inside, many[inside]))
            words.append(N_COMMON + N_OWN * topic + _drawn(rng, own[topic], many[inside].sum()))
    n_words = N_COMMON + N_OWN * n_topics + 5 * N_LISTED
    place = np.concatenate(rows), np.concatenate(words)
    counts = sp.csr_array((np.ones(len(place[0])), place), shape=(n_documents, n_words))
    taken = rng.permutation(n_documents)
    copies, lists, letters = np.split(taken, [n_documents // 20, n_documents // 20 + 40])
    origin = np.arange(n_documents)
    origin[copies] = letters[rng.integers(5, size=len(copies))]
    keep = np.ones(n_documents)
    keep[lists] = 0.0
    listed = [
        (row, n_words - N_LISTED * (1 + at % 5) + word)
        for at, row in enumerate(lists)
        for word in rng.choice(N_LISTED, size=45, replace=False)
    ]
    place = tuple(np.transpose(listed))
    added = sp.csr_array((rng.integers(1, 6, size=len(listed)), place), shape=counts.shape)
    y[np.concatenate([copies, lists])] = -1
    return sp.csr_array(sp.diags_array(keep) @ counts[origin] + added), y


def mixed_collection(n_topics: int, *, seed: int = 0) -> tuple[Any, IntArray]:
    """Return counts and main topics of documents that mix topics, as latent Dirichlet allocation has them."""
    # Zipf's law for the vocabulary; a topic reweights it, and about half of the words are of no topic.
    rng = np.random.default_rng([n_topics, seed])
    n_documents, n_words = int(rng.integers(1500, 3000)), int(rng.integers(6000, 12000))
    base = np.arange(1.0, n_words + 1) ** -rng.uniform(0.95, 1.1)
    base /= base.sum()
    concentration = rng.uniform(0.02, 0.08) * n_words
    topics = rng.gamma(np.maximum(concentration * base, 1e-4), size=(n_topics, n_words))
    topics /= topics.sum(axis=1, keepdims=True)
    share = rng.uniform(0.4, 0.6)
    sizes = rng.dirichlet(np.full(n_topics, rng.choice([2.0, 5.0, 20.0]))) + 0.25 / n_topics
    main = rng.choice(n_topics, size=n_documents, p=sizes / sizes.sum())
    mixed = rng.dirichlet(np.full(n_topics, 0.1), size=n_documents)
    own = rng.beta(6.0, 2.0, size=n_documents)
    mixed *= 1.0 - own[:, None]
    mixed[np.arange(n_documents), main] += own
    lengths = np.maximum(rng.lognormal(4.6, 0.6, n_documents).astype(int), 20)
    rows = [
        sp.csr_array(rng.multinomial(length, share * (mixture @ topics) + (1.0 - share) * base)[None, :])
        for mixture, length in zip(mixed, lengths, strict=True)
    ]
    return sp.csr_array(sp.vstack(rows, format="csr")).astype(np.float64), np.argmax(mixed, axis=1)


def _drawn(rng: np.random.Generator, cumulated: Any, size: int) -> IntArray:
    return np.minimum(np.searchsorted(cumulated, rng.random(size)), len(cumulated) - 1)


def collection(name: str, seed: int = 0) -> tuple[Any, IntArray]:
    """Return the counts and classes of a collection by name."""
    if name.startswith("planted"):
        return planted_collection(int(name.partition("-")[2]), seed=seed)
    if name.startswith("mixed"):
        return mixed_collection(int(name.partition("-")[2]), seed=seed)
    found = LOADERS[name]() if name in LOADERS else datasets.load_cluto(name)
    counts = sp.csr_array(found.X)
    filled = np.flatnonzero(np.diff(counts.indptr) > 0)
    return sp.csr_array(counts[filled]), np.asarray(found.y)[filled]
