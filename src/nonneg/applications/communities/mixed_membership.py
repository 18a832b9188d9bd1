"""MixedMembership: overlapping communities of a graph, each found by a node that belongs to it alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.applications.communities.certificate import community_certificate
from nonneg.applications.communities.eigenvectors import SPECTRA, come_in_pairs, leading_eigenvectors
from nonneg.applications.communities.graph import SELF_LOOPS, STORED_GRAPH, SYMMETRIZE, Graph, as_graph
from nonneg.applications.communities.methods import CHOICES, METHODS, SearchOptions, vertices
from nonneg.applications.communities.recovery import RECOVERIES, UNREACHED, fill_unreached
from nonneg.applications.communities.spoc import connectivity
from nonneg.applications.method_entries import iteration_params
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.saving import SavableEstimator
from nonneg.estimators.stored_fields import Fields, Record, StoredArray, Value
from nonneg.exceptions import NonnegWarning
from nonneg.iteration import Progress
from nonneg.separable.registry import not_accepted

COUNT = [Interval(Integral, 1, None, closed="left")]


class MixedMembership(SavableEstimator):
    r"""Overlapping communities: how much every node of a graph belongs to each of a few communities.

    Under the mixed membership stochastic blockmodel the rows of the leading eigenvectors of the adjacency
    matrix lie in a simplex whose corners are *pure nodes*, which belong to one community alone. The method
    finds the corners; the memberships of all nodes are their coordinates between them.

    Parameters
    ----------
    n_communities : int
        The number of communities.
    method : str
        How pure nodes are found. "smoothed-spa" (the default), "pp-spa" and "css-nmf" average nearly pure
        nodes; "spa", "snpa", "fast-anchor", "preconditioned-spa" and "vca" are greedy; "merit", "merit-0"
        (the same without row sparsity) and "fast-gradient" convex; "geonmf" and "spoc" are complete methods.
    recovery : {"least-squares", "simplex"}
        How memberships follow from pure nodes: by a linear system, with negative values set to zero and rows
        divided by their sum, as the authors' script does, or by fully constrained least squares. "geonmf"
        and "spoc" have their own.
    energy : float
        Pure nodes are searched for among the nodes with the largest rows that hold this fraction of the
        squared norm. Not for "geonmf" and "spoc".
    n_candidates : int or None
        Convex methods compare all pairs of nodes: the number of nodes they consider, half of them extreme
        ones, half an even sample. None considers 10 000 if more than 20 000 hold the energy, and all
        otherwise.
    choice : {"row-maxima", "spread"}
        Convex methods: how pure nodes are chosen from the coefficients: those with the largest row maxima, as
        the authors do, or by successive projections on the rows times their row maxima, which avoid near
        duplicates.
    spectrum : {"auto", "magnitude", "algebraic"} or None
        Which eigenvalues lead: those of largest magnitude, the largest ones, or ("auto") the largest ones and
        those below zero that are more than noise: of communities whose nodes are connected to others rather
        than among themselves. None: as the authors of "merit", "spoc" and "geonmf" do, otherwise "auto".
    unreached : {"auto", "mean", "uniform", "zero", "nan"}
        The membership of nodes that the leading eigenvectors do not reach, as in small components: the mean
        of the others, uniform, zeros or NaN. "auto" does as the method's authors do: the mean; for "spoc" and
        "geonmf" whatever comes out.
    weight : str or None
        networkx graphs: the attribute that holds the weight of an edge; None counts every edge as 1.
    symmetrize : {"sum", "mean", "max"} or None
        How the two weights of a pair in a directed graph are combined; None refuses directed graphs.
    self_loops : {"drop", "keep"}
        Whether edges from a node to itself are dropped (a warning counts them) or stay on the diagonal.
    tol : float or None
        Convex methods: the duality gap at which to stop. None takes the authors' value for graphs, 0.25, for
        MERIT, and the method's default otherwise.
    max_iter : int or None
        Convex methods: maximum number of iterations; None takes 120 for MERIT.
    method_params : dict or None
        Further parameters of the method, such as ``{"lam": 1e-6}`` for "merit" (None: 5e-7, the authors'
        value for graphs) or ``{"n_init": 1}`` for "geonmf".
    random_state : int, RandomState, Generator or None
        The seed of methods that draw random numbers ("geonmf", "vca", "fast-gradient").
    verbose : int
        1 shows progress.
    n_jobs : int or None
        Number of threads; None uses all cores.
    callback : callable, optional
        Convex methods: called with a `Progress` after each iteration; True stops.
    checkpoint : str or path, optional
        "merit": a folder from which an interrupted run resumes.

    Attributes
    ----------
    memberships_ : array of shape (n_nodes, n_communities)
        Rows sum to one. Isolated nodes have NaN.
    pure_nodes_ : array of int of shape (n_communities,)
        The pure node of each community.
    node_names_ : list of str
        Names of the nodes; their numbers if the graph gives none.
    labels_ : array of int of shape (n_nodes,)
        The community with the largest membership; -1 for nodes without one.
    connectivity_ : array of shape (n_communities, n_communities)
        The expected weight of an edge between pure nodes of two communities.
    eigenvalues_ : array of shape (n_communities,)
        The leading eigenvalues.
    eigenvectors_ : array of shape (n_nodes, n_communities)
        Zero at isolated nodes.
    kept_nodes_ : array of int
        The nodes that hold the energy.
    isolated_nodes_, unreached_nodes_ : array of int
        Nodes without an edge, and those that the eigenvectors do not reach.
    graph_ : Graph
        The undirected graph that was used.
    n_iter_ : int
        Number of iterations, or of nodes picked.
    certificate_ : Certificate
        What is known about the answer.
    result_ : SelectionResult
        The search for pure nodes: row maxima, scores, history.

    See Also
    --------
    nonneg.select_anchors : The methods behind it.
    nonneg.metrics.averaged_rank_correlation : How well memberships agree with known ones.

    References
    ----------
    .. [1] Nguyen, Fu & Wu (2022), IEEE Trans. Signal Processing 70 (MERIT), Section V-C.
    .. [2] Mao, Sarkar & Chakrabarti (2017), ICML (GeoNMF).
    .. [3] Panov, Slavnov & Ushakov (2017), Complex Networks (SPOC).

    Examples
    --------
    >>> from nonneg.applications import MixedMembership
    >>> from nonneg.datasets import mixed_membership_graph
    >>> planted = mixed_membership_graph(300, 3, mean_degree=40, rng=0)
    >>> model = MixedMembership(3).fit(planted.adjacency)
    >>> model.memberships_.shape
    (300, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_communities": COUNT,
        "method": [str],
        "recovery": [StrOptions(set(RECOVERIES))],
        "energy": [Interval(Real, 0, 1, closed="right")],
        "n_candidates": [*COUNT, None],
        "choice": [StrOptions(set(CHOICES))],
        "spectrum": [StrOptions(set(SPECTRA)), None],
        "unreached": [StrOptions(set(UNREACHED))],
        "weight": [str, None],
        "symmetrize": [StrOptions(set(SYMMETRIZE)), None],
        "self_loops": [StrOptions(set(SELF_LOOPS))],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "max_iter": [*COUNT, None],
        "method_params": [dict, None],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "verbose": ["verbose"],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), *COUNT, None],
        "callback": [callable, None],
        "checkpoint": [str, PathLike, None],
    }

    _stored: ClassVar[Fields] = {
        "n_iter_": Value(int),
        "facts_": Value(dict),
        "certificate_": Record(Certificate.from_dict),
        "graph_": STORED_GRAPH,
        "memberships_": StoredArray("n_nodes", "n_communities"),
        "connectivity_": StoredArray("n_communities", "n_communities"),
        "eigenvalues_": StoredArray("n_communities"),
        "eigenvectors_": StoredArray("n_nodes", "n_communities"),
        "pure_nodes_": StoredArray("n_communities", kind="i", below="n_nodes"),
        "kept_nodes_": StoredArray("number of nodes kept", kind="i", below="n_nodes"),
        "isolated_nodes_": StoredArray("number of isolated nodes", kind="i", below="n_nodes"),
        "unreached_nodes_": StoredArray("number of unreached nodes", kind="i", below="n_nodes"),
    }

    def __init__(
        self,
        n_communities: int,
        *,
        method: str = "smoothed-spa",
        recovery: str = "least-squares",
        energy: float = 0.99,
        n_candidates: int | None = None,
        choice: str = "row-maxima",
        spectrum: str | None = None,
        unreached: str = "auto",
        weight: str | None = "weight",
        symmetrize: str | None = None,
        self_loops: str = "drop",
        tol: float | None = None,
        max_iter: int | None = None,
        method_params: dict[str, Any] | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_communities = n_communities
        self.method = method
        self.recovery = recovery
        self.energy = energy
        self.n_candidates = n_candidates
        self.choice = choice
        self.spectrum = spectrum
        self.unreached = unreached
        self.weight = weight
        self.symmetrize = symmetrize
        self.self_loops = self_loops
        self.tol = tol
        self.max_iter = max_iter
        self.method_params = method_params
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None) -> MixedMembership:
        """Find the communities of a graph.

        Parameters
        ----------
        X : sparse matrix, array or data frame of shape (n_nodes, n_nodes), or networkx graph
            The graph; never modified.
        y : Any
            Ignored.
        names : sequence of str, optional
            Names of the nodes; those of a networkx graph or of a data frame's columns by default.

        Returns
        -------
        MixedMembership
            Itself.
        """
        name = METHODS.name_of(self.method)
        method = METHODS[name]
        graph = as_graph(
            X, weight=self.weight, symmetrize=self.symmetrize, self_loops=self.self_loops, names=names
        )
        isolated = graph.isolated
        connected = np.flatnonzero(~isolated)
        if isolated.any():
            warnings.warn(
                f"{int(isolated.sum())} of {graph.n_nodes} nodes have no edge; their memberships are NaN.",
                NonnegWarning,
                stacklevel=2,
            )
        adjacency = graph.adjacency
        if len(connected) < graph.n_nodes:
            adjacency = adjacency[connected][:, connected]
        with threads(self.n_jobs):
            pairs = leading_eigenvectors(
                adjacency,
                int(self.n_communities),
                spectrum=self.spectrum or method.spectrum,
                verbose=self.verbose,
            )
            search = method.run(pairs, graph.degrees[connected], self._options(name))
        if self.spectrum is None and come_in_pairs(pairs.values):
            warnings.warn(
                "The leading eigenvalues come in pairs of opposite sign, as those of a bipartite graph do: "
                "the communities may be its two sides. spectrum='algebraic' (--spectrum) finds groups that "
                "span both; spectrum='magnitude' says that the sides are meant.",
                NonnegWarning,
                stacklevel=2,
            )
        rule = self.unreached
        if rule == "auto":
            keep = method.unreached is None or self.recovery == "simplex"
            rule = "" if keep else str(method.unreached)
        memberships = fill_unreached(search.memberships, rule) if rule else search.memberships.values
        # float32 in, float32 out; the eigenvectors are found in float64.
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        self._keep(graph, connected, memberships.astype(dtype, copy=False), pairs.vectors)
        self.pure_nodes_ = connected[search.selection.anchors]
        self.kept_nodes_ = connected if search.kept is None else connected[search.kept]
        self.isolated_nodes_ = np.flatnonzero(isolated)
        self.unreached_nodes_ = connected[~search.memberships.reached]
        self.eigenvalues_ = pairs.values
        self.connectivity_ = connectivity(pairs.values, vertices(pairs.vectors, search.selection))
        self.certificate_ = community_certificate(pairs, search, graph.n_nodes, int(isolated.sum()))
        self.result_ = search.selection
        self.n_iter_ = search.selection.n_iter
        self.facts_ = dict(search.facts) | {"n_seen": search.n_seen}
        return self

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
        return self.fit(X, names=names).memberships_

    def _keep(self, graph: Graph, connected: Any, memberships: FloatArray, vectors: FloatArray) -> None:
        n, k = graph.n_nodes, memberships.shape[1]
        self.graph_ = graph
        self.node_names_ = list(map(str, range(n))) if graph.names is None else list(graph.names)
        self.memberships_, self.eigenvectors_ = memberships, vectors
        if len(connected) < n:
            self.memberships_ = np.full((n, k), np.nan, dtype=memberships.dtype)
            self.memberships_[connected] = memberships
            self.eigenvectors_ = np.zeros((n, k))
            self.eigenvectors_[connected] = vectors
        largest = np.nan_to_num(self.memberships_, nan=-1.0)
        self.labels_ = np.where(largest.max(axis=1) > 0, largest.argmax(axis=1), -1)

    def _complete_loaded(self) -> None:
        self._keep(self.graph_, np.arange(self.graph_.n_nodes), self.memberships_, self.eigenvectors_)

    def _options(self, name: str) -> SearchOptions:
        params = dict(self.method_params or {})
        METHODS.check_options(name, params)
        params |= iteration_params(
            METHODS,
            name,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            checkpoint=self.checkpoint,
        )
        if self.choice != CHOICES[0] and not METHODS[name].row_maxima:
            able = [key for key, entry in METHODS.items() if entry.row_maxima]
            raise not_accepted(name, f"choice={self.choice!r}", able)
        if METHODS[name].convex and self.verbose:
            params["verbose"] = self.verbose
        return SearchOptions(
            energy=float(self.energy),
            n_candidates=self.n_candidates,
            recovery=self.recovery,
            choice=self.choice,
            params=params,
            rng=self.random_state,
            n_jobs=self.n_jobs,
        )

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
