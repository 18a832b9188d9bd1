"""From anchor words to topics, and from topics to documents: nonnegative least squares in Gram form."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.word_correlation import WordCorrelation
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares


def topics_of_anchors(weights: Any, anchors: IntArray) -> FloatArray:
    """Return the topics of anchor words."""
    # The problem is ``min ||P - P[:, anchors] H||`` over H not negative, with P as it is (not normalized).
    # Its equations need ``P[:, anchors]`` alone.
    correlation = WordCorrelation(weights)
    chosen = correlation.base.csr[:, anchors].toarray()
    beside = np.ascontiguousarray(
        correlation.base.transposed_times(np.ascontiguousarray(chosen)) / correlation.n_documents
    )
    cross = correlation.transposed_times(beside)
    found = nonnegative_least_squares(SharedGram(beside.T @ beside), np.ascontiguousarray(cross))
    return rows_of_sum_one(np.ascontiguousarray(found.T))


def document_weights(documents: Any, topics: FloatArray) -> FloatArray:
    """Return how much of each topic is in each document, every document on its own."""
    cross = np.ascontiguousarray(documents @ np.ascontiguousarray(topics.T))
    return nonnegative_least_squares(SharedGram(topics @ topics.T), cross)


def rows_of_sum_one(factor: FloatArray) -> FloatArray:
    """Divide every row by its sum."""
    sums = factor.sum(axis=1, keepdims=True)
    return factor / np.where(sums > 0, sums, 1.0)
