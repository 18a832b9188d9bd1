"""MixedMembership: overlapping communities of a graph, as tables, lists and graphs of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import adjusted_rand_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._optional import import_optional
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.applications.communities.certificate import community_certificate
from nonneg.applications.communities.graph import (
    KINDS,
    SELF_LOOPS,
    STORED_GRAPH,
    Graph,
    Joined,
    as_graph,
    joined,
    split,
)
from nonneg.applications.communities.methods import METHODS, UNREACHED, Problem, fill_unreached
from nonneg.applications.communities.number import count_communities
from nonneg.applications.method_entries import method_parameters
from nonneg.certificates.certificate import Certificate
from nonneg.estimators._base import COUNT, NOT_NEGATIVE, SHARED_VALUES
from nonneg.estimators.saving import Fields, SavableEstimator, StoredArray
from nonneg.exceptions import InvalidDataError, NonnegWarning, ShapeError
from nonneg.iteration import Progress
from nonneg.iteration.progress import announce, phase
from nonneg.metrics import clustering_accuracy, normalized_mutual_information


@dataclass(eq=False, repr=False)
class MixedMembership(SavableEstimator):
    r"""Overlapping communities: how much every node of a graph belongs to each of a few communities.

    The default proposes three models and keeps the one under which hidden edges are most likely. Two are NMF:
    memberships are shares of the node's edges, with the Frobenius loss of the normalized adjacency matrix, or
    with the Kullback-Leibler divergence of the adjacency matrix (the Poisson blockmodel). The third is a
    search for *pure nodes*, which belong to a single community: under the mixed membership stochastic
    blockmodel the rows of the leading eigenvectors lie in a simplex whose vertices are pure nodes, and the
    memberships of all nodes are their coordinates with respect to the vertices; communities may also avoid
    themselves (disassortative graphs).

    Parameters
    ----------
    n_communities : int or "auto"
        The number of communities. "auto" is the widest gap of the eigenvalues of the normalized adjacency
        matrix, or the number of the non-backtracking matrix if hidden edges are more likely with it.
    method : str, default "auto"
        "auto" proposes "nmf", "poisson" and "regularized-spa" (pure nodes in eigenvectors of the normalized
        matrix).
        "spa", "merit", "fast-gradient" and "spoc" search for pure nodes in the eigenvectors of the adjacency
        matrix, as published.
    energy : float, default 0.99
        Pure nodes are searched for among the nodes with the largest rows that account for this fraction of
        the squared norm. Not for "spoc".
    unreached : {"auto", "mean", "uniform", "zero", "nan"}, default "auto"
        The membership of nodes that the leading eigenvectors do not reach, as in small components: the mean
        of the others, uniform, zeros or NaN. "auto" is the mean; for "spoc" the result as it is.
    weight : str or None, default "weight"
        networkx graphs: the attribute that contains the weight of an edge; None counts every edge as 1.
    kind : {"auto", "undirected", "directed", "bipartite"}, default "auto"
        What kind of graph it is. Nodes of a directed graph have memberships by the edges that they send and
        by those that they receive. The communities of a bipartite graph span both sides. "auto" detects it: a
        matrix that is not symmetric is directed, a table that is not square is bipartite. "undirected" adds
        the weights of both directions.
    self_loops : {"drop", "keep"}, default "drop"
        Whether edges from a node to itself are dropped (a warning counts them) or stay on the diagonal.
    tol : float or None
        "merit" and "fast-gradient": the duality gap at which to stop; None is the authors' value for graphs,
        0.25, for MERIT. "nmf" and "poisson": that of `nonneg.factorize`, with its default.
    max_iter : int or None
        Maximum number of iterations; None is 120 for MERIT and 200 for NMF.
    method_params : dict or None
        Further parameters of the method, such as ``{"lam": 0.0}`` for "merit" (None: 5e-7, the authors' value
        for graphs).
    random_state : int, RandomState, Generator or None
        The seed of "fast-gradient", which draws random numbers.
    verbose : int, default 0
        1 shows progress of "merit" and "fast-gradient".
    {n_jobs, callback, checkpoint}

    Attributes
    ----------
    memberships_ : array of shape (n_nodes, n_communities)
        Rows sum to one. Isolated nodes have NaN.
    sending_memberships_, receiving_memberships_ : array of shape (n_nodes, n_communities) or None
        Directed graphs: memberships by the edges that a node sends, and by those that it receives; NaN where
        there are none. `memberships_` is their mean, weighted by what the node sends and receives.
    n_communities_ : int
        The number of communities.
    number_ : dict or None
        With ``n_communities="auto"``: the `n_communities`, the `reason`, the `estimates` of both methods, the
        `curves` over the `candidates`, and by how much hidden edges are `ahead`, with its standard error.
    method_ : str
        The method that found them.
    scores_ : dict of str to float
        With ``method="auto"``: the log-likelihood per hidden edge of every candidate, relative to a single
        community.
    pure_nodes_ : array of int of shape (n_communities,)
        The pure node of each community; of "nmf" and "poisson" the one with the largest membership.
    node_names_ : list of str
        Names of the nodes; their numbers if the graph gives none.
    labels_ : array of int of shape (n_nodes,)
        The community with the largest membership; -1 for nodes without one.
    connectivity_ : array of shape (n_communities, n_communities)
        The expected weight of an edge between pure nodes of two communities.
    eigenvalues_ : array of shape (n_communities,)
        The leading eigenvalues: of the adjacency matrix, or, for "regularized-spa", of the normalized one;
        for "nmf" and "poisson" of the one at which the fit started, in units of the mean weight.
    eigenvectors_ : array of shape (n_nodes, n_communities)
        Zero at isolated nodes. Directed graphs: left singular vectors.
    isolated_nodes_, unreached_nodes_ : array of int
        Nodes without edges, and nodes that the eigenvectors do not reach.
    graph_ : Graph
        The graph that was used.
    n_iter_ : int
        Number of iterations, or of nodes picked.
    certificate_ : Certificate
        What is known about the result.
    result_ : SelectionResult
        The search for pure nodes: scores, history.

    See Also
    --------
    nonneg.select_anchors : The methods behind it.
    nonneg.metrics.averaged_rank_correlation : How well memberships agree with known ones.

    References
    ----------
    .. [1] Nguyen, Fu & Wu (2022), IEEE Trans. Signal Processing 70 (MERIT), Section V-C.
    .. [2] Panov, Slavnov & Ushakov (2017), Complex Networks (SPOC).
    .. [3] Kuang, Ding & Park (2012), SIAM Data Mining (SymNMF).
    .. [4] Ball, Karrer & Newman (2011), Physical Review E 84, 036103 (Poisson blockmodel).
    .. [5] Qin & Rohe (2013), NIPS (regularized normalization).
    .. [6] Li, Levina & Zhu (2020), Biometrika 107 (hidden edges).
    .. [7] Le & Levina (2022), Electronic Journal of Statistics 16 (non-backtracking matrix).

    Examples
    --------
    >>> from nonneg.applications import MixedMembership
    >>> from nonneg.datasets import mixed_membership_graph
    >>> planted = mixed_membership_graph(300, 3, mean_degree=40, rng=0)
    >>> model = MixedMembership(3).fit(planted.adjacency)
    >>> model.memberships_.shape
    (300, 3)
    """

    n_communities: int | str
    _: KW_ONLY
    method: str = "auto"
    energy: float = 0.99
    unreached: str = "auto"
    weight: str | None = "weight"
    kind: str = "auto"
    self_loops: str = "drop"
    tol: float | None = None
    max_iter: int | None = None
    method_params: dict[str, Any] | None = None
    random_state: Seed = None
    verbose: int = 0
    n_jobs: int | None = None
    callback: Callable[[Progress], bool | None] | None = None
    checkpoint: str | PathLike[str] | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_VALUES,
        "n_communities": [*COUNT, StrOptions({"auto"})],
        "method": [str],
        "energy": [Interval(Real, 0, 1, closed="right")],
        "unreached": [StrOptions(set(UNREACHED))],
        "weight": [str, None],
        "kind": [StrOptions(set(KINDS))],
        "self_loops": [StrOptions(set(SELF_LOOPS))],
        "tol": [NOT_NEGATIVE, None],
        "max_iter": [*COUNT, None],
    }

    _stored: ClassVar[Fields] = {
        "n_iter_": int,
        "scores_": dict,
        "certificate_": Certificate,
        "graph_": STORED_GRAPH,
        "method_": str,
        "number_": dict | None,
        "memberships_": StoredArray("n_nodes", "n_communities"),
        "sending_memberships_": StoredArray("n_nodes", "n_communities", optional=True),
        "receiving_memberships_": StoredArray("n_nodes", "n_communities", optional=True),
        "connectivity_": StoredArray("n_communities", "n_communities"),
        "eigenvalues_": StoredArray("n_communities"),
        "eigenvectors_": StoredArray("n_nodes", "n_communities"),
        "pure_nodes_": StoredArray("n_communities", kind="i", below="n_nodes"),
        "isolated_nodes_": StoredArray("number of isolated nodes", kind="i", below="n_nodes"),
        "unreached_nodes_": StoredArray("number of unreached nodes", kind="i", below="n_nodes"),
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None) -> MixedMembership:
        """Find the communities of a graph.

        Parameters
        ----------
        X : sparse matrix, array or data frame of shape (n_nodes, n_nodes), or graph of networkx or igraph
            The graph; never modified. A table of another shape is a bipartite graph between its rows and its
            columns. A sparse tensor is copied to host memory.
        y : Any
            Ignored.
        names : sequence of str, optional
            Names of the nodes; those of a networkx graph or of a data frame's columns by default.

        Returns
        -------
        MixedMembership
            The fitted estimator.
        """
        name = METHODS.name_of(self.method)
        params = method_parameters(METHODS, name, self)
        if self.verbose and "verbose" in METHODS[name].shared:
            params["verbose"] = self.verbose
        graph = as_graph(X, weight=self.weight, self_loops=self.self_loops, names=names, kind=self.kind)
        isolated = graph.isolated
        if isolated.any():
            warn_user(
                f"{int(isolated.sum())} of {graph.n_nodes} nodes have no edges; their memberships are NaN.",
                NonnegWarning,
            )
        with threads(self.n_jobs):
            self.number_ = None
            if self.n_communities == "auto":
                parts = joined(graph)
                self.number_ = count_communities(parts.adjacency, n_first=parts.n_first)
                announce(f"MixedMembership: {self.number_['reason']}", 0)  # the certificate shows it
            k = int(self.n_communities) if self.number_ is None else self.number_["n_communities"]
            parts = joined(graph, k)
            problem = Problem(
                parts.adjacency, k, parts.n_first, energy=float(self.energy),
                params=params, rng=self.random_state, n_jobs=self.n_jobs,
            )  # fmt: skip
            with phase(f"MixedMembership: looking for {k} communities", self.verbose):
                search = METHODS[name].run(problem)
            announce(f"MixedMembership: {k} communities by method={search.method!r}", self.verbose)
        # float32 in, float32 out; the eigenvectors are found in float64.
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        filled = fill_unreached(search.memberships, self.unreached, METHODS[search.method].unreached)
        self._keep(graph, parts, np.asarray(filled, dtype=dtype), search.pairs.vectors)
        self.method_ = search.method
        self.pure_nodes_ = parts.nodes[search.selection.anchors]
        self.isolated_nodes_ = np.flatnonzero(isolated)
        reached = np.unique(parts.nodes[search.memberships.reached])
        self.unreached_nodes_ = np.setdiff1d(np.flatnonzero(~isolated), reached)
        self.eigenvalues_, self.connectivity_ = search.pairs.values, search.connectivity
        self.certificate_ = community_certificate(
            search, graph.n_nodes, len(self.unreached_nodes_), len(self.isolated_nodes_), self.number_
        )
        self.result_ = search.selection
        self.n_iter_ = search.selection.n_iter
        self.scores_ = dict(search.scores)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None) -> FloatArray:
        """Find the communities and return the memberships.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_nodes, n_nodes), or graph of networkx or igraph
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
        return self.fit(X, names=names).memberships_

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
        pure = np.isin(np.arange(n), self.pure_nodes_)
        reached = ~np.isin(np.arange(n), [*self.unreached_nodes_, *self.isolated_nodes_])
        table: dict[str, Any] = {"node": np.asarray(self.node_names_), "degree": self.graph_.degrees}
        table |= {f"community_{at}": column for at, column in enumerate(self.memberships_.T)}
        for side in ("sending", "receiving") if self.graph_.directed else ():
            for at, column in enumerate(getattr(self, f"{side}_memberships_").T):
                table[f"{side}_{at}"] = column
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
        return [
            [(self.node_names_[at], float(column[at])) for at in order[:n] if column[at] > 0]
            for column, order in self._strongest_first()
        ]

    def compare(self, labels: Any) -> dict[str, Any]:
        """Compare the main communities of the nodes with a known label, such as a party.

        Parameters
        ----------
        labels : sequence or mapping of str
            One label per node, or labels by name of the node; None, NaN and "" mean unknown.

        Returns
        -------
        dict
            `nmi` (normalized mutual information), `ari` (adjusted Rand index) and `accuracy` (under the best
            one-to-one matching of communities and labels); `labels`, the most frequent first, and `counts`,
            one row per label and one column per community; `n_left_out`, the nodes without a label or without
            a community.
        """
        check_is_fitted(self)
        if isinstance(labels, Mapping):
            labels = [labels.get(name) for name in self.node_names_]
        # NaN differs from itself.
        words = np.asarray(["" if label is None or label != label else str(label) for label in labels])
        main = self.labels_
        if len(words) != len(main):
            raise ShapeError(
                f"labels has {len(words)} entries for {len(main)} nodes: give one label per node."
            )
        known = np.flatnonzero((words != "") & (main >= 0))
        if not len(known):
            raise InvalidDataError(
                "No node has both a label and a community. Check that the labels belong to these nodes."
            )
        true, clusters = words[known], main[known]
        classes, codes, sizes = np.unique(true, return_inverse=True, return_counts=True)
        order = np.argsort(-sizes, kind="stable")
        table = np.zeros((len(classes), self.n_communities_), dtype=np.int64)
        np.add.at(table, (codes, clusters), 1)
        return {
            "nmi": normalized_mutual_information(true, clusters),
            "ari": float(adjusted_rand_score(true, clusters)),
            "accuracy": clustering_accuracy(true, clusters),
            "labels": classes[order].tolist(),
            "counts": table[order].tolist(),
            "n_left_out": len(main) - len(known),
        }

    def communities(self) -> list[list[str]]:
        """Return the nodes of each community, as lists of names.

        A node is in the community with its largest membership, and in every other one in which its membership
        times the effective number of its communities rounds to one rather than zero. That number is one over
        the sum of the squared memberships (Hill, 1973): m for m equal ones.

        Returns
        -------
        list of list of str
            One list per community, in the order of `memberships_`; the strongest members first. Isolated
            nodes are in none.
        """
        check_is_fitted(self)
        weights = np.nan_to_num(self.memberships_, nan=0.0)
        inside = (weights >= 0.5 * np.sum(weights**2, axis=1, keepdims=True)) & (weights > 0)
        known = np.flatnonzero(self.labels_ >= 0)
        inside[known, self.labels_[known]] = True
        return [
            [self.node_names_[node] for node in order if inside[node, at]]
            for at, (_, order) in enumerate(self._strongest_first())
        ]

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
        for key, column in self.node_table().items():
            if key != "node":
                # NaN differs from itself.
                known = {
                    name: value for name, value in zip(names, column.tolist(), strict=True) if value == value
                }
                networkx.set_node_attributes(graph, known, "community" if key == "label" else key)
        return graph

    def _strongest_first(self) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield the memberships in each community, and the nodes in their order."""
        for column in np.nan_to_num(self.memberships_, nan=-1.0).T:
            yield column, np.lexsort((-self.graph_.degrees, -column))

    def _keep(self, graph: Graph, parts: Joined, memberships: FloatArray, vectors: FloatArray) -> None:
        n, k = graph.n_nodes, memberships.shape[1]
        self.sending_memberships_ = self.receiving_memberships_ = None
        if graph.directed:
            self.sending_memberships_, self.receiving_memberships_, self.memberships_ = split(
                graph, parts, memberships
            )
        else:
            self.memberships_ = np.full((n, k), np.nan, dtype=memberships.dtype)
            self.memberships_[parts.nodes] = memberships
        first = slice(parts.n_first if graph.directed else None)
        self.eigenvectors_ = np.zeros((n, k))
        self.eigenvectors_[parts.nodes[first]] = vectors[first]
        self.graph_ = graph
        self._complete_loaded()

    def _complete_loaded(self) -> None:
        n, names = self.graph_.n_nodes, self.graph_.names
        self.node_names_ = list(map(str, range(n))) if names is None else list(names)
        largest = np.nan_to_num(self.memberships_, nan=-1.0)
        self.labels_ = np.where(largest.max(axis=1) > 0, largest.argmax(axis=1), -1)
        self.n_communities_ = largest.shape[1]
