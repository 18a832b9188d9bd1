"""Documents that a topic model is given, as counts of its words."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names

from nonneg.applications.topics.documents import (
    are_texts,
    checked_counts,
    counted_texts,
    make_vectorizer,
)
from nonneg.exceptions import InvalidParameterError, ShapeError


def read_documents(model: Any, X: Any, *, reset: bool) -> Any:
    """Return counts, and set or compare what is known of the words."""
    texts = are_texts(X)
    if reset:
        model.vectorizer_ = make_vectorizer(model.vectorizer, model.stop_words) if texts else None
    elif texts and model.vectorizer_ is None:
        raise InvalidParameterError(
            "The model was fitted to counts of words: pass counts of the same words, not texts."
        )
    elif not texts and model.vectorizer_ is not None:
        raise InvalidParameterError("The model was fitted to texts: pass a list of texts.")
    if texts:
        counts = counted_texts(model.vectorizer_, X, fit=reset)
        if reset:
            vars(model).pop("feature_names_in_", None)
    else:
        _check_feature_names(model, X, reset=reset)
        counts = checked_counts(X)
    if reset:
        model.n_features_in_ = counts.shape[1]
        model.vocabulary_ = _vocabulary(model, texts, counts.shape[1])
    elif counts.shape[1] != model.n_features_in_:
        raise ShapeError(
            f"X has {counts.shape[1]} features, but TopicModel is expecting {model.n_features_in_} "
            "features as input."
        )
    return counts


def read_batch(model: Any, X: Any) -> Any:
    """Return counts of a further batch; new words of texts are added at the end of the vocabulary."""
    if are_texts(X) and model.vectorizer_ is not None and model.vectorizer is None:
        analyze = model.vectorizer_.build_analyzer()
        known = set(model.vocabulary_)
        new = sorted({word for text in X for word in analyze(text)} - known)
        if new:
            model.vocabulary_ = np.concatenate([model.vocabulary_, np.asarray(new, dtype=object)])
            model.vectorizer_ = make_vectorizer(None, model.stop_words)
            model.vectorizer_.set_params(vocabulary=list(model.vocabulary_))
            model.n_features_in_ = len(model.vocabulary_)
    return read_documents(model, X, reset=False)


def _vocabulary(model: Any, texts: bool, n_words: int) -> Any:
    if texts:
        if model.vocabulary is not None:
            raise InvalidParameterError(
                "vocabulary names the columns of counts; texts bring their own words. Leave it out, or "
                "give it to a vectorizer."
            )
        return np.asarray(model.vectorizer_.get_feature_names_out(), dtype=object)
    names = getattr(model, "feature_names_in_", None) if model.vocabulary is None else model.vocabulary
    if names is None:
        return None
    if len(names) != n_words:
        raise ShapeError(
            f"vocabulary has {len(names)} words, but X has {n_words} columns. One per column is needed."
        )
    return np.asarray([str(name) for name in names], dtype=object)
