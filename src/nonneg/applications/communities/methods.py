"""Methods that find pure nodes and memberships, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nonneg._random import Seed
from nonneg._registry import Registry
from nonneg._typing import BoolArray, FloatArray, IntArray, SparseMatrix
from nonneg.applications.communities.eigenvectors import (
    NO_VALUE,
    Eigenpairs,
    leading_eigenvectors,
    normalized_adjacency,
)
from nonneg.applications.communities.judge import hide_edges
from nonneg.applications.communities.symnmf import symnmf
from nonneg.applications.method_entries import ApplicationMethod
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonnegError
from nonneg.separable.registry import METHODS as ANCHOR_METHODS
from nonneg.separable.registry import split_params
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors

UNREACHED = ("auto", "mean", "uniform", "zero", "nan")
# MERIT on graphs as its authors run it, in the unit of the paper's objective (18), which has half the
# squared error: their weight 1e-6 and gap 0.5 belong to the whole.
MERIT_LAM, MERIT_GAP, MERIT_ITERATIONS = 5e-7, 0.25, 120
# The authors' limit: a smaller coordinate is rounding.
ROUNDING = 1e-12
EPS = float(np.finfo(np.float64).eps)
# The default proposes these; where hidden edges are equally likely, the first.
PROPOSED = ("symnmf", "regularized-spa")


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

    def pairs(self, spectrum: str, matrix: SparseMatrix | None = None) -> Eigenpairs:
        """Return the leading eigenvectors of the adjacency matrix, or of another one."""
        # Those of a bipartite graph come in pairs: the others mirror them, with the sign of one side changed.
        spectrum = spectrum if self.n_first is None else "algebraic"
        return leading_eigenvectors(self.adjacency if matrix is None else matrix, self.k, spectrum=spectrum)


class Memberships(NamedTuple):
    """How much every node belongs to every community."""

    values: FloatArray  # rows sum to one, but those of nodes that are not reached
    reached: BoolArray  # which nodes have a row that is more than rounding
    clipped: float = 0.0  # the share of negative coordinates in the sum of all magnitudes


@dataclass(frozen=True)
class Score:
    """How well a candidate predicts hidden edges."""

    mean: float  # log-likelihood per hidden edge, relative to a single community
    error: float  # standard error of the difference to the candidate that was chosen


@dataclass(frozen=True)
class Search:
    """What a method finds."""

    method: str
    pairs: Eigenpairs
    selection: SelectionResult  # the pure nodes, as rows of the eigenvectors
    memberships: Memberships  # of all nodes
    connectivity: FloatArray  # the expected weight of an edge between pure nodes
    kept: IntArray | None = None  # the nodes that hold the energy; None where the method looks at all
    scores: Mapping[str, Score] = field(default_factory=dict)  # of all candidates, where several propose


@dataclass(frozen=True)
class CommunityMethod(ApplicationMethod):
    """A way to find communities: ``run(problem)`` returns a `Search`."""

    # What its authors give to nodes that the eigenvectors do not reach; None leaves what comes out.
    unreached: str | None = "mean"
    geometric: bool = True  # whether memberships are coordinates of the rows of the eigenvectors
    normalized: bool = False  # whether these are eigenvectors of the normalized adjacency matrix


def energetic_nodes(vectors: FloatArray, energy: float) -> IntArray:
    """Return the nodes with the longest rows that together hold a share of the squared norm."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    order = np.argsort(-squares, kind="stable")
    sums = np.cumsum(squares[order])
    n_kept = int(np.searchsorted(sums, energy * sums[-1] * (1.0 - 1e-12))) + 1
    return np.sort(order[:n_kept])


def _anchors(
    name: str, pairs: Eigenpairs, problem: Problem, keywords: Mapping[str, Any]
) -> tuple[SelectionResult, IntArray]:
    """Return anchors among the rows of the eigenvectors, and the rows among which they were searched."""
    k, kept = problem.k, energetic_nodes(pairs.vectors, problem.energy)
    if k > len(kept):
        raise InvalidParameterError(
            f"n_communities={k} is more than the {len(kept)} nodes among which pure ones are searched for. "
            "Raise energy, or ask for fewer."
        )
    selected = select_anchors(
        pairs.vectors[kept], k, method=name, rng=problem.rng, n_jobs=problem.n_jobs, **split_params(keywords)
    )
    maxima = selected.row_maxima
    if maxima is not None:
        maxima = np.zeros(len(pairs.vectors))
        maxima[kept] = selected.row_maxima
    # The coefficients belong to the nodes that were searched; what they say is in the row maxima.
    return replace(selected, anchors=kept[selected.anchors], row_maxima=maxima, coefficients=None), kept


def coordinates(vectors: FloatArray, corners: FloatArray) -> FloatArray:
    """Write every row as a combination of the corners."""
    if np.linalg.cond(corners) > 1.0 / EPS:
        raise InvalidDataError(
            "The rows of the pure nodes that were found are linearly dependent. Ask for fewer communities, "
            "or choose another method."
        )
    return np.ascontiguousarray(np.linalg.solve(corners.T, vectors.T).T)


def recover(vectors: FloatArray, corners: FloatArray) -> Memberships:
    """Return the memberships as coordinates between the pure nodes."""
    memberships = coordinates(vectors, corners)
    clipped = _clipped_fraction(memberships)
    memberships[memberships < ROUNDING] = 0.0
    sums = memberships.sum(axis=1)
    return Memberships(memberships / np.where(sums > 0, sums, 1.0)[:, None], sums > 0, clipped)


def _clipped_fraction(memberships: FloatArray) -> float:
    total = float(np.abs(memberships).sum())
    return float(-np.minimum(memberships, 0.0).sum()) / total if total > 0 else 0.0


def fill_unreached(found: Memberships, rule: str, usual: str | None = None) -> FloatArray:
    """Give the nodes that are not reached a membership; "auto" does as usual."""
    rule = (usual or "") if rule == "auto" else rule
    memberships = found.values.copy()
    lost = ~found.reached
    if lost.any() and rule:
        if rule == "mean" and found.reached.any():
            memberships[lost] = memberships[found.reached].mean(axis=0)
        else:
            memberships[lost] = {"zero": 0.0, "nan": np.nan}.get(rule, 1.0 / memberships.shape[1])
    return memberships


def _by_anchors(name: str) -> Callable[[Problem], Search]:
    """Return the search for pure nodes in the eigenvectors of the adjacency matrix by anchors."""

    def run(problem: Problem) -> Search:
        pairs = problem.pairs("magnitude")
        keywords = dict(problem.params)
        if name == "merit":
            keywords = {"lam": MERIT_LAM, "tol": MERIT_GAP, "max_iter": MERIT_ITERATIONS} | keywords
        selected, kept = _anchors(name, pairs, problem, keywords)
        corners = pairs.vectors[selected.anchors]
        memberships = recover(pairs.vectors, corners)
        return Search(name, pairs, selected, memberships, _ties(pairs.values, corners), kept)

    return run


def _ties(values: FloatArray, corners: FloatArray) -> FloatArray:
    """Return the expected weights of edges between pure nodes, from their rows."""
    return (corners * values) @ corners.T


def _by_spoc(problem: Problem) -> Search:
    """Find pure nodes by successive projections among all nodes.

    Panov, Slavnov & Ushakov (2017), "Consistent estimation of mixed memberships with successive projections",
    Complex Networks. Coordinates are at least the machine epsilon and divided by their sum, so that a row of
    zeros becomes equal memberships in all communities.
    """
    pairs = problem.pairs("algebraic")
    selected = select_anchors(pairs.vectors, problem.k, method="spa")
    corners = pairs.vectors[selected.anchors]
    values = coordinates(pairs.vectors, corners)
    clipped, reached = _clipped_fraction(values), np.abs(values).max(axis=1) >= ROUNDING
    np.maximum(values, EPS, out=values)
    memberships = Memberships(values / values.sum(axis=1, keepdims=True), reached, clipped)
    return Search("spoc", pairs, replace(selected, method="spoc"), memberships, _ties(pairs.values, corners))


def _by_regularized_spa(problem: Problem) -> Search:
    """Find pure nodes in the eigenvectors of the normalized adjacency matrix."""
    pairs = problem.pairs("magnitude", normalized_adjacency(problem.adjacency))
    selected, kept = _anchors("spa", pairs, problem, problem.params)
    memberships = recover(pairs.vectors, pairs.vectors[selected.anchors])
    ties = fitted_connectivity(problem.adjacency, memberships.values, problem.n_first)
    selected = replace(selected, method="regularized-spa")
    return Search("regularized-spa", pairs, selected, memberships, ties, kept)


def _by_symnmf(problem: Problem) -> Search:
    params = dict(problem.params)
    regularization, threshold = params.pop("regularization", 1.0), params.pop("threshold", None)
    if not regularization >= 0 or not (threshold is None or 0 <= threshold < 1):
        raise InvalidParameterError(
            "regularization must be at least 0 and threshold None or at least 0 and below 1, got "
            f"{regularization!r} and {threshold!r}."
        )
    matrix = normalized_adjacency(problem.adjacency, regularization)
    # H H' has no eigenvalue below zero.
    pairs = problem.pairs("algebraic", matrix)
    n_above = int(np.count_nonzero(pairs.values > NO_VALUE * pairs.values[0]))
    if n_above < problem.k:
        raise InvalidParameterError(
            f"The normalized adjacency matrix has only {n_above} eigenvalues above zero, fewer than "
            f"n_communities={problem.k}: its communities are not more. Ask for {n_above} or fewer."
        )
    start = recover(pairs.vectors, pairs.vectors[_anchors("spa", pairs, problem, {})[0].anchors])
    fit = symnmf(matrix, pairs, start.values, n_first=problem.n_first, **params)
    counts = np.diff(problem.adjacency.indptr)
    memberships = shares_of(
        fit.factor, 1.0 / counts if threshold is None else np.full(len(counts), threshold)
    )
    selection = SelectionResult(
        anchors=_purest(memberships.values, fit.factor),
        method="symnmf",
        certificate=fit.certificate,
        history=fit.run.history,
        n_iter=fit.run.n_iter,
        stop_reason=fit.run.stop_reason,
        stop_sentence=fit.run.sentence,
    )
    ties = fitted_connectivity(problem.adjacency, memberships.values, problem.n_first)
    return Search("symnmf", pairs, selection, memberships, ties)


def shares_of(factor: FloatArray, thresholds: FloatArray) -> Memberships:
    """Divide rows by their sums; memberships below the node's threshold become zero, but for the largest.

    A node of d edges shows no membership below 1 / d: that is less than one of its edges.
    """
    sums = factor.sum(axis=1)
    reached = sums > ROUNDING * max(float(sums.max()), 1e-300)
    values = factor / np.where(reached, sums, 1.0)[:, None]
    values[~reached] = 0.0
    values[values < np.minimum(thresholds, values.max(axis=1))[:, None]] = 0.0
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


def _by_judge(problem: Problem) -> Search:
    """Take the candidate under which hidden edges are most likely; SymNMF unless another one stands out."""
    usual = PROPOSED[0]
    # H H' is a model of communities that hold together; the sides of a bipartite graph are told it.
    hidden = hide_edges(problem.adjacency) if problem.k > 1 and problem.n_first is None else None
    logs: dict[str, FloatArray] = {}
    for name in PROPOSED:
        if hidden is None:
            break
        try:
            search = METHODS[name].run(replace(problem, adjacency=hidden.shown))
        except NonnegError:
            continue
        shares = fill_unreached(search.memberships, "uniform")
        logs[name] = hidden.log_likelihoods(shares)
    chosen = next(iter(logs), usual)
    for name, values in logs.items():
        if values.mean() - logs[chosen].mean() > _standard_error(values - logs[chosen]):
            chosen = name
    scores = {
        name: Score(float(values.mean()), _standard_error(values - logs[chosen]))
        for name, values in logs.items()
    }
    try:
        search = METHODS[chosen].run(problem)
    except NonnegError:
        others = [name for name in PROPOSED if name != chosen and problem.k > 1]
        if not others:
            raise
        search = METHODS[others[0]].run(problem)
    return replace(search, scores=scores)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


def _anchor_entry(name: str) -> CommunityMethod:
    entry = ANCHOR_METHODS[name]
    return CommunityMethod(
        _by_anchors(name),
        entry.summary,
        options=entry.options | (entry.shared & {"init"}),
        shared=entry.shared & {"tol", "max_iter", "callback", "checkpoint", "verbose"},
    )


METHODS: Registry[CommunityMethod] = Registry(
    "method",
    {
        "auto": CommunityMethod(
            _by_judge, "SymNMF, or regularized-spa where hidden edges are more likely under it"
        ),
        "symnmf": CommunityMethod(
            _by_symnmf,
            "the normalized adjacency matrix as H H' with nonnegative H",
            options=frozenset({"regularization", "threshold"}),
            shared=frozenset({"tol", "max_iter", "callback"}),
            geometric=False,
            normalized=True,
        ),
        "regularized-spa": CommunityMethod(
            _by_regularized_spa,
            "successive projections on eigenvectors of the normalized adjacency matrix",
            normalized=True,
        ),
        **{name: _anchor_entry(name) for name in ("spa", "merit", "fast-gradient")},
        "spoc": CommunityMethod(_by_spoc, "successive projections among all nodes", unreached=None),
    },
)
"""The methods of `MixedMembership`: SymNMF, and the methods of MERIT's Table IV but GeoNMF."""
