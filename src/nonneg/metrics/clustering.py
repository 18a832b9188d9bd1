"""How well a clustering agrees with known classes.

Labels are arbitrary integers or strings, not necessarily the same for classes and clusters. Everything is
computed from the counts of the pairs (class, cluster) that occur, so that many small clusters cost no more
than few large ones.

In `nonneg.datasets` the class -1 means that none is known; pass ``unlabeled=-1`` to leave these samples out.
A cluster named -1 is a cluster like any other.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from nonneg._typing import IntArray
from nonneg.exceptions import DataTypeError, InvalidDataError, ShapeError

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
    counts = _count(y_true, y_pred, unlabeled)
    entropies = [_entropy(counts.classes), _entropy(counts.clusters)]
    if max(entropies) == 0.0:
        return 1.0
    if min(entropies) == 0.0:
        return 0.0
    share = counts.joint / counts.total
    # The logarithm of each factor by itself: their product overflows nothing and keeps its digits.
    gain = (
        np.log(share)
        - np.log(counts.classes[counts.rows] / counts.total)
        - np.log(counts.clusters[counts.columns] / counts.total)
    )
    information = float(np.sum(share * gain))
    return float(np.clip(information / np.sqrt(entropies[0] * entropies[1]), 0.0, 1.0))


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
    counts = _count(y_true, y_pred, unlabeled)
    largest = np.zeros(counts.clusters.size)
    np.maximum.at(largest, counts.columns, counts.joint)
    return float(largest.sum() / counts.total)


def dice_coefficient(y_true: Any, y_pred: Any, *, unlabeled: Any = None) -> float:
    """Return the mean over classes of the Dice coefficient with the best cluster.

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
        In (0, 1]; 1 for equal partitions only. It is not symmetric in its arguments, and one cluster may be
        the best match of several classes.

    See Also
    --------
    pair_dice : The coefficient of two sets of pairs, which is symmetric.

    Notes
    -----
    The Dice coefficient of sets A and B is ``2 |A and B| / (|A| + |B|)`` (Salton, 1989). For clusterings the
    name has several meanings; this is the one by which the tables of the cr1-nmf paper were computed. Every
    class counts the same, whatever its size.
    """
    counts = _count(y_true, y_pred, unlabeled)
    overlap = 2.0 * counts.joint / (counts.classes[counts.rows] + counts.clusters[counts.columns])
    best = np.zeros(counts.classes.size)
    np.maximum.at(best, counts.rows, overlap)
    return float(best.mean())


def pair_dice(y_true: Any, y_pred: Any, *, unlabeled: Any = None) -> float:
    """Return the Dice coefficient of the sample pairs within classes and those within clusters.

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
        ``2 TP / (2 TP + FP + FN)`` from 0 to 1, symmetric; 1 where there are no such pairs.

    See Also
    --------
    dice_coefficient : Class by class, with the best cluster of each.
    """
    counts = _count(y_true, y_pred, unlabeled)
    together, by_classes, by_clusters = (
        float(np.sum(sizes * (sizes - 1.0))) for sizes in (counts.joint, counts.classes, counts.clusters)
    )
    either = by_classes + by_clusters
    return 1.0 if either == 0.0 else 2.0 * together / either


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
    import scipy.sparse
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    counts = _count(y_true, y_pred, unlabeled)
    n_classes, n_clusters = counts.classes.size, counts.clusters.size
    # Every class also has a partner of its own that fits no sample, so that a pairing of all classes exists.
    # One is added throughout, because a weight of zero would be no edge.
    own = np.arange(n_classes, dtype=np.int32)  # as are the indices below: SciPy 1.13 matches no others
    weights = scipy.sparse.csr_array(
        (
            np.concatenate([counts.joint, np.zeros(n_classes)]) + 1.0,
            (
                np.concatenate([counts.rows, own], dtype=np.int32),
                np.concatenate([counts.columns, n_clusters + own], dtype=np.int32),
            ),
        ),
        shape=(n_classes, n_clusters + n_classes),
    )
    rows, columns = min_weight_full_bipartite_matching(weights, maximize=True)
    return float((weights[rows, columns].sum() - n_classes) / counts.total)


class _Counts(NamedTuple):
    rows: IntArray
    columns: IntArray
    joint: Any
    classes: Any
    clusters: Any
    total: float


def _count(y_true: Any, y_pred: Any, unlabeled: Any) -> _Counts:
    true, found = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    if true.size != found.size:
        raise ShapeError(
            f"Expected the same number of labels in `y_true` and `y_pred`, got {true.size} and "
            f"{found.size}. Pass one "
            "label per sample, in the same order."
        )
    if unlabeled is not None:
        labeled = true != unlabeled
        true, found = true[labeled], found[labeled]
    if true.size == 0:
        raise InvalidDataError(
            "Expected at least one sample with a class, got none. The score is not defined."
        )
    _, true_codes, class_sizes = np.unique(true, return_inverse=True, return_counts=True)
    _, found_codes, cluster_sizes = np.unique(found, return_inverse=True, return_counts=True)
    pairs, joint = np.unique(true_codes * cluster_sizes.size + found_codes, return_counts=True)
    return _Counts(
        rows=(pairs // cluster_sizes.size).astype(np.intp),
        columns=(pairs % cluster_sizes.size).astype(np.intp),
        joint=joint.astype(np.float64),
        classes=class_sizes.astype(np.float64),
        clusters=cluster_sizes.astype(np.float64),
        total=float(true.size),
    )


def _labels(labels: Any, name: str) -> Any:
    array = np.asarray(labels)
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


def _entropy(sizes: Any) -> float:
    # From a single part the rounding of 1 * log 1 leaves exactly 0.
    shares = sizes / sizes.sum()
    return float(-np.sum(shares * np.log(shares)))
