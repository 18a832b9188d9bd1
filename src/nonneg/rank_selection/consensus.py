"""Consensus of restarts on which samples belong together."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray


def consensus_matrix(labels: Any) -> FloatArray:
    """Return the share of runs in which two samples have the same label."""
    labels = np.asarray(labels)
    # Short integers: all counts together stay in cache.
    total = np.zeros((labels.shape[1], labels.shape[1]), dtype=np.min_scalar_type(len(labels)))
    for run in labels:
        total += run[:, None] == run[None, :]
    return total / len(labels)


def cophenetic_correlation(consensus: FloatArray) -> float:
    """Return the cophenetic correlation of 1 - consensus with its average-linkage tree."""
    # Brunet, Tamayo, Golub & Mesirov (2004), PNAS 101(12), 4164-4169.
    # Imported here, because a fit with a given number of components should not wait for it.
    from scipy.cluster.hierarchy import cophenet, linkage

    distances = 1.0 - consensus[np.triu_indices(len(consensus), 1)]
    if distances.size < 2 or np.all((distances == 0.0) | (distances == 1.0)):
        return 1.0
    tree = cophenet(linkage(distances, "average"))
    if np.ptp(distances) == 0.0 or np.ptp(tree) == 0.0:
        # Every pair is together equally often: there are no clusters.
        return 0.0
    return float(np.corrcoef(distances, tree)[0, 1])


def dispersion(consensus: FloatArray) -> float:
    """Return the dispersion coefficient: 1 where all entries are 0 or 1, 0 where all are 1/2."""
    # Kim & Park (2007), Bioinformatics 23(12), 1495-1502.
    return float(np.mean(4.0 * (consensus - 0.5) ** 2))
