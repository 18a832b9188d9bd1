"""How good topics are: coherence of their words, and the documents that they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.metrics.topics import npmi_coherence, top_words

# Lau, Newman & Baldwin (2014) rate topics by ten words.
N_NPMI_WORDS = 10
# Of twenty topics, one that is the main topic of less than 1% of the documents is flagged.
FEW = 0.2


def documents_per_topic(proportions: FloatArray) -> IntArray:
    """Return in how many documents each topic has the largest proportion."""
    filled = proportions[proportions.sum(axis=1) > 0]
    return np.bincount(np.argmax(filled, axis=1), minlength=proportions.shape[1]).astype(np.int64)


def topic_npmi(counts: Any, components: FloatArray) -> FloatArray:
    """Return the NPMI of the top words of every topic; NaN for a topic of a single word."""
    found = np.full(len(components), np.nan)
    for at, words in enumerate(top_words(components, N_NPMI_WORDS)):
        words = words[components[at, words] > 0]
        if len(words) > 1:
            found[at] = npmi_coherence(counts, [words])[0]
    return found


@dataclass(frozen=True)
class Support:
    """The documents that topics rest on, each group of copies counted once."""

    counts: IntArray  # documents whose main topic it is, topic by topic
    limit: float  # a topic with fewer rests on few
    n_copies: int = 0  # documents that are copies of others
    n_set_aside: int = 0  # documents of groups that are too small for a topic

    @classmethod
    def of(
        cls,
        proportions: FloatArray,
        duplicate_of: IntArray | None = None,
        set_aside: IntArray | None = None,
    ) -> Support:
        """Count the documents of every topic."""
        n_documents = len(proportions)
        # Other documents than those of the fit have no known copies.
        if duplicate_of is None or len(duplicate_of) != n_documents:
            duplicate_of, set_aside = np.arange(n_documents), None
        distinct = duplicate_of == np.arange(n_documents)
        counts = documents_per_topic(proportions[distinct])
        limit = max(2.0, FEW * float(counts.sum()) / len(counts))
        return cls(counts, limit, int(np.sum(~distinct)), 0 if set_aside is None else len(set_aside))

    @property
    def few(self) -> Any:
        """Which topics rest on few documents."""
        return self.counts < self.limit
