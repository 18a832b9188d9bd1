"""Methods that find pure nodes and memberships, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nonneg._random import Seed
from nonneg._registry import Registry
from nonneg._typing import BoolArray, FloatArray, IntArray, SparseMatrix
from nonneg.applications.communities.eigenvectors import (
    Eigenpairs,
    leading_eigenvectors,
    normalized_adjacency,
)
from nonneg.applications.method_entries import ApplicationMethod, anchor_parameters
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonnegError
from nonneg.separable.preprocessing import largest_rows
from nonneg.separable.registry import METHODS as ANCHOR_METHODS
from nonneg.separable.registry import split_params
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from nonneg.solvers.factorize import factorize

UNREACHED = ("auto", "mean", "uniform", "zero", "nan")
# MERIT on graphs as its authors run it, in the unit of the paper's objective (18), which has half the
# squared error: their weight 1e-6 and gap 0.5 belong to the whole.
MERIT_LAM, MERIT_GAP, MERIT_ITERATIONS = 5e-7, 0.25, 120
# The authors' limit: a smaller coordinate is rounding.
ROUNDING = 1e-12
EPS = float(np.finfo(np.float64).eps)
# The default proposes these; where hidden edges are equally likely, the first.
PROPOSED = ("nmf", "regularized-spa", "poisson")
# NMF starts from pure nodes in eigenvectors of the normalized matrix, those of the largest eigenvalues. The
# likelihood of the Poisson model has many maxima: it starts from "regularized-spa" and "spa", too.
STARTS = ((True, "algebraic"), (True, "magnitude"), (False, "magnitude"))
# Standard errors by which another candidate must be ahead: a test at the usual level of 5%.
ERRORS_AHEAD = 2.0
# The share of the edges that is hidden, as in the edge cross-validation of Li, Levina & Zhu (2020).
HIDDEN = 0.1
# Alternating updates of strengths and connectivity, which converge in a few.
N_UPDATES = 8


@dataclass(frozen=True)
class Problem:
    """A graph without isolated nodes, and what the search of its communities is told."""

    adjacency: SparseMatrix  # CSR, symmetric
    k: int
    # Bipartite graphs: how many nodes are on the first side; they come first.
    n_first: int | None = None
    energy: float = 0.99  # the share of the squared norm that the kept nodes hold
    # Parameters of the method and of its iterations that the user set.
    params: Mapping[str, Any] = field(default_factory=dict)
    rng: Seed = None  # for methods that draw
    n_jobs: int | None = None  # threads

    def pairs(self, spectrum: str, matrix: SparseMatrix) -> Eigenpairs:
        """Return the leading eigenvectors of the adjacency matrix, as it is or normalized."""
        # Those of a bipartite graph come in pairs: the others mirror them, with the sign of one side changed.
        spectrum = spectrum if self.n_first is None else "algebraic"
        return leading_eigenvectors(matrix, self.k, spectrum=spectrum)


class Memberships(NamedTuple):
    """Memberships of every node in every community."""

    values: FloatArray  # rows sum to one, but those of nodes that are not reached
    reached: BoolArray  # which nodes have a row that is more than rounding
    clipped: float = 0.0  # the share of negative coordinates in the sum of all magnitudes


@dataclass(frozen=True)
class Search:
    """Result of a method."""

    method: str
    pairs: Eigenpairs
    selection: SelectionResult  # the pure nodes, as rows of the eigenvectors
    memberships: Memberships  # of all nodes
    connectivity: FloatArray  # the expected weight of an edge between pure nodes
    # Where several propose: the log-likelihood per hidden edge of every candidate, relative to a single
    # community, and its standard error; of those not chosen, that of the difference to the chosen one.
    scores: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CommunityMethod(ApplicationMethod):
    """A way to find communities: ``run(problem)`` returns a `Search`."""

    # What its authors give to nodes that the eigenvectors do not reach; None leaves what comes out.
    unreached: str | None = "mean"
    geometric: bool = True  # whether memberships are coordinates of the rows of the eigenvectors


def energetic_nodes(vectors: FloatArray, energy: float) -> IntArray:
    """Return the nodes with the longest rows that together hold a share of the squared norm."""
    return largest_rows(np.einsum("ij,ij->i", vectors, vectors), energy)


def _anchors(name: str, pairs: Eigenpairs, problem: Problem, keywords: Mapping[str, Any]) -> SelectionResult:
    """Return anchors among the rows of the eigenvectors."""
    k, nodes = problem.k, energetic_nodes(pairs.vectors, problem.energy)
    if k > len(nodes):
        raise InvalidParameterError(
            f"n_communities={k} is more than the {len(nodes)} nodes among which pure ones are searched for. "
            "Raise energy, or ask for fewer."
        )
    selected = select_anchors(
        pairs.vectors[nodes], k, method=name, rng=problem.rng, n_jobs=problem.n_jobs, **split_params(keywords)
    )
    # Coefficients and row maxima belong to the nodes that were searched.
    return replace(selected, anchors=nodes[selected.anchors], row_maxima=None, coefficients=None)


def recover(vectors: FloatArray, corners: FloatArray, *, spoc: bool = False) -> Memberships:
    """Return the memberships as coordinates between the pure nodes."""
    if np.linalg.cond(corners) > 1.0 / EPS:
        raise InvalidDataError(
            "The rows of the pure nodes that were found are linearly dependent. Ask for fewer communities, "
            "or choose another method."
        )
    values = np.ascontiguousarray(np.linalg.solve(corners.T, vectors.T).T)
    total = float(np.abs(values).sum())
    clipped = float(-np.minimum(values, 0.0).sum()) / total if total > 0 else 0.0
    if spoc:
        # At least the machine epsilon, so that a row of zeros becomes equal memberships in all communities.
        reached = np.abs(values).max(axis=1) >= ROUNDING
        np.maximum(values, EPS, out=values)
    else:
        values[values < ROUNDING] = 0.0
        reached = values.any(axis=1)
    sums = values.sum(axis=1, keepdims=True)
    return Memberships(values / np.where(sums > 0, sums, 1.0), reached, clipped)


def fill_unreached(fitted: Memberships, rule: str, usual: str | None = None) -> FloatArray:
    """Give the nodes that are not reached a membership; "auto" does as usual."""
    rule = (usual or "") if rule == "auto" else rule
    memberships = fitted.values.copy()
    lost = ~fitted.reached
    if lost.any() and rule:
        if rule == "mean" and fitted.reached.any():
            memberships[lost] = memberships[fitted.reached].mean(axis=0)
        else:
            memberships[lost] = {"zero": 0.0, "nan": np.nan}.get(rule, 1.0 / memberships.shape[1])
    return memberships


def _by_pure_nodes(name: str) -> Callable[[Problem], Search]:
    """Return the search for pure nodes among the rows of eigenvectors.

    "spoc" searches among all nodes: Panov, Slavnov & Ushakov (2017), "Consistent estimation of mixed
    memberships with successive projections", Complex Networks.
    """
    spoc, normalized = name == "spoc", name == "regularized-spa"

    def run(problem: Problem) -> Search:
        matrix = normalized_adjacency(problem.adjacency) if normalized else problem.adjacency
        pairs = problem.pairs("algebraic" if spoc else "magnitude", matrix)
        keywords = dict(problem.params)
        if name == "merit":
            keywords = {"lam": MERIT_LAM, "tol": MERIT_GAP, "max_iter": MERIT_ITERATIONS} | keywords
        method = "spa" if spoc or normalized else name
        selected = _anchors(method, pairs, replace(problem, energy=1.0) if spoc else problem, keywords)
        corners = pairs.vectors[selected.anchors]
        memberships = recover(pairs.vectors, corners, spoc=spoc)
        ties: FloatArray = (corners * pairs.values) @ corners.T
        if normalized:
            ties = fitted_connectivity(problem.adjacency, memberships.values, problem.n_first)
        selected = replace(selected, method=name)
        return Search(name, pairs, selected, memberships, ties)

    return run


def _by_nmf(name: str) -> Callable[[Problem], Search]:
    """Return NMF of the adjacency matrix; a membership is the expected share of the node's edges.

    "poisson": the weight of the edge (i, j) is Poisson with mean w_i' h_j (Ball, Karrer & Newman, 2011),
    which is the Kullback-Leibler divergence. "nmf": the Frobenius loss of the normalized matrix, as in SymNMF
    (Kuang, Ding & Park, 2012); the two factors are equal at the start but not kept equal.
    """
    poisson = name == "poisson"

    def run(problem: Problem) -> Search:
        counts = np.diff(problem.adjacency.indptr)
        # In units of the mean weight.
        adjacency = problem.adjacency * (1.0 / float(problem.adjacency.data.mean()))
        normalized = normalized_adjacency(adjacency)
        matrix = adjacency if poisson else normalized
        strengths = np.asarray(matrix.sum(axis=1))[:, None]
        first = second = slice(None)
        if problem.n_first is not None:
            # Where the sides of a bipartite graph meet: all else is zero.
            first, second = slice(problem.n_first), slice(problem.n_first, None)
        X = sp.csr_array(matrix[first, second])
        fits, failed = [], []
        for scaled, spectrum in STARTS if poisson else STARTS[:1]:
            try:
                pairs = problem.pairs(spectrum, normalized if scaled else adjacency)
                corners = pairs.vectors[_anchors("spa", pairs, problem, {}).anchors]
                start = recover(pairs.vectors, corners)
            except NonnegError as error:
                failed.append(error)
                continue
            factor = strengths * smoothed(fill_unreached(start, "mean"), counts)
            factor /= np.sqrt(factor.sum(axis=0))
            loss = "kullback-leibler" if poisson else "frobenius"
            W, H = factor[first], factor[second].T.copy()
            fit = factorize(X, problem.k, beta_loss=loss, W=W, H=H, **problem.params)
            fits.append((fit, start.reached, pairs))
        if not fits:
            raise failed[0]
        fit, reached, pairs = min(fits, key=lambda one: one[0].loss)
        W, Ht = np.asarray(fit.W), np.asarray(fit.H).T
        sent, received = W * Ht.sum(axis=0), Ht * W.sum(axis=0)
        edges = sent + received if problem.n_first is None else np.vstack([sent, received])
        memberships = shares_of(np.where(reached[:, None], edges, 0.0), counts)
        selection = SelectionResult(
            anchors=_purest(memberships.values, edges),
            method=name,
            certificate=fit.certificate,
            history=fit.history,
            n_iter=fit.n_iter,
            stop_reason=fit.stop_reason,
        )
        ties = fitted_connectivity(problem.adjacency, memberships.values, problem.n_first)
        return Search(name, pairs, selection, memberships, ties)

    return run


def smoothed(memberships: FloatArray, counts: IntArray) -> FloatArray:
    """Return memberships by Laplace's rule: one edge is added per community."""
    return (counts[:, None] * memberships + 1.0) / (counts[:, None] + memberships.shape[1])


def shares_of(factor: FloatArray, n_edges: IntArray) -> Memberships:
    """Divide rows by their sums; memberships of less than one edge of the node become zero."""
    sums = factor.sum(axis=1)
    reached = sums > ROUNDING * max(float(sums.max()), 1e-300)
    values = factor / np.where(reached, sums, 1.0)[:, None]
    values[~reached] = 0.0
    # The largest one stays.
    values[values < np.minimum(1.0 / n_edges, values.max(axis=1))[:, None]] = 0.0
    values /= np.where(reached, values.sum(axis=1), 1.0)[:, None]
    return Memberships(values, reached)


def _purest(memberships: FloatArray, factor: FloatArray) -> IntArray:
    """Return for each community the node of largest membership; of nearly equal ones the strongest."""
    chosen: list[int] = []
    for community in range(memberships.shape[1]):
        order = np.lexsort((-factor[:, community], -np.round(memberships[:, community], 2)))
        chosen.append(next((int(at) for at in order if int(at) not in chosen), int(order[0])))
    return np.asarray(chosen, dtype=np.intp)


def fitted_connectivity(adjacency: SparseMatrix, memberships: FloatArray, n_first: int | None) -> FloatArray:
    """Return the least-squares fit of the adjacency matrix by memberships, raised to zero."""
    first = slice(None) if n_first is None else slice(0, n_first)
    second = slice(None) if n_first is None else slice(n_first, None)
    left, right = memberships[first], memberships[second]
    shared = left.T @ (adjacency[first, second] @ right)
    return np.maximum(np.linalg.pinv(left.T @ left) @ shared @ np.linalg.pinv(right.T @ right), 0.0)


@dataclass(frozen=True)
class HiddenEdges:
    """A graph of which some edges are hidden."""

    shown: SparseMatrix  # CSR, symmetric: the nodes that keep an edge
    connected: BoolArray  # which nodes these are
    rows: IntArray  # the ends of the hidden edges among them, as rows of `shown`
    columns: IntArray
    weights: FloatArray  # of the hidden edges, of mean 1

    def log_likelihoods(self, memberships: FloatArray) -> FloatArray:
        """Return the log-likelihood of each hidden edge, relative to a single community.

        The weight of edge (i, j) is Poisson with mean t_i t_j m_i' B m_j, where m are the memberships (Karrer
        & Newman, 2011, with mixed memberships); the strengths t and the connectivity B are fitted to the
        edges that are shown. Memberships are those of Laplace's rule: one edge is added per community, so
        that no edge is impossible.
        """
        return self.weights * (self._logs(memberships) - self._logs(np.ones((len(memberships), 1))))

    def standard_error(self, values: FloatArray) -> float:
        """Return that of the mean of a number per hidden edge; edges with a common node are not independent.

        The variance of dyadic data (Aronow, Samii & Assenova, 2015), and at least that of independent edges.
        """
        apart = values - values.mean()
        if len(apart) < 2:
            return float("inf")
        n = self.shown.shape[0]
        sums = np.bincount(self.rows, apart, n) + np.bincount(self.columns, apart, n)
        square = float(apart @ apart)
        return float(np.sqrt(max(float(sums @ sums) - square, square))) / len(apart)

    def most_likely(self, logs: Mapping[Any, FloatArray], chosen: Any) -> Any:
        """Return the candidate with the largest log-likelihoods; the chosen one unless another is ahead."""
        for name, values in logs.items():
            ahead = values - logs[chosen]
            if ahead.mean() > ERRORS_AHEAD * self.standard_error(ahead):
                chosen = name
        return chosen

    def _logs(self, memberships: FloatArray) -> FloatArray:
        m = smoothed(memberships, np.diff(self.shown.indptr))
        table = sp.coo_array(self.shown * (1.0 / float(self.shown.sum())))
        degrees = np.asarray(table.sum(axis=1)).ravel()
        strengths = degrees.copy()
        left, right = m[table.row], m[table.col]
        # The moments m' W m = (m' diag(t) m) B (m' diag(t) m) give a first guess of B, near the fit.
        inverse = np.linalg.pinv(m.T @ (strengths[:, None] * m))
        blocks = inverse @ (m.T @ (table @ m)) @ inverse
        blocks = np.maximum(blocks, 1e-3 * float(np.abs(blocks).mean()))
        for _ in range(N_UPDATES):
            means = np.einsum("ij,ij->i", left @ blocks, right)
            totals = strengths @ m
            pairs = (left * (table.data / means)[:, None]).T @ right
            blocks = blocks * (0.5 * (pairs + pairs.T)) / np.outer(totals, totals)
            # The geometric mean of old and new strengths: the new ones alone may oscillate.
            strengths = np.sqrt(strengths * degrees / (m @ (blocks @ (strengths @ m))))
        means = np.einsum("ij,ij->i", m[self.rows] @ blocks, m[self.columns])
        return np.log(strengths[self.rows]) + np.log(strengths[self.columns]) + np.log(means)


def hide_edges(adjacency: SparseMatrix) -> HiddenEdges | None:
    """Hide some edges of a symmetric graph, the same at every call; None where none can be hidden."""
    upper = sp.coo_array(sp.triu(adjacency, 1))
    hidden = np.random.default_rng(adjacency.shape[0]).random(upper.nnz) < HIDDEN
    seen = ~hidden
    half = sp.csr_array((upper.data[seen], (upper.row[seen], upper.col[seen])), shape=adjacency.shape)
    shown = sp.csr_array(half + half.T)
    connected = np.diff(shown.indptr) > 0
    # The strength of a node without another edge is not known.
    hidden &= connected[upper.row] & connected[upper.col]
    if not hidden.any():
        return None
    places = np.cumsum(connected) - 1
    weights = upper.data[hidden]
    return HiddenEdges(
        shown if connected.all() else sp.csr_array(shown[connected][:, connected]),
        connected,
        places[upper.row[hidden]],
        places[upper.col[hidden]],
        weights / float(weights.mean()),
    )


def judged_number(problem: Problem, numbers: Sequence[int]) -> tuple[int, float, float] | None:
    """Return the number under which hidden edges are more likely, with the difference and its standard error.

    The first of the two unless the other is ahead; None where no edge can be hidden.
    """
    hidden = hide_edges(problem.adjacency) if problem.n_first is None else None
    if hidden is None:
        return None
    # Relative to a single community, which is a case of all others.
    logs: dict[int, FloatArray] = dict.fromkeys(numbers, np.zeros(len(hidden.rows)))
    for k, name in product(numbers, PROPOSED[:2]):
        with contextlib.suppress(NonnegError):
            search = METHODS[name].run(replace(problem, adjacency=hidden.shown, k=k))
            values = hidden.log_likelihoods(fill_unreached(search.memberships, "uniform"))
            logs[k] = max(logs[k], values, key=np.mean)
    chosen = hidden.most_likely(logs, numbers[0])
    (other,) = set(numbers) - {chosen}
    ahead = logs[chosen] - logs[other]
    return chosen, float(ahead.mean()), hidden.standard_error(ahead)


def _by_judge(problem: Problem) -> Search:
    """Take the candidate under which hidden edges are most likely; the first unless one stands out."""
    hidden = hide_edges(problem.adjacency) if problem.k > 1 and problem.n_first is None else None
    logs: dict[str, FloatArray] = {}
    first = PROPOSED[0]
    chosen, scores, errors = first, {}, {}
    if hidden is not None:
        shown = replace(problem, adjacency=hidden.shown)
        for name in PROPOSED:
            with contextlib.suppress(NonnegError):
                search = METHODS[name].run(shown)
                logs[name] = hidden.log_likelihoods(fill_unreached(search.memberships, "uniform"))
                # Communities that avoid themselves have a second eigenvalue below zero. NMF starts from
                # communities that hold together.
                if name == "regularized-spa" and search.pairs.values[1] < 0:
                    first = name
        chosen = first if first in logs else next(iter(logs), first)
        chosen = hidden.most_likely(logs, chosen)
        scores = {name: float(values.mean()) for name, values in logs.items()}
        errors = {
            name: hidden.standard_error(values if name == chosen else values - logs[chosen])
            for name, values in logs.items()
        }
    failed = []
    for name in dict.fromkeys((chosen, *PROPOSED)):
        try:
            search = METHODS[name].run(problem)
        except NonnegError as error:
            failed.append(error)
            continue
        return replace(search, scores=scores, errors=errors) if name == chosen else search
    raise failed[0]


ITERATIVE = frozenset({"tol", "max_iter", "callback"})
METHODS: Registry[CommunityMethod] = Registry(
    "method",
    {
        "auto": CommunityMethod(
            _by_judge, "nmf, or regularized-spa or poisson where hidden edges are more likely under it"
        ),
        "nmf": CommunityMethod(
            _by_nmf("nmf"),
            "NMF of the normalized adjacency matrix",
            shared=ITERATIVE,
            geometric=False,
        ),
        "poisson": CommunityMethod(
            _by_nmf("poisson"),
            "the Poisson blockmodel with mixed memberships, the most likely of three starts",
            shared=ITERATIVE,
            geometric=False,
        ),
        "regularized-spa": CommunityMethod(
            _by_pure_nodes("regularized-spa"),
            "successive projections on eigenvectors of the normalized adjacency matrix",
        ),
        **{
            name: CommunityMethod(
                _by_pure_nodes(name),
                ANCHOR_METHODS[name].summary,
                **anchor_parameters(name, ITERATIVE | {"checkpoint", "verbose"}),
            )
            for name in ("spa", "merit", "fast-gradient")
        },
        "spoc": CommunityMethod(
            _by_pure_nodes("spoc"), "successive projections among all nodes", unreached=None
        ),
    },
)
"""The methods of `MixedMembership`: two of NMF, and the methods of MERIT's Table IV but GeoNMF."""
