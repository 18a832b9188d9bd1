"""What a fit says about nodes and communities, as tables, lists and graphs of other packages."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError


class CommunityResults:
    """Tables, lists and graphs of other packages from a fitted `MixedMembership`."""

    def node_table(self) -> dict[str, Any]:
        """Return everything known about every node, as columns.

        Returns
        -------
        dict of str to array
            ``node`` (names), ``degree`` (sum of the weights), ``community_0`` to ``community_{k-1}``
            (memberships), ``label``, ``pure`` (whether the node stands for a community) and ``reached``.
            `pandas.DataFrame` accepts it.
        """
        check_is_fitted(self)
        n = len(self.memberships_)
        pure, reached = np.zeros(n, dtype=bool), np.ones(n, dtype=bool)
        pure[self.pure_nodes_] = True
        reached[self.unreached_nodes_] = False
        reached[self.isolated_nodes_] = False
        table: dict[str, Any] = {"node": np.asarray(self.node_names_), "degree": self.graph_.degrees}
        for at in range(self.memberships_.shape[1]):
            table[f"community_{at}"] = self.memberships_[:, at]
        return table | {"label": self.labels_, "pure": pure, "reached": reached}

    def top_nodes(self, n: int = 10) -> list[list[tuple[str, float]]]:
        """Return the nodes that belong most to each community.

        Parameters
        ----------
        n : int
            Maximum number of nodes per community.

        Returns
        -------
        list of list of (str, float)
            Names and memberships; of equal ones the node with the larger degree comes first.
        """
        check_is_fitted(self)
        degrees = self.graph_.degrees
        found = []
        for column in np.nan_to_num(self.memberships_, nan=-1.0).T:
            order = np.lexsort((-degrees, -column))[:n]
            found.append([(self.node_names_[at], float(column[at])) for at in order if column[at] > 0])
        return found
