"""Documents: texts or counts, the words that are used, copies, and what a word in a document weighs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import is_sparse_array
from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.data.csr_arrays import scipy_matrix
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
)

# Words of two letters or more, without numbers.
WORDS = r"(?u)\b[^\W\d_][\w'-]*\w\b"
# Copies have the same words, of those that are used. Shorter documents are left alone: two people may well
# write the same short answer.
COPY_WORDS = 10


def are_texts(documents: Any) -> bool:
    """Tell whether documents are texts rather than counts."""
    if isinstance(documents, str | bytes):
        raise DataTypeError(
            f"Expected a list of documents, got one {type(documents).__name__}. Put it in a list, one text "
            f"per document."
        )
    # A series of a data frame has one axis, the data frame itself and arrays of counts have two.
    if sp.issparse(documents) or len(getattr(documents, "shape", (0,))) != 1:
        return False
    if not hasattr(documents, "__len__"):
        return False
    if not len(documents):
        raise InvalidDataError("Expected at least one document, got none.")
    is_text = [isinstance(entry, str) for entry in documents]
    if any(is_text) and not all(is_text):
        at = is_text.index(False)
        other = next(entry for entry in documents if not isinstance(entry, str))
        raise DataTypeError(
            f"Expected texts throughout, but document {at} is of type {type(other).__name__}. Leave it "
            "out, or use '' for an empty document."
        )
    return all(is_text)


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
        if X.dtype.kind not in "biuf":
            raise DataTypeError(
                "Expected counts of words (numbers) or a list of texts, got an array of type "
                f"{X.dtype}. Pass texts as a list or a one-dimensional array of str."
            )
        if X.ndim != 2:
            raise ShapeError(
                f"Expected counts of shape (n_documents, n_words), one document per row, got {X.shape}."
            )
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    # A sparse matrix is copied before entries of the same word are added: a narrow type would not hold the
    # sum.
    counts = sp.csr_array(X.astype(dtype, copy=sp.issparse(X)))
    counts.sum_duplicates()
    if counts.shape[0] == 0 or counts.shape[1] == 0:
        raise InvalidDataError(f"Expected at least one document and one word, got {counts.shape}.")
    if not np.isfinite(counts.data).all():
        raise NonFiniteDataError(f"Counts must be finite; {_place(counts, ~np.isfinite(counts.data))}.")
    if (counts.data < 0).any():
        raise NegativeDataError(
            f"Counts of words must not be negative; {_place(counts, counts.data < 0)}. Check what the matrix "
            f"contains."
        )
    counts.eliminate_zeros()
    return counts


def _place(counts: Any, wrong: Any) -> str:
    at = int(np.flatnonzero(wrong)[0])
    row = int(np.searchsorted(counts.indptr, at, side="right")) - 1
    return f"entry [{row}, {int(counts.indices[at])}] is {counts.data[at]}"


def are_weighted(counts: Any) -> bool:
    """Tell whether entries are weights, such as TF-IDF, rather than counts: not all are whole numbers."""
    return bool((counts.data != np.floor(counts.data)).any())


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


def over_vocabulary(part: FloatArray, words: IntArray, n_words: int) -> FloatArray:
    """Return topics over the whole vocabulary."""
    whole = np.zeros((len(part), n_words), dtype=part.dtype)
    whole[:, words] = part
    return whole


def first_copies(counts: Any) -> IntArray:
    """Return for every document the first one with the same words: itself for most."""
    first = np.arange(counts.shape[0], dtype=np.int64)
    known: dict[bytes, int] = {}
    for row in np.flatnonzero(np.diff(counts.indptr) >= COPY_WORDS).tolist():
        words = np.sort(counts.indices[counts.indptr[row] : counts.indptr[row + 1]])
        first[row] = known.setdefault(words.tobytes(), row)
    return first


@dataclass(frozen=True)
class Vocabulary:
    """The words of a collection: where to find anchor and seed words among those that are used."""

    names: Any  # of the columns, or None
    words: IntArray  # the columns that are used
    frequencies: IntArray  # in how many documents each word occurs
    n_documents: int
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
            column = self._column(anchor, "anchors")
            if column is None:
                raise InvalidParameterError(
                    f"The anchor {anchor!r} is a word, but the words have no names. Pass columns, or a data "
                    "frame whose columns are the words."
                    if self.names is None
                    else f"The anchor {anchor!r} is not among the {len(self.names)} words of the documents."
                )
            if column not in self.words:
                raise InvalidParameterError(f"The anchor {anchor!r} {self._unused(column)}.")
            places.append(int(np.searchsorted(self.words, column)))
        if len(set(places)) < len(places):
            raise InvalidParameterError(f"An anchor is named twice in {list(anchors)}. Name each word once.")
        return np.array(places, dtype=np.intp)

    def seeds(self, seed_words: Any, n_topics: int) -> dict[str, IntArray]:
        """Return the places of seed words among the used words, by the name of their topic."""
        if not isinstance(seed_words, Mapping) or not seed_words:
            raise InvalidParameterError(
                "seed_words must be a dict from the names of topics to lists of words, such as "
                f"{{'sports': ['game', 'team']}}; got {seed_words!r}."
            )
        if len(seed_words) > n_topics:
            raise InvalidParameterError(
                f"seed_words names {len(seed_words)} topics, but n_topics={n_topics}. Raise n_topics, or "
                "leave some out."
            )
        seeds: dict[str, IntArray] = {}
        without_effect = []
        for name, group in seed_words.items():
            if not isinstance(name, str) or not name.strip():
                raise InvalidParameterError(f"seed_words: names of topics are words, got {name!r}.")
            if isinstance(group, str) or not hasattr(group, "__iter__"):
                raise InvalidParameterError(f"seed_words[{name!r}] must be a list of words, got {group!r}.")
            columns = {word: self._column(word, "seed_words") for word in group}
            places = np.flatnonzero(np.isin(self.words, [at for at in columns.values() if at is not None]))
            if not len(places):
                reasons = "; ".join(f"{word!r} {self._unused(at)}" for word, at in columns.items())
                raise InvalidParameterError(
                    f"None of the seed words of {name!r} is among the {len(self.words)} words used: "
                    f"{reasons}."
                )
            seeds[name.strip()] = places
            without_effect += [
                f"{word!r} ({name}) {self._unused(column)}"
                for word, column in columns.items()
                if column is None or column not in self.words
            ]
        if without_effect:
            warn_user(f"Seed words without effect: {'; '.join(without_effect)}.", DataChangedWarning)
        return seeds

    def _unused(self, column: int | None) -> str:
        """Say why a word is not used, and what would change that."""
        if column is None:
            return "is not in the vocabulary: check its spelling, or choose another word"
        n = int(self.frequencies[column])
        if n >= self.n_documents:
            return "is in all documents and tells none of them apart: choose another word"
        if n >= self.min_df:
            share = n / self.n_documents
            return f"is in {share:.1%} of the documents, more than max_df: raise max_df to {share + 5e-4:.3f}"
        if n == 0:
            return "is in no document: choose another word"
        noun = "document" if n == 1 else "documents"
        return f"is in {n} {noun}, fewer than min_df={self.min_df}: pass min_df={n}"

    def _column(self, word: Any, what: str) -> int | None:
        n_words = len(self.frequencies)
        if isinstance(word, str):
            # Texts are counted in lower case as a rule.
            for spelling in (word.strip(), word.strip().lower()) if self.names is not None else ():
                if len(at := np.flatnonzero(self.names == spelling)):
                    return int(at[0])
            return None
        if isinstance(word, bool) or not isinstance(word, int | np.integer) or not 0 <= word < n_words:
            raise InvalidParameterError(
                f"{what} must be words or columns from 0 to {n_words - 1}, got {word!r}."
            )
        return int(word)
