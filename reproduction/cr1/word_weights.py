"""Weightings of the words of documents, to see which one the published scores come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reproduction.cr1.real_sets import weighted, without_empty_columns
from reproduction.data import tfidf


def _unit(X: Any) -> Any:
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
    return X.multiply(1.0 / lengths[:, None]).tocsr()


def _logarithms(X: Any) -> Any:
    X = X.copy()
    X.data = 1.0 + np.log(X.data)
    return X


def _lengths_kept(X: Any) -> Any:
    """Return the weighting of the paper's programs before documents are scaled to unit length."""
    present = np.bincount(X.indices, minlength=X.shape[1])
    inverse = np.log(X.shape[0] / np.maximum(present, 1))
    return without_empty_columns(_logarithms(X).multiply(inverse[None, :]).tocsr())


WEIGHTINGS: dict[str, Callable[[Any], Any]] = {
    "log tf-idf": weighted,
    "counts": without_empty_columns,
    "counts, unit length": lambda X: without_empty_columns(_unit(X)),
    "log tf, unit length": lambda X: without_empty_columns(_unit(_logarithms(X))),
    "tf-idf": lambda X: weighted(X, logarithmic=False),
    "tf-idf of scikit-learn": lambda X: without_empty_columns(tfidf(X)),
    "log tf-idf, smooth": lambda X: weighted(X, smooth=True),
    "log tf-idf, lengths kept": _lengths_kept,
}
"""Name -> a function of the counts. All but two scale documents to unit length."""
