"""Copies among documents: reposts and boilerplate, which would otherwise become topics of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray

# Documents are copies if they share 90% of their distinct words (Jaccard). Those of fewer than ten words are
# left alone: two people may well write the same short answer.
SIMILARITY, N_WORDS = 0.9, 10
# Six bands of four hashes: a pair that shares 90% of its words meets in one of them with probability
# 1 - (1 - 0.9^4)^6 = 0.998 (Leskovec, Rajaraman & Ullman, "Mining of Massive Datasets", section 3.4).
N_BANDS, N_ROWS = 6, 4
BLOCK = 10_000


def first_copies(counts: Any) -> IntArray:
    """Return for every document the first one that it is a copy of: itself for most."""
    counts = sp.csr_array(counts)
    first = np.arange(counts.shape[0], dtype=np.int64)
    long = np.flatnonzero(np.diff(counts.indptr) >= N_WORDS)
    if len(long) < 2:
        return first
    present = sp.csr_array(counts[long])
    present.data = np.ones(len(present.data))
    sizes = np.diff(present.indptr).astype(np.float64)
    place = np.arange(len(long))
    # Fixed numbers, not a seed of the user's: which documents are copies does not depend on chance.
    rng = np.random.default_rng(0)
    for _ in range(N_BANDS):
        keys = np.stack([_smallest_hash(present, rng) for _ in range(N_ROWS)], axis=1)
        _, band = np.unique(keys, axis=0, return_inverse=True)
        order = np.lexsort((np.arange(len(long)), band.ravel()))
        starts = np.flatnonzero(np.diff(band.ravel()[order], prepend=-1))
        leaders = np.repeat(order[starts], np.diff(starts, append=len(order)))
        pairs = order != leaders
        _join(place, order[pairs], leaders[pairs], present, sizes)
    roots = place[place]
    while not np.array_equal(roots, place):
        place, roots = roots, roots[roots]
    first[long] = long[place]
    return first


def _smallest_hash(present: Any, rng: np.random.Generator) -> FloatArray:
    """Return the smallest of random numbers of the words of every document (MinHash)."""
    numbers = rng.random(present.shape[1])
    found = np.empty(present.shape[0])
    # In blocks of documents, so that large collections take no array of the size of their entries.
    for start in range(0, len(found), BLOCK):
        ends = present.indptr[start : start + BLOCK + 1]
        found[start : start + BLOCK] = np.minimum.reduceat(
            numbers[present.indices[ends[0] : ends[-1]]], ends[:-1] - ends[0]
        )
    return found


def _join(place: IntArray, documents: IntArray, leaders: IntArray, present: Any, sizes: FloatArray) -> None:
    """Let documents point to the leader of their band where they are copies of it, in place."""
    shared = np.asarray(present[documents].multiply(present[leaders]).sum(axis=1)).ravel()
    union = sizes[documents] + sizes[leaders] - shared
    alike = shared >= SIMILARITY * union
    # A leader comes before the documents of its band, so that nothing points in a circle.
    place[documents[alike]] = np.minimum(place[documents[alike]], leaders[alike])
