"""`partial_fit`: topics of a stream of documents, one batch at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.term_weights import document_frequencies, term_weights
from nonneg.applications.topics.topic_recovery import document_weights, rows_of_sum_one
from nonneg.estimators.stored_fields import DAMAGED, Content, Field, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes

# Documents that are kept: up to this many, all are there and topics are found from scratch; later they are a
# sample, from which coherence is found.
N_KEPT = 2000
# Topics are found from scratch when there are this many times the documents of the last time.
GROWTH = 1.25
# Beyond N_KEPT documents: when there are this many times those of the last time, topics are found from
# scratch in the sample, and taken over if their squared error is less than this part of the present one.
DOUBLED, BETTER = 2.0, 0.99
# As in the online solver: alternations between a batch and the topics, and passes over the topics in each.
ROUNDS, PASSES = 3, 5


@dataclass(frozen=True)
class Stream:
    """What is kept of the documents of a stream. Words are columns of the whole vocabulary."""

    kept: Any  # counts of some documents, CSR
    priorities: FloatArray  # of these documents: those with the largest are kept
    n_seen: int  # documents so far
    n_fitted: int  # documents when topics were found from scratch
    n_batches: int
    # All of the following lose their weight with `half_life`.
    n_documents: float  # number of documents
    frequencies: FloatArray  # in how many of them each word occurs
    sums: FloatArray  # of 1 + log count of each word
    length: float  # of the lengths of documents in TF-IDF weights
    shares: FloatArray  # of the topic proportions
    # Of the least-squares problem min ||F - W H||, F without inverse document frequencies, so that these can
    # change: sums of W'W and of F'W, and H' itself.
    gram: FloatArray
    cross: FloatArray
    topics: FloatArray

    def widened(self, n_words: int) -> Stream:
        """Return the same for a vocabulary with further words at its end."""
        more = n_words - len(self.frequencies)
        if more == 0:
            return self
        kept = sp.csr_array(
            (self.kept.data, self.kept.indices, self.kept.indptr), shape=(self.kept.shape[0], n_words)
        )
        return replace(
            self,
            kept=kept,
            frequencies=np.pad(self.frequencies, (0, more)),
            sums=np.pad(self.sums, (0, more)),
            cross=np.pad(self.cross, ((0, more), (0, 0))),
            topics=np.pad(self.topics, ((0, more), (0, 0))),
        )

    def decayed(self, factor: float) -> Stream:
        """Return the same with less weight of the past."""
        names = ("n_documents", "frequencies", "sums", "length", "shares", "gram", "cross")
        return replace(self, **{name: factor * getattr(self, name) for name in names})

    def with_counted(self, counts: Any) -> Stream:
        """Return the same with documents counted: how many, and with which words."""
        values = tf(counts)
        return replace(
            self,
            n_documents=self.n_documents + counts.shape[0],
            frequencies=self.frequencies + document_frequencies(counts),
            sums=self.sums + np.bincount(values.indices, weights=values.data, minlength=counts.shape[1]),
        )


def tf(counts: Any) -> Any:
    """Return ``1 + log count`` of the words of documents."""
    return term_weights(counts, np.ones(counts.shape[1]))


def sampled(stream: Stream | None, counts: Any, half_life: float | None) -> tuple[Any, FloatArray]:
    """Return a random sample of all documents so far, and priorities; with `half_life` late ones prevail."""
    # Documents with the largest `log weight + Gumbel noise` are a sample without replacement by weight
    # (Efraimidis & Spirakis, 2006). The numbers are fixed: which documents are kept is not up to the user.
    n_seen = 0 if stream is None else stream.n_seen
    priorities = np.random.default_rng([0, n_seen]).gumbel(size=counts.shape[0])
    if half_life is not None:
        priorities += (n_seen + np.arange(counts.shape[0])) * np.log(2.0) / half_life
    kept = counts
    if stream is not None:
        kept = sp.csr_array(sp.vstack([stream.kept, counts], format="csr"))
        priorities = np.concatenate([stream.priorities, priorities])
    # With `half_life` the documents so far weigh as much as half_life / log 2 late ones.
    most = N_KEPT if half_life is None else min(N_KEPT, max(1, round(half_life / np.log(2.0))))
    if len(priorities) > most:
        chosen = np.sort(np.argsort(-priorities, kind="stable")[:most])
        kept, priorities = sp.csr_array(kept[chosen]), priorities[chosen]
    return kept, priorities


@dataclass(frozen=True)
class Balance:
    """How documents are weighted."""

    balanced: bool  # otherwise they have unit length
    # Similarity to this many documents of mean length is added, relative to the number of documents; see
    # `balanced_documents`.
    added: float


def scaled(stream: Stream, counts: Any, words: IntArray, balance: Balance) -> tuple[Any, FloatArray, float]:
    """Return documents with their weights, but without inverse document frequencies; these; and lengths."""
    inverse = np.zeros(counts.shape[1])
    inverse[words] = np.log(stream.n_documents / stream.frequencies[words])
    plain = tf(counts)
    weights = term_weights(counts, inverse)
    lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
    total = float(lengths.sum())
    size = lengths**2
    if balance.balanced:
        similar = weights @ (stream.sums * inverse / stream.n_documents)
        size = similar + balance.added * (stream.length + total) / stream.n_documents * lengths
    scale = np.where(size > 0, 1.0 / np.sqrt(np.where(size > 0, size, 1.0)), 0.0)
    return sp.csr_array(sp.diags_array(scale) @ plain), inverse[words], total


def learned(
    stream: Stream, counts: Any, words: IntArray, balance: Balance, *, rounds: int = ROUNDS
) -> Stream:
    """Return the state after a batch, whose documents and words have been counted."""
    documents, inverse, length = scaled(stream, counts, words, balance)
    X = sp.csr_array(documents[:, words] * inverse)
    topics = stream.topics[words] * inverse[:, None]
    gram, cross = stream.gram, stream.cross
    for at in range(rounds + 1):
        W = document_weights(X, np.ascontiguousarray(topics.T))
        gram, cross = stream.gram + W.T @ W, stream.cross + documents.T @ W
        if at < rounds:
            target = np.ascontiguousarray(cross[words] * inverse[:, None])
            topics, _ = hals_passes(np.ascontiguousarray(topics), SharedGram(gram), target, max_passes=PASSES)
    whole = stream.topics.copy()
    whole[words] = topics / inverse[:, None]
    shares = stream.shares + rows_of_sum_one(W).sum(axis=0)
    return replace(stream, gram=gram, cross=cross, topics=whole, shares=shares, length=stream.length + length)


def error_of(stream: Stream, counts: Any, words: IntArray, balance: Balance) -> float:
    """Return the squared error of the topics of a stream in documents."""
    documents, inverse, _ = scaled(stream, counts, words, balance)
    X = sp.csr_array(documents[:, words] * inverse)
    topics = np.ascontiguousarray((stream.topics[words] * inverse[:, None]).T)
    W = document_weights(X, topics)
    product = np.sum(W * (X @ topics.T))
    return float(np.sum(X.data**2) - 2.0 * product + np.sum((W.T @ W) * (topics @ topics.T)))


class StoredCounts(Field):
    """Counts of words, one document per row."""

    def is_in(self, name: str, content: Content) -> bool:
        return f"{content.prefix}{name}.data" in content.arrays

    def write(self, name: str, value: Any, content: Content) -> None:
        content.put(f"{name}.data", value.data)
        content.put(f"{name}.indices", value.indices.astype(np.int64))
        content.put(f"{name}.indptr", value.indptr.astype(np.int64))

    def read(self, name: str, content: Content) -> Any:
        entries = f"number of entries of {name}"
        data = StoredArray(entries, nonnegative=True).read(f"{name}.data", content)
        indices = StoredArray(entries, kind="i", below="n_features_in_").read(f"{name}.indices", content)
        indptr = StoredArray(f"rows of {name}", kind="i").read(f"{name}.indptr", content)
        good = len(indptr) > 1 and indptr[0] == 0 and indptr[-1] == len(indices)
        if not good or not (np.diff(indptr) >= 0).all():
            raise FileFormatError(f"the arrays of {content.prefix}{name} do not match each other. {DAMAGED}")
        shape = (len(indptr) - 1, content.sizes["n_features_in_"])
        return sp.csr_array((data, indices, indptr), shape=shape)


_WORDS = StoredArray("n_features_in_", nonnegative=True)
_BY_TOPIC = StoredArray("n_features_in_", "n_topics_", nonnegative=True)
STREAM = Part(
    {
        Stream: {
            "kept": StoredCounts(),
            "priorities": StoredArray("documents kept", finite=True),
            "n_seen": Value(int),
            "n_fitted": Value(int),
            "n_batches": Value(int),
            "n_documents": Value(float),
            "frequencies": _WORDS,
            "sums": _WORDS,
            "length": Value(float),
            "shares": StoredArray("n_topics_", nonnegative=True),
            "gram": StoredArray("n_topics_", "n_topics_", finite=True),
            "cross": _BY_TOPIC,
            "topics": _BY_TOPIC,
        }
    },
    optional=True,
)
"""What a saved model holds of a stream."""
