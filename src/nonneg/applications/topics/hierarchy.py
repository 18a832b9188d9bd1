"""A tree over topics: the nearest two are joined first, until all are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError


@dataclass(frozen=True)
class TopicHierarchy:
    """A tree over topics, as `TopicModel.hierarchy` returns it.

    Attributes
    ----------
    merges : array of shape (n_topics - 1, 4)
        SciPy's linkage matrix: which two are joined, at which distance, and how many topics are below.
    labels : list of str
        The labels of the topics.
    """

    merges: FloatArray
    labels: list[str]

    def cut(self, n_groups: int | None = None, *, distance: float | None = None) -> list[list[int]]:
        """Return the groups of topics below a cut through the tree.

        Parameters
        ----------
        n_groups : int, optional
            Number of groups.
        distance : float, optional
            Instead: topics that are joined up to this distance are in one group.

        Returns
        -------
        list of list of int
            The topics of every group, for `TopicModel.merge_topics`.
        """
        n_topics = len(self.labels)
        if (n_groups is None) == (distance is None):
            raise InvalidParameterError("Give either n_groups or distance.")
        if n_groups is not None:
            if isinstance(n_groups, bool) or not isinstance(n_groups, int | np.integer):
                raise InvalidParameterError(f"n_groups must be an integer, got {n_groups!r}.")
            if not 1 <= n_groups <= n_topics:
                raise InvalidParameterError(
                    f"n_groups={n_groups} is not between 1 and the number of topics, {n_topics}."
                )
            # Joins of equal distance are undone one by one, so that every number of groups can be had.
            n_joins = n_topics - int(n_groups)
        if distance is not None:
            n_joins = int(np.sum(self.merges[:, 2] <= distance))
        groups: dict[int, list[int]] = {at: [at] for at in range(n_topics)}
        for at, (one, other) in enumerate(self.merges[:n_joins, :2].astype(int).tolist()):
            groups[n_topics + at] = groups.pop(one) + groups.pop(other)
        return sorted(sorted(group) for group in groups.values())

    def __str__(self) -> str:
        """Draw the tree as text, with the distance at which topics are joined."""
        n_topics = len(self.labels)

        def lines(node: int) -> list[str]:
            if node < n_topics:
                return [f"{node}: {self.labels[node]}"]
            one, other, distance, _ = self.merges[node - n_topics]
            upper, lower = lines(int(one)), lines(int(other))
            return [
                f"{distance:.2f}",
                f"├── {upper[0]}",
                *(f"│   {line}" for line in upper[1:]),
                f"└── {lower[0]}",
                *(f"    {line}" for line in lower[1:]),
            ]

        return "\n".join(lines(n_topics + len(self.merges) - 1))


def topic_hierarchy(components: FloatArray, labels: Sequence[str]) -> TopicHierarchy:
    """Join the nearest topics first, by Ward's criterion on weights of words of unit length."""
    # Average linkage chains topics into one large group; see the study of topic editing.
    lengths = np.linalg.norm(components, axis=1, keepdims=True)
    rows = np.asarray(components, dtype=np.float64) / np.where(lengths > 0, lengths, 1.0)
    # Distances that differ in their last digits only would depend on the machine.
    distances = np.round(pdist(rows), 9)
    merges = linkage(distances, "ward") if len(rows) > 1 else np.empty((0, 4))
    return TopicHierarchy(merges, list(labels))
