"""A tree over topics: the nearest two are joined first, until all are one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import pdist

from nonneg._typing import FloatArray
from nonneg.applications.topics.documents import unit_rows
from nonneg.exceptions import InvalidParameterError


@dataclass(frozen=True)
class TopicHierarchy:
    """A tree over topics, as `TopicModel.hierarchy` returns it.

    Attributes
    ----------
    merges : array of shape (n_topics - 1, 4)
        SciPy's linkage matrix: which two are joined, at which distance, and how many topics are below.
        `scipy.cluster.hierarchy.dendrogram` draws it.
    labels : list of str
        The labels of the topics.
    """

    merges: FloatArray
    labels: list[str]

    def cut(self, n_groups: int) -> list[list[int]]:
        """Return the groups of topics below a cut through the tree.

        Parameters
        ----------
        n_groups : int
            Number of groups.

        Returns
        -------
        list of list of int
            The topics of every group, for `TopicModel.merge_topics`.
        """
        n_topics = len(self.labels)
        if n_groups not in range(1, n_topics + 1):
            raise InvalidParameterError(
                f"n_groups must be an integer from 1 to the number of topics, {n_topics}; got {n_groups!r}."
            )
        if n_topics == 1:
            return [[0]]
        groups = cut_tree(self.merges, n_clusters=n_groups).ravel()
        return sorted(np.flatnonzero(groups == at).tolist() for at in np.unique(groups))


def topic_hierarchy(components: FloatArray, labels: list[str]) -> TopicHierarchy:
    """Join the nearest topics first, by Ward's criterion on weights of words of unit length."""
    # Distances that differ in their last digits only would depend on the machine.
    distances = np.round(pdist(unit_rows(np.asarray(components, dtype=np.float64))), 9)
    return TopicHierarchy(linkage(distances, "ward") if len(distances) else np.empty((0, 4)), labels)
