"""Documents: texts or counts, the words that are used, and what a word in a document weighs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import checked_indices, is_sparse_array
from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, check_entries
from nonneg.data.sparse import scipy_matrix
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    ShapeError,
    UnknownNameError,
    as_data_errors,
)

# Words of two letters or more, without numbers.
WORDS = r"(?u)\b[^\W\d_][\w'-]*\w\b"


def are_texts(documents: Any) -> bool:
    """Tell whether documents are texts rather than counts."""
    if isinstance(documents, str | bytes | Mapping | Iterator) and not sp.issparse(documents):
        came = f"got one {type(documents).__name__}. Make a list, one text per document."
        raise DataTypeError(f"Expected a list of documents, {came}")
    # A series of a data frame has one axis, the data frame itself and arrays of counts have two.
    one_axis = len(getattr(documents, "shape", (0,))) == 1 and hasattr(documents, "__len__")
    if sp.issparse(documents) or not one_axis:
        return False
    if not len(documents):
        raise InvalidDataError("Expected at least one document, got none.")
    other = next(((at, one) for at, one in enumerate(documents) if not isinstance(one, str)), None)
    if other is None:
        return True
    # Elements of arrays of Arrow become str by `as_py` alone.
    no_count = isinstance(other[1], bytes | os.PathLike) or hasattr(other[1], "as_py")
    if no_count or any(isinstance(one, str) for one in documents):
        raise DataTypeError(
            f"Expected texts throughout, but document {other[0]} is of type {type(other[1]).__name__}. Every "
            "document is a str; '' is an empty one."
        )
    if isinstance(other[1], list | tuple) and any(isinstance(word, str) for word in other[1]):
        raise DataTypeError("Expected texts, got lists of words. Join them, as by ' '.join(words).")
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
    X = checked_indices(scipy_matrix(X) if is_sparse_array(X) else X)
    with as_data_errors():
        X = X if sp.issparse(X) else np.asarray(X)
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
        raise InvalidDataError(
            f"No word is left of {counts.shape[1]}: {int(rare.sum())} are in fewer than min_df={min_df} of "
            f"the {n_documents} documents, the others in more than max_df={max_df} of them or in all. Change "
            "these limits, or pass more documents."
        )
    return words


def inverse_frequencies(counts: Any) -> FloatArray:
    """Return the logarithm of how rare each word is among the documents."""
    frequencies = document_frequencies(counts)
    return np.where(frequencies > 0, np.log(counts.shape[0] / np.maximum(frequencies, 1)), 0.0)


def term_weights(counts: Any, inverse: FloatArray | None) -> Any:
    """Return what each word weighs in each document: ``(1 + log count) * inverse``; entries if it is None."""
    values = counts.data.astype(np.float64)
    if inverse is not None:
        above = values > 1.0
        values[above] = 1.0 + np.log(values[above])
        values *= inverse[counts.indices]
    return sp.csr_array((values.astype(counts.dtype), counts.indices, counts.indptr), shape=counts.shape)


def rows_of_sum_one(factor: FloatArray) -> FloatArray:
    """Divide every row by its sum."""
    sums = factor.sum(axis=1, keepdims=True)
    return factor / np.where(sums > 0, sums, 1.0)


def unit_rows(rows: Any) -> Any:
    """Divide every row of an array or a sparse matrix by its Euclidean length."""
    if not sp.issparse(rows):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1.0)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sp.csr_array(rows.multiply(1.0 / np.where(lengths > 0, lengths, 1.0)[:, None]))


@dataclass(frozen=True)
class Vocabulary:
    """The words of a collection: where anchor and seed words are among those that are used."""

    names: Any  # of the columns, or None
    words: IntArray  # the columns that are used
    frequencies: IntArray  # in how many documents the word of each column occurs
    limits: str  # which words are used

    def anchors(self, anchors: Sequence[Any], n_topics: int) -> IntArray:
        """Return the places of anchor words among the used words."""
        if len(anchors) != n_topics:
            raise InvalidParameterError(
                f"anchors has {len(anchors)} words, but n_topics={n_topics}: one per topic is needed. Set "
                f"n_topics={len(anchors)}, or change anchors."
            )
        places, lost = self._places(anchors, "anchors")
        if lost:
            raise InvalidParameterError(f"Anchors that are not used in the documents: {'; '.join(lost)}.")
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
        unused: list[str] = []
        for name, group in seed_words.items():
            if not (isinstance(name, str) and name.strip()) or isinstance(group, str):
                raise InvalidParameterError(
                    f"seed_words must be lists of words by name, got {name!r}: {group!r}."
                )
            places, lost = self._places(group, "seed_words")
            if not places:
                raise InvalidParameterError(
                    f"None of the seed words of {name!r} is used in the documents: {'; '.join(lost)}."
                )
            seeds[name.strip()] = np.unique(places)
            unused += lost
        if unused:
            warn_user(f"Seed words not used in the documents: {'; '.join(unused)}.", DataChangedWarning)
        return seeds

    def _places(self, words: Sequence[Any], parameter: str) -> tuple[list[int], list[str]]:
        """Return the places of words among the used ones, and why others have none."""
        columns = {} if self.names is None else {name: at for at, name in enumerate(self.names)}
        n_words, places, lost = len(self.frequencies), [], []
        for word in words:
            column: Any = word
            if isinstance(word, str):
                # Texts are counted in lower case as a rule.
                column = columns.get(word.strip(), columns.get(word.strip().lower()))
            elif isinstance(word, bool) or not isinstance(word, int | np.integer) or not 0 <= word < n_words:
                raise InvalidParameterError(
                    f"{parameter} must be words or columns from 0 to {n_words - 1}, got {word!r}."
                )
            if column is None:
                lost.append(f"{word!r} is not in the vocabulary")
            elif column in self.words:
                places.append(int(np.searchsorted(self.words, column)))
            else:
                lost.append(f"{word!r} is in {self.frequencies[column]} of them ({self.limits})")
        return places, lost
