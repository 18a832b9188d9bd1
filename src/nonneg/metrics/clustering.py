"""Agreement of a clustering with known classes.

Labels are arbitrary integers or strings, not necessarily the same for classes and clusters. Everything is
computed from the counts of the pairs (class, cluster) that occur, so that many small clusters cost no more
than few large ones.

In `nonneg.datasets` the class -1 means that none is known; pass ``unlabeled=-1`` to leave these samples out.
A cluster named -1 is a cluster like any other.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from nonneg.exceptions import DataTypeError, InvalidDataError, InvalidParameterError, ShapeError

_WHOLE = 2.0**53  # beyond it a floating-point number stands for several whole ones


def normalized_mutual_information(y_true: Any, y_pred: Any, *, unlabeled: Any = None) -> float:
    """Return the mutual information of classes and clusters over the geometric mean of their entropies.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The class of each sample.
    y_pred : array-like of shape (n_samples,)
        Its cluster.
    unlabeled : int or str, optional
        A label in `y_true` for samples without a known class, which are left out.

    Returns
    -------
    float
        From 0 (independent) to 1 (the same partition). 1 if both partitions have a single part, 0 if only one
        of them does.

    References
    ----------
    .. [1] Strehl & Ghosh (2002), Journal of Machine Learning Research 3, equation (3).
    """
    from sklearn.metrics import normalized_mutual_info_score

    true, predicted = _label_pairs(y_true, y_pred, unlabeled)
    return float(np.clip(normalized_mutual_info_score(true, predicted, average_method="geometric"), 0.0, 1.0))


def purity(y_true: Any, y_pred: Any, *, unlabeled: Any = None) -> float:
    """Return the fraction of samples that belong to the largest class of their cluster.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The class of each sample.
    y_pred : array-like of shape (n_samples,)
        Its cluster.
    unlabeled : int or str, optional
        A label in `y_true` for samples without a known class, which are left out.

    Returns
    -------
    float
        Above 0 and at most 1. Clusters of one sample each have purity 1: compare equal numbers of clusters.

    References
    ----------
    .. [1] Manning, Raghavan & Schuetze (2008), Introduction to Information Retrieval, Section 16.3.
    """
    counts = _counts(y_true, y_pred, unlabeled)
    return float(counts.max(axis=0).sum() / counts.sum())


def clustering_accuracy(y_true: Any, y_pred: Any, *, unlabeled: Any = None) -> float:
    """Return the accuracy under the best one-to-one matching of clusters and classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The class of each sample.
    y_pred : array-like of shape (n_samples,)
        Its cluster. There may be more or fewer clusters than classes; unmatched ones count as wrong.
    unlabeled : int or str, optional
        A label in `y_true` for samples without a known class, which are left out.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    The matching is by the Hungarian method (Kuhn and Munkres) on the pairs that occur.
    """
    import scipy.sparse as sp
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    counts = _counts(y_true, y_pred, unlabeled)
    n_classes = counts.shape[0]
    # Every class also has a partner of its own that fits no sample, so that a pairing of all classes exists.
    # One is added throughout, because a weight of zero would be no edge.
    joint = sp.csr_array(counts).astype(np.float64)
    joint.data += 1.0
    weights = sp.csr_array(sp.hstack([joint, sp.eye_array(n_classes)], format="csr"))
    weights.indices, weights.indptr = (part.astype(np.int32) for part in (weights.indices, weights.indptr))
    rows, columns = min_weight_full_bipartite_matching(weights, maximize=True)
    return float((weights[rows, columns].sum() - n_classes) / counts.sum())


def _counts(y_true: Any, y_pred: Any, unlabeled: Any) -> Any:
    """Return the number of samples of every class (row) and cluster (column), sparse."""
    from sklearn.metrics.cluster import contingency_matrix

    return contingency_matrix(*_label_pairs(y_true, y_pred, unlabeled), sparse=True)


def _label_pairs(y_true: Any, y_pred: Any, unlabeled: Any) -> tuple[Any, Any]:
    true, predicted = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    if true.size != predicted.size:
        raise ShapeError(
            f"Expected the same number of labels in `y_true` and `y_pred`, got {true.size} and "
            f"{predicted.size}. Pass one label per sample, in the same order."
        )
    if unlabeled is not None:
        if not isinstance(unlabeled, Real | str):
            raise InvalidParameterError(f"unlabeled must be None or a label, got {unlabeled!r}.")
        labeled = true != unlabeled
        true, predicted = true[labeled], predicted[labeled]
    if true.size == 0:
        raise InvalidDataError(
            "Expected at least one sample with a class, got none. The score is not defined."
        )
    # As numbers: labels of any type, however many.
    return tuple(np.unique(labels, return_inverse=True)[1] for labels in (true, predicted))  # type: ignore[return-value]


def _labels(labels: Any, name: str) -> Any:
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise DataTypeError(f"Expected `{name}` as a list of labels: {error}.") from error
    if array.ndim != 1:
        raise ShapeError(
            f"Expected `{name}` of shape (n_samples,), one label per sample, got {array.shape}. For a table "
            "of memberships pass its argmax along the last axis."
        )
    if array.dtype.kind == "O":
        # A column of a data frame: usually strings; mixed types cannot be sorted.
        if all(isinstance(label, str) for label in array):
            array = array.astype(str)
        elif all(isinstance(label, Integral) for label in array):
            array = np.asarray(array.tolist())
    if array.dtype.kind == "f" and np.all((array == np.floor(array)) & (np.abs(array) < _WHOLE)):
        array = array.astype(np.int64)
    if array.size and array.dtype.kind not in "biuUS":
        raise DataTypeError(
            f"Expected integers or strings in `{name}`, got entries of type {array.dtype}. Convert them "
            "first."
        )
    return array
