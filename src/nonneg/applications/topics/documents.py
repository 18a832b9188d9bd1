"""Documents as a user has them: texts, or counts of words as an array, sparse matrix or data frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import is_sparse_array
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.term_weights import document_frequencies
from nonneg.data.csr_arrays import scipy_matrix
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
)

# Words of two letters or more; numbers are left out, which counts of words can do without.
WORDS = r"(?u)\b[^\W\d_][\w'-]*\w\b"


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
    kinds = {isinstance(entry, str) for entry in documents}
    if kinds == {True, False}:
        at, other = next((at, entry) for at, entry in enumerate(documents) if not isinstance(entry, str))
        raise DataTypeError(
            f"Expected texts throughout, but document {at} is of type {type(other).__name__}. Leave it "
            "out, or use '' for an empty document."
        )
    return kinds == {True}


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
        found = vectorizer.fit_transform(texts) if fit else vectorizer.transform(texts)
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        raise InvalidDataError(
            f"No word was found in the {len(texts)} documents: they are empty, or contain nothing but stop "
            f"words and numbers. Check the texts, or pass a vectorizer with another token_pattern."
        ) from None
    return checked_counts(found)


def checked_counts(counts: Any) -> Any:
    """Return counts as a sparse matrix of floats without duplicates."""
    if is_sparse_array(counts):
        counts = scipy_matrix(counts)
    if not sp.issparse(counts):
        counts = np.asarray(counts)
        if counts.dtype.kind not in "biuf":
            raise DataTypeError(
                "Expected counts of words (numbers) or a list of texts, got an array of type "
                f"{counts.dtype}. Pass texts as a list or a one-dimensional array of str."
            )
        if counts.ndim != 2:
            raise ShapeError(
                f"Expected counts of shape (n_documents, n_words), one document per row, got {counts.shape}."
            )
    dtype = np.float32 if counts.dtype == np.float32 else np.float64
    if sp.issparse(counts):
        # A copy, before several entries of one word are added: a narrow type would not hold the sum.
        found = sp.csr_array(counts.astype(dtype, copy=True))
    else:
        found = sp.csr_array(counts).astype(dtype, copy=False)
    found.sum_duplicates()
    if found.shape[0] == 0 or found.shape[1] == 0:
        raise InvalidDataError(f"Expected at least one document and one word, got {found.shape}.")
    if not np.isfinite(found.data).all():
        raise NonFiniteDataError(f"Counts must be finite; {_place(found, ~np.isfinite(found.data))}.")
    if (found.data < 0).any():
        raise NegativeDataError(
            f"Counts of words must not be negative; {_place(found, found.data < 0)}. Check what the matrix "
            f"contains."
        )
    found.eliminate_zeros()
    return found


def _place(counts: Any, wrong: Any) -> str:
    at = int(np.flatnonzero(wrong)[0])
    row = int(np.searchsorted(counts.indptr, at, side="right")) - 1
    return f"entry [{row}, {int(counts.indices[at])}] is {counts.data[at]}"


def smallest_df(min_df: int | None, n_documents: float) -> int:
    """Return in how many documents a word has to occur."""
    if min_df is not None:
        return max(1, min_df)
    # A rare word says little of many documents. The study of topics chose the growth: half of the words and
    # of the time at the same accuracy.
    return max(2, round(math.sqrt(n_documents) / 10))


def kept_words(frequencies: Any, n_documents: float, min_df: int | None, max_df: float) -> Any:
    """Tell which words are neither too rare nor too common."""
    common = (frequencies > max_df * n_documents) | (frequencies >= n_documents)
    return (frequencies >= smallest_df(min_df, n_documents)) & ~common


def used_words(counts: Any, min_df: int | None, max_df: float) -> IntArray:
    """Return the words that topics are made of."""
    n_documents = counts.shape[0]
    min_df = smallest_df(min_df, n_documents)
    found = document_frequencies(counts)
    kept = kept_words(found, n_documents, min_df, max_df)
    if not kept.any():
        remedy = "Lower min_df" if (found < min_df).any() else "Raise max_df"
        raise InvalidDataError(
            f"No word is left of {counts.shape[1]} in {n_documents} documents: {int(np.sum(found == 0))} "
            f"occur nowhere, {int(np.sum((found > 0) & (found < min_df)))} in fewer than "
            f"min_df={min_df}, "
            f"{int(np.sum(found > min(max_df * n_documents, n_documents - 1)))} in more than "
            f"max_df={max_df} of the documents or in all. {remedy}, or pass more documents."
        )
    return np.flatnonzero(kept)


def spread_out(part: FloatArray, words: IntArray, n_words: int) -> FloatArray:
    """Return topics over the whole vocabulary."""
    whole = np.zeros((len(part), n_words), dtype=part.dtype)
    whole[:, words] = part
    return whole
