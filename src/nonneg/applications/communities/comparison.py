"""Communities compared with a known label of the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from nonneg._typing import IntArray
from nonneg.exceptions import InvalidDataError, ShapeError
from nonneg.metrics import clustering_accuracy, normalized_mutual_information


@dataclass(frozen=True)
class LabelComparison:
    """How well the main communities of the nodes agree with a known label.

    Attributes
    ----------
    nmi : float
        Normalized mutual information.
    ari : float
        Adjusted Rand index.
    accuracy : float
        Fraction of nodes that agree under the best one-to-one matching of communities and labels.
    labels : tuple of str
        The labels, the most frequent first.
    counts : tuple of tuple of int
        One row per label, one column per community: how many nodes have both.
    n_left_out : int
        Nodes without a label or without a community.
    """

    nmi: float
    ari: float
    accuracy: float
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    n_left_out: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON.

        Returns
        -------
        dict
            The attributes by name.
        """
        return asdict(self)


def compare_labels(found: IntArray, n_communities: int, names: Sequence[str], labels: Any) -> LabelComparison:
    """Compare the main communities with labels, one per node or by name; None and "" mean unknown."""
    if isinstance(labels, Mapping):
        labels = [labels.get(name) for name in names]
    given = ["" if _is_missing(label) else str(label) for label in labels]
    if len(given) != len(found):
        raise ShapeError(f"labels has {len(given)} entries for {len(found)} nodes: give one label per node.")
    kept = np.flatnonzero((np.asarray(given) != "") & (found >= 0))
    if not len(kept):
        raise InvalidDataError(
            "No node has both a label and a community. Check that the labels belong to nodes of the graph."
        )
    true, clusters = np.asarray(given)[kept], found[kept]
    classes, codes, sizes = np.unique(true, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    table = np.zeros((len(classes), n_communities), dtype=np.int64)
    np.add.at(table, (codes, clusters), 1)
    return LabelComparison(
        nmi=normalized_mutual_information(true, clusters),
        ari=float(adjusted_rand_score(true, clusters)),
        accuracy=clustering_accuracy(true, clusters),
        labels=tuple(classes[order].tolist()),
        counts=tuple(tuple(row) for row in table[order].tolist()),
        n_left_out=len(found) - len(kept),
    )


def _is_missing(label: Any) -> bool:
    return label is None or label == "" or (isinstance(label, float) and bool(np.isnan(label)))
