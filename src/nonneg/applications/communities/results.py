"""What a fit says about nodes and communities, as tables, lists and graphs of other packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._optional import import_optional, is_installed
from nonneg.applications.communities.comparison import LabelComparison, compare_labels
from nonneg.applications.communities.graph import Graph
from nonneg.exceptions import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from nonneg._typing import FloatArray, IntArray

# A node also belongs to the communities in which it has at least this membership.
ALSO = 0.25


class CommunityResults:
    """Tables, lists and graphs of other packages from a fitted `MixedMembership`."""

    graph_: Graph
    memberships_: FloatArray
    sending_memberships_: Any = None
    receiving_memberships_: Any = None
    number_: Any = None
    labels_: IntArray
    pure_nodes_: IntArray
    unreached_nodes_: IntArray
    isolated_nodes_: IntArray
    node_names_: list[str]
    method_: str
    fit: Callable[..., Any]

    def fit_transform(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None) -> FloatArray:
        """Find the communities and return the memberships.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_nodes, n_nodes), or networkx graph
            The graph; never modified.
        y : Any
            Ignored.
        names : sequence of str, optional
            Names of the nodes.

        Returns
        -------
        array of shape (n_nodes, n_communities)
            `memberships_`.
        """
        found: FloatArray = self.fit(X, names=names).memberships_
        return found

    def node_table(self) -> dict[str, Any]:
        """Return everything known about every node, as columns.

        Returns
        -------
        dict of str to array
            ``node`` (names), ``degree`` (sum of the weights), ``community_0`` to ``community_{k-1}``
            (memberships), ``label``, ``pure`` (whether the node represents a community) and ``reached``; of
            a bipartite graph ``side``, of a directed one also ``sending_0`` and ``receiving_0`` to
            ``receiving_{k-1}``. `pandas.DataFrame` accepts it.
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
        if self.graph_.directed:
            for name, columns in (
                ("sending", self.sending_memberships_),
                ("receiving", self.receiving_memberships_),
            ):
                table |= {f"{name}_{at}": columns[:, at] for at in range(columns.shape[1])}
        if self.graph_.sides is not None:
            table["side"] = self.graph_.sides
        return table | {"label": self.labels_, "pure": pure, "reached": reached}

    def top_nodes(self, n: int = 10) -> list[list[tuple[str, float]]]:
        """Return the nodes that belong most to each community.

        Parameters
        ----------
        n : int, default 10
            Maximum number of nodes per community.

        Returns
        -------
        list of list of (str, float)
            Names and memberships; among equal memberships, the node with the larger degree comes first.
        """
        check_is_fitted(self)
        degrees = self.graph_.degrees
        found = []
        for column in np.nan_to_num(self.memberships_, nan=-1.0).T:
            order = np.lexsort((-degrees, -column))[:n]
            found.append([(self.node_names_[at], float(column[at])) for at in order if column[at] > 0])
        return found

    def compare(self, labels: Any) -> LabelComparison:
        """Compare the main communities of the nodes with a known label, such as a party.

        Parameters
        ----------
        labels : sequence or mapping of str
            One label per node, or labels by name of the node; None, NaN and "" mean unknown.

        Returns
        -------
        LabelComparison
            Mutual information, Rand index, accuracy, and the counts of labels and communities.
        """
        check_is_fitted(self)
        return compare_labels(self.labels_, self.memberships_.shape[1], self.node_names_, labels)

    def communities(self, threshold: float = ALSO) -> list[list[str]]:
        """Return the nodes of each community, as lists of names.

        Parameters
        ----------
        threshold : float
            A node is in the community with its largest membership, and in every other one in which its
            membership is at least this; above 0.5 no node is in two.

        Returns
        -------
        list of list of str
            One list per community, in the order of `memberships_`; the strongest members first. Isolated
            nodes are in none.
        """
        check_is_fitted(self)
        if not 0 < threshold <= 1:
            raise InvalidParameterError(f"threshold must be above 0 and at most 1, got {threshold!r}.")
        shares = np.nan_to_num(self.memberships_, nan=0.0)
        inside = shares >= threshold
        known = np.flatnonzero(self.labels_ >= 0)
        inside[known, self.labels_[known]] = True
        found = []
        for at, column in enumerate(shares.T):
            order = np.lexsort((-self.graph_.degrees, -column))
            found.append([self.node_names_[node] for node in order if inside[node, at]])
        return found

    def to_cdlib(self, *, threshold: float = ALSO, fuzzy: bool = True) -> Any:
        """Return the communities as an object of cdlib, for its measures, comparisons and plots.

        Parameters
        ----------
        threshold : float
            See `communities`.
        fuzzy : bool, default True
            Whether to return a `cdlib.FuzzyNodeClustering`, which has the memberships as
            ``allocation_matrix``, or a `cdlib.NodeClustering`.

        Returns
        -------
        cdlib.FuzzyNodeClustering or cdlib.NodeClustering
            With the graph of `to_networkx`; communities without members are left out. If cdlib is not
            installed, `communities` returns the same lists.

        Raises
        ------
        MissingDependencyError
            If cdlib is not installed.
        """
        check_is_fitted(self)
        if not is_installed("cdlib"):
            raise MissingDependencyError(
                "to_cdlib needs cdlib, which is not installed. Install it with: pip install cdlib. "
                "communities() returns the same lists without it."
            )
        cdlib = import_optional("cdlib", extra="graphs", purpose="to_cdlib")
        groups = self.communities(threshold)
        kept = [at for at, group in enumerate(groups) if group]
        groups = [groups[at] for at in kept]
        overlap = sum(map(len, groups)) > len({name for group in groups for name in group})
        given = {"method_name": f"nonneg {self.method_}", "method_parameters": {"threshold": threshold}}
        if not fuzzy:
            return cdlib.NodeClustering(groups, self.to_networkx(), overlap=overlap, **given)
        shares = np.nan_to_num(self.memberships_[:, kept], nan=0.0)
        allocation = {
            name: {at: float(share) for at, share in enumerate(row) if share > 0}
            for name, row in zip(self.node_names_, shares, strict=True)
        }
        return cdlib.FuzzyNodeClustering(groups, allocation, self.to_networkx(), overlap=overlap, **given)

    def to_networkx(self) -> Any:
        """Return the graph as a networkx graph that carries the communities.

        Returns
        -------
        networkx.Graph or networkx.DiGraph
            Nodes by name (by number where names repeat), with the columns of `node_table` as attributes
            and ``community`` for the label; edges with ``weight``. Nodes without a membership have no
            attribute for it. `networkx.write_graphml` and `networkx.write_gexf` accept it.

        Raises
        ------
        MissingDependencyError
            If networkx is not installed.
        """
        check_is_fitted(self)
        networkx = import_optional("networkx", extra="graphs", purpose="to_networkx")
        names: list[Any] = list(self.node_names_)
        if len(set(names)) < len(names):
            names = list(range(len(names)))
        kind = networkx.DiGraph if self.graph_.directed else networkx.Graph
        graph = networkx.from_scipy_sparse_array(self.graph_.adjacency, create_using=kind)
        graph = networkx.relabel_nodes(graph, dict(enumerate(names)))
        table = self.node_table()
        table["community"] = table.pop("label")
        del table["node"]
        for key, column in table.items():
            for name, value in zip(names, column.tolist(), strict=True):
                if not (isinstance(value, float) and np.isnan(value)):
                    graph.nodes[name][key] = value
        return graph
