"""Documents: texts or counts, the words that are used, and what a word in a document weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import is_sparse_array
from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.data import as_data_matrix
from nonneg.data.csr_arrays import scipy_matrix
from nonneg.data.door import Request, check_entries
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    ShapeError,
    UnknownNameError,
)

# Words of two letters or more, without numbers.
WORDS = r"(?u)\b[^\W\d_][\w'-]*\w\b"


def are_texts(documents: Any) -> bool:
    """Tell whether documents are texts rather than counts."""
    if isinstance(documents, str | bytes):
        raise DataTypeError(
            f"Expected a list of documents, got one {type(documents).__name__}. Put it in a list, one text "
            f"per document."
        )
    # A series of a data frame has one axis, the data frame itself and arrays of counts have two.
    one_axis = len(getattr(documents, "shape", (0,))) == 1 and hasattr(documents, "__len__")
    if sp.issparse(documents) or not one_axis:
        return False
    if not len(documents):
        raise InvalidDataError("Expected at least one document, got none.")
    other = next(((at, one) for at, one in enumerate(documents) if not isinstance(one, str)), None)
    if other is None:
        return True
    if any(isinstance(one, str) for one in documents):
        raise DataTypeError(
            f"Expected texts throughout, but document {other[0]} is of type {type(other[1]).__name__}. Leave "
            "it out, or use '' for an empty document."
        )
    return False


def make_vectorizer(vectorizer: Any, stop_words: Any) -> Any:
    """Return what turns texts into counts."""
    from sklearn.base import clone
    from sklearn.feature_extraction.text import CountVectorizer

    if vectorizer is None:
        if isinstance(stop_words, str) and stop_words != "english":
            raise UnknownNameError.of("stop_words", stop_words, ["english"], other="a list of words")
        if stop_words is not None and not isinstance(stop_words, str):
            stop_words = list(stop_words)
        return CountVectorizer(token_pattern=WORDS, stop_words=stop_words, dtype=np.float64)
    if stop_words is not None:
        raise InvalidParameterError("stop_words belong to the vectorizer that was given. Set them there.")
    if not hasattr(vectorizer, "fit_transform") or not hasattr(vectorizer, "transform"):
        raise InvalidParameterError(
            "vectorizer must be None or have fit_transform and transform, as scikit-learn's "
            f"CountVectorizer; got {type(vectorizer).__name__}."
        )
    return clone(vectorizer)


def counted_texts(vectorizer: Any, texts: Any, *, fit: bool) -> Any:
    """Count the words of texts."""
    try:
        counts = vectorizer.fit_transform(texts) if fit else vectorizer.transform(texts)
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        raise InvalidDataError(
            f"No word was found in the {len(texts)} documents: they are empty, or contain nothing but stop "
            f"words and numbers. Check the texts, or pass a vectorizer with another token_pattern."
        ) from None
    return checked_counts(counts)


def checked_counts(X: Any) -> Any:
    """Return counts as a sparse matrix of floats without duplicates."""
    if is_sparse_array(X):
        X = scipy_matrix(X)
    if not sp.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        error = ShapeError if X.ndim != 2 else DataTypeError
        raise error(
            "Expected a list of texts, or counts of words of shape (n_documents, n_words), one document per "
            f"row; got an array of type {X.dtype} and shape {X.shape}."
        )
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    # A sparse matrix is copied before entries of the same word are added: a narrow type would not hold the
    # sum.
    counts = sp.csr_array(X.astype(dtype, copy=sp.issparse(X)))
    counts.sum_duplicates()
    if 0 in counts.shape:
        raise InvalidDataError(f"Expected at least one document and one word, got {counts.shape}.")
    check_entries(as_data_matrix(counts), Request(who="TopicModel", masks=False))
    counts.eliminate_zeros()
    return counts


def document_frequencies(counts: Any) -> IntArray:
    """Return in how many documents each word occurs."""
    return np.bincount(counts.indices[counts.data != 0], minlength=counts.shape[1]).astype(np.intp)


def used_words(counts: Any, min_df: int, max_df: float) -> IntArray:
    """Return the words that are neither too rare nor too common."""
    n_documents = counts.shape[0]
    frequencies = document_frequencies(counts)
    # A word of all documents says nothing about how they differ.
    common = (frequencies > max_df * n_documents) | (frequencies >= n_documents)
    rare = frequencies < max(1, min_df)
    words = np.flatnonzero(~rare & ~common)
    if not len(words):
        remedy = "Lower min_df" if rare.any() else "Raise max_df"
        raise InvalidDataError(
            f"No word is left of {counts.shape[1]} in {n_documents} documents: "
            f"{int(np.sum(frequencies == 0))} occur nowhere, {int(np.sum(rare & (frequencies > 0)))} in "
            f"fewer than min_df={min_df}, {int(np.sum(common))} in more than max_df={max_df} of the "
            f"documents or in all. {remedy}, or pass more documents."
        )
    return words


def inverse_frequencies(counts: Any) -> FloatArray:
    """Return the logarithm of how rare each word is among the documents."""
    frequencies = document_frequencies(counts)
    return np.where(frequencies > 0, np.log(counts.shape[0] / np.maximum(frequencies, 1)), 0.0)


def term_weights(counts: Any, inverse: FloatArray | None, *, unit_rows: bool = False) -> Any:
    """Return what each word weighs in each document: ``(1 + log count) * inverse``; entries if it is None."""
    values = counts.data.astype(np.float64)
    if inverse is not None:
        above = values > 1.0
        values[above] = 1.0 + np.log(values[above])
        values *= inverse[counts.indices]
    if unit_rows:
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        norms = np.sqrt(np.bincount(rows, weights=values * values))
        values /= np.where(norms > 0, norms, 1.0)[rows]
    return sp.csr_array((values.astype(counts.dtype), counts.indices, counts.indptr), shape=counts.shape)


def rows_of_sum_one(factor: FloatArray) -> FloatArray:
    """Divide every row by its sum."""
    sums = factor.sum(axis=1, keepdims=True)
    return factor / np.where(sums > 0, sums, 1.0)


def unit_rows(rows: FloatArray) -> FloatArray:
    """Divide every row by its Euclidean length."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True)
class Vocabulary:
    """The words of a collection: where to find anchor and seed words among those that are used."""

    names: Any  # of the columns, or None
    words: IntArray  # the columns that are used
    counts: Any  # of all columns
    min_df: int

    def anchors(self, anchors: Sequence[Any], n_topics: int) -> IntArray:
        """Return the places of anchor words among the used words."""
        if len(anchors) != n_topics:
            raise InvalidParameterError(
                f"anchors has {len(anchors)} words, but n_topics={n_topics}: one per topic is needed. Set "
                f"n_topics={len(anchors)}, or change anchors."
            )
        places = []
        for anchor in anchors:
            place, reason = self._place(anchor, "anchors")
            if reason:
                raise InvalidParameterError(f"The anchor {anchor!r} {reason}.")
            places.append(place)
        if len(set(places)) < len(places):
            raise InvalidParameterError(f"An anchor is named twice in {list(anchors)}. Name each word once.")
        return np.array(places, dtype=np.intp)

    def seeds(self, seed_words: Any, n_topics: int) -> dict[str, IntArray]:
        """Return the places of seed words among the used words, by the name of their topic."""
        if not seed_words or len(seed_words) > n_topics:
            raise InvalidParameterError(
                f"seed_words must name from 1 to n_topics={n_topics} topics, such as "
                f"{{'sports': ['game', 'team']}}; got {len(seed_words)}. Raise n_topics, or leave some out."
            )
        seeds: dict[str, IntArray] = {}
        lost: list[str] = []
        for name, group in seed_words.items():
            if not (isinstance(name, str) and name.strip()) or isinstance(group, str):
                raise InvalidParameterError(
                    f"seed_words must be lists of words by name, got {name!r}: {group!r}."
                )
            places = {word: self._place(word, "seed_words") for word in group}
            unused = [f"{word!r} ({name}) {reason}" for word, (_, reason) in places.items() if reason]
            if len(unused) == len(places):
                raise InvalidParameterError(
                    f"None of the seed words of {name!r} is among the {len(self.words)} words used: "
                    f"{'; '.join(unused)}."
                )
            seeds[name.strip()] = np.unique([place for place, reason in places.values() if not reason])
            lost += unused
        if lost:
            warn_user(f"Seed words without effect: {'; '.join(lost)}.", DataChangedWarning)
        return seeds

    def _place(self, word: Any, parameter: str) -> tuple[int, str]:
        """Return the place of a word among the used ones, or why it has none and what would change that."""
        column, (n_documents, n_words) = word, self.counts.shape
        if isinstance(word, str):
            if self.names is None:
                return -1, "is a word, but the words have no names: pass columns, or a data frame"
            # Texts are counted in lower case as a rule.
            exact, lower = (np.flatnonzero(self.names == one) for one in (word.strip(), word.strip().lower()))
            if not len(exact) + len(lower):
                return -1, "is not in the vocabulary: check its spelling, or choose another word"
            column = [*exact, *lower][0]
        elif isinstance(word, bool) or not isinstance(word, int | np.integer) or not 0 <= word < n_words:
            raise InvalidParameterError(
                f"{parameter} must be words or columns from 0 to {n_words - 1}, got {word!r}."
            )
        if column in self.words:
            return int(np.searchsorted(self.words, column)), ""
        n = int(document_frequencies(self.counts)[column])
        if n >= n_documents:
            return -1, "is in all documents and tells none of them apart: choose another word"
        if n >= self.min_df:
            share = n / n_documents
            return -1, (
                f"is in {share:.1%} of the documents, more than max_df: raise max_df to {share + 5e-4:.3f}"
            )
        noun = "document" if n == 1 else "documents"
        return -1, f"is in {n} {noun}, fewer than min_df={self.min_df}: pass min_df={max(n, 1)}"
