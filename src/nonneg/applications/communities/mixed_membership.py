"""MixedMembership: overlapping communities of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg._warnings import warn_user
from nonneg.applications.communities.certificate import community_certificate
from nonneg.applications.communities.eigenvectors import SPECTRA
from nonneg.applications.communities.graph import (
    KINDS,
    SELF_LOOPS,
    STORED_GRAPH,
    SYMMETRIZE,
    Graph,
    as_graph,
)
from nonneg.applications.communities.methods import (
    CHOICES,
    METHODS,
    Problem,
    SearchOptions,
    checked_params,
)
from nonneg.applications.communities.number import CommunityCount, count_communities
from nonneg.applications.communities.recovery import RECOVERIES, UNREACHED, fill_unreached
from nonneg.applications.communities.results import CommunityResults
from nonneg.applications.communities.two_sided import Joined, joined, split
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.saving import SavableEstimator
from nonneg.estimators.stored_fields import Fields, Record, StoredArray, Value
from nonneg.exceptions import NonnegWarning
from nonneg.iteration import Progress

COUNT = [Interval(Integral, 1, None, closed="left")]


class MixedMembership(CommunityResults, SavableEstimator):
    r"""Overlapping communities: how much every node of a graph belongs to each of a few communities.

    The default is SymNMF, which approximates the normalized adjacency matrix by H H' with a nonnegative H. On
    disassortative graphs, for which H H' is the wrong model, it is a search for *pure nodes*, which belong to
    a single community. Under the mixed membership stochastic blockmodel, the rows of the leading eigenvectors
    lie in a simplex whose vertices are pure nodes, and the memberships of all nodes are their coordinates
    with respect to the vertices.

    Parameters
    ----------
    n_communities : int or "auto"
        The number of communities. "auto" is the median of three estimates: the largest gap between
        eigenvalues, the informative eigenvalues of the non-backtracking matrix, and the number that predicts
        hidden edges best.
    method : str, default "auto"
        "auto" (the default) is "symnmf", or "smoothed-spa" if most of the leading eigenvalues of the
        normalized adjacency matrix are below zero.
        "smoothed-spa", "pp-spa" and "css-nmf" average nearly pure nodes; "spa", "snpa", "fast-anchor",
        "preconditioned-spa" and "vca" are greedy; "merit", "merit-0" (the same without row sparsity) and
        "fast-gradient" convex; "geonmf" and "spoc" are complete methods.
    recovery : {"least-squares", "simplex"}, default "least-squares"
        How memberships follow from pure nodes: by a linear system, with negative values set to zero and rows
        divided by their sum, as the authors' script does, or by fully constrained least squares. "symnmf",
        "geonmf" and "spoc" have their own.
    energy : float, default 0.99
        Pure nodes are searched for among the nodes with the largest rows that account for this fraction of
        the squared norm. Not for "symnmf", "geonmf" and "spoc".
    n_candidates : int or None
        Convex methods compare all pairs of nodes: the number of nodes they consider, half of them extreme
        ones, half an even sample. None considers 10,000 if more than 20,000 account for the energy, and all
        otherwise.
    choice : {"row-maxima", "spread"}, default "row-maxima"
        Convex methods: how pure nodes are chosen from the coefficients: those with the largest row maxima, as
        the authors do, or by successive projections on the rows times their row maxima, which avoid near
        duplicates.
    spectrum : {"auto", "magnitude", "algebraic"} or None
        Which eigenvalues count as leading: those of largest magnitude, the largest ones, or ("auto") the
        largest ones and negative ones that exceed noise, which belong to communities whose nodes connect to
        others rather than among themselves. None: as the authors of "merit", "spoc" and "geonmf" do,
        otherwise "auto". "symnmf" uses the largest ones of the normalized matrix. If it is given, the sides
        of a bipartite graph are not looked for.
    unreached : {"auto", "mean", "uniform", "zero", "nan"}, default "auto"
        The membership of nodes that the leading eigenvectors do not reach, as in small components: the mean
        of the others, uniform, zeros or NaN. "auto" does as the authors of the method do: the mean; for
        "spoc" and "geonmf" the result as it is.
    weight : str or None, default "weight"
        networkx graphs: the attribute that contains the weight of an edge; None counts every edge as 1.
    kind : {"auto", "undirected", "directed", "bipartite"}, default "auto"
        What kind of graph it is. Nodes of a directed graph have memberships by the edges that they send and
        by those that they receive. The communities of a bipartite graph span both sides. "auto" detects it: a
        matrix that is not symmetric is directed, a table that is not square is bipartite.
    symmetrize : {"sum", "mean", "max"} or None
        Makes a directed graph undirected: how the two weights of a pair are combined.
    self_loops : {"drop", "keep"}, default "drop"
        Whether edges from a node to itself are dropped (a warning counts them) or stay on the diagonal.
    tol : float or None
        Convex methods: the duality gap at which to stop. None is the authors' value for graphs, 0.25, for
        MERIT, and the method's default otherwise. "symnmf": stops when the error decreases by less than this
        fraction in ten iterations; None is 1e-5.
    max_iter : int or None
        Convex methods and "symnmf": maximum number of iterations; None is 120 for MERIT and 300 for SymNMF.
    method_params : dict or None
        Further parameters of the method, such as ``{"lam": 1e-6}`` for "merit" (None: 5e-7, the authors'
        value for graphs) or ``{"n_init": 1}`` for "geonmf".
    random_state : int, RandomState, Generator or None
        The seed of methods that draw random numbers ("geonmf", "vca", "fast-gradient") and of the edges that
        ``n_communities="auto"`` hides.
    verbose : int, default 0
        1 shows progress.
    n_jobs : int or None
        Number of threads; None uses all cores.
    callback : callable, optional
        Convex methods and "symnmf": called with a `Progress` after each iteration; True stops.
    checkpoint : str or path, optional
        "merit": a folder from which an interrupted run resumes.

    Attributes
    ----------
    memberships_ : array of shape (n_nodes, n_communities)
        Rows sum to one. Isolated nodes have NaN.
    sending_memberships_, receiving_memberships_ : array of shape (n_nodes, n_communities) or None
        Directed graphs: memberships by the edges that a node sends, and by those that it receives; NaN where
        there are none. `memberships_` is their mean, weighted by what the node sends and receives.
    n_communities_ : int
        The number of communities.
    number_ : CommunityCount or None
        With ``n_communities="auto"``: the estimates, the reason and the curves.
    method_ : str
        The method that found them; ``facts_["n_below_zero"]`` is the number of eigenvalues that chose it.
    pure_nodes_ : array of int of shape (n_communities,)
        The pure node of each community; of "symnmf" the one with the largest membership.
    node_names_ : list of str
        Names of the nodes; their numbers if the graph gives none.
    labels_ : array of int of shape (n_nodes,)
        The community with the largest membership; -1 for nodes without one.
    connectivity_ : array of shape (n_communities, n_communities)
        The expected weight of an edge between pure nodes of two communities.
    eigenvalues_ : array of shape (n_communities,)
        The leading eigenvalues: of the adjacency matrix, or, for "symnmf", of the normalized one.
    eigenvectors_ : array of shape (n_nodes, n_communities)
        Zero at isolated nodes. Directed graphs: left singular vectors.
    kept_nodes_ : array of int
        The nodes that account for the energy.
    isolated_nodes_, unreached_nodes_ : array of int
        Nodes without edges, and nodes that the eigenvectors do not reach.
    graph_ : Graph
        The graph that was used.
    n_iter_ : int
        Number of iterations, or of nodes picked.
    certificate_ : Certificate
        What is known about the result.
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
    .. [4] Kuang, Ding & Park (2012), SIAM Data Mining (SymNMF).
    .. [5] Le & Levina (2022), Electronic Journal of Statistics 16 (Bethe Hessian).
    .. [6] Li, Levina & Zhu (2020), Biometrika 107 (edge cross-validation).

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
        "n_communities": [*COUNT, StrOptions({"auto"})],
        "method": [str],
        "recovery": [StrOptions(set(RECOVERIES))],
        "energy": [Interval(Real, 0, 1, closed="right")],
        "n_candidates": [*COUNT, None],
        "choice": [StrOptions(set(CHOICES))],
        "spectrum": [StrOptions(set(SPECTRA)), None],
        "unreached": [StrOptions(set(UNREACHED))],
        "weight": [str, None],
        "kind": [StrOptions(set(KINDS))],
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
        "method_": Value(str, optional=True),
        "number_": Record(CommunityCount.from_dict, optional=True),
        "memberships_": StoredArray("n_nodes", "n_communities"),
        "sending_memberships_": StoredArray("n_nodes", "n_communities", optional=True),
        "receiving_memberships_": StoredArray("n_nodes", "n_communities", optional=True),
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
        n_communities: int | str,
        *,
        method: str = "auto",
        recovery: str = "least-squares",
        energy: float = 0.99,
        n_candidates: int | None = None,
        choice: str = "row-maxima",
        spectrum: str | None = None,
        unreached: str = "auto",
        weight: str | None = "weight",
        kind: str = "auto",
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
        self.kind = kind
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
        options = self._options(name)
        graph = as_graph(
            X,
            weight=self.weight,
            symmetrize=self.symmetrize,
            self_loops=self.self_loops,
            names=names,
            kind=self.kind,
        )
        if self.spectrum is not None and self.kind == "auto":
            graph = replace(graph, sides=None)
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
                self.number_ = count_communities(
                    parts.adjacency, n_first=parts.n_first, rng=self.random_state
                )
            k = int(self.n_communities) if self.number_ is None else self.number_.n_communities
            parts = joined(graph, k)
            problem = Problem(parts.adjacency, k, parts.n_first, self.spectrum, self.verbose)
            search = METHODS[name].run(problem, options)
        # float32 in, float32 out; the eigenvectors are found in float64.
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        filled = fill_unreached(search.memberships, self.unreached, search.unreached(self.recovery))
        self._keep(graph, parts, np.asarray(filled, dtype=dtype), search.pairs.vectors)
        self.method_ = search.method
        self.pure_nodes_ = parts.nodes[search.selection.anchors]
        self.kept_nodes_ = np.unique(parts.nodes if search.kept is None else parts.nodes[search.kept])
        self.isolated_nodes_ = np.flatnonzero(isolated)
        reached = np.unique(parts.nodes[search.memberships.reached])
        self.unreached_nodes_ = np.setdiff1d(np.flatnonzero(~isolated), reached)
        with np.errstate(over="ignore"):
            unit = parts.unit if METHODS[search.method].geometric else 1.0
            self.eigenvalues_ = search.pairs.values * unit
            self.connectivity_ = search.connectivity * parts.unit
        self.certificate_ = community_certificate(
            search, graph.n_nodes, len(self.unreached_nodes_), len(self.isolated_nodes_)
        )
        self.result_ = search.selection
        self.n_iter_ = search.selection.n_iter
        self.facts_ = dict(search.facts) | {"n_seen": search.n_seen}
        return self

    def _keep(self, graph: Graph, parts: Joined, memberships: FloatArray, vectors: FloatArray) -> None:
        n, k = graph.n_nodes, memberships.shape[1]
        self.sending_memberships_ = self.receiving_memberships_ = None
        if graph.directed:
            sides = split(graph, parts, memberships)
            self.sending_memberships_, self.receiving_memberships_ = sides.sending, sides.receiving
            self.memberships_ = sides.both
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
        self.method_ = getattr(self, "method_", self.method)  # files of earlier versions do not have it

    def _options(self, name: str) -> SearchOptions:
        loop = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "callback": self.callback,
            "checkpoint": self.checkpoint,
        }
        params = checked_params(name, self.method_params, self.choice, loop)
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
