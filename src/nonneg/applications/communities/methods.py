"""The methods that find pure nodes and memberships, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nonneg._lazy import cached_property
from nonneg._random import Seed
from nonneg._registry import Registry
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.applications.communities.candidates import (
    MANY_NODES,
    N_CANDIDATES,
    candidate_nodes,
    energetic_nodes,
)
from nonneg.applications.communities.eigenvectors import Eigenpairs, leading_eigenvectors
from nonneg.applications.communities.geonmf import GeoNMFOptions, geonmf
from nonneg.applications.communities.likelihood import edge_likelihood
from nonneg.applications.communities.recovery import Memberships, recover
from nonneg.applications.communities.spoc import as_selection, connectivity, spoc
from nonneg.applications.communities.symnmf import (
    SymNMFOptions,
    SymNMFResult,
    normalized_adjacency,
    symnmf,
)
from nonneg.applications.method_entries import ApplicationMethod, iteration_params
from nonneg.certificates.certificate import Certificate
from nonneg.exceptions import InvalidParameterError, NonnegError
from nonneg.separable.certificate import span_statement
from nonneg.separable.registry import METHODS as ANCHOR_METHODS
from nonneg.separable.registry import Method, not_accepted, split_params
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from nonneg.separable.vertices import aggregated

CHOICES = ("row-maxima", "spread")
AS_PUBLISHED = ("merit", "merit-0", "fast-gradient")
# The authors' choices for graphs, in the unit of the paper's objective (18), which has half the squared
# error: their weight 1e-6 and gap 0.5 belong to the whole.
MERIT_LAM, MERIT_GAP, MERIT_ITERATIONS = 5e-7, 0.25, 120

# Smoothed methods average this part of a community of average size, up to 50 nodes: the eigenvectors have no
# dimension without communities in which the methods could measure the noise. From the choosing draws of the
# study `studies/communities`, on which parts from 1/20 to 1/3 do about as well.
MEMBERS, MOST_MEMBERS = 0.1, 50


# "auto" takes the second on disassortative graphs, of which H H' is no model: more than this part of
# the leading eigenvalues of the normalized matrix, the first aside, is below zero there. On the choosing
# graphs of the study `studies/communities` it is a tenth or so at most where they do not, all where they do.
USUAL, AVOIDING, AVOIDED = "symnmf", "smoothed-spa", 0.5


@dataclass(frozen=True)
class Problem:
    """What a method searches: a graph without isolated nodes."""

    adjacency: SparseMatrix  # CSR, symmetric
    k: int
    # Bipartite graphs: how many nodes are on the first side; they come first.
    n_first: int | None = None
    spectrum: str | None = None  # which eigenvalues lead, where the user said it
    verbose: int = 0
    found: dict[str, Eigenpairs] = field(default_factory=dict)

    @cached_property
    def degrees(self) -> FloatArray:
        """The sum of the weights at every node."""
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64).ravel()

    def pairs(self, spectrum: str) -> Eigenpairs:
        """Return the leading eigenvectors; computed once for methods that share them."""
        if self.n_first is not None:
            # The others mirror them: the sign of one side is changed.
            spectrum = "algebraic"
        spectrum = self.spectrum or spectrum
        if spectrum not in self.found:
            self.found[spectrum] = leading_eigenvectors(
                self.adjacency, self.k, spectrum=spectrum, verbose=self.verbose
            )
        return self.found[spectrum]


@dataclass(frozen=True)
class Search:
    """What a method finds."""

    method: str
    pairs: Eigenpairs
    selection: SelectionResult  # the pure nodes, as rows of the eigenvectors
    memberships: Memberships  # of all nodes
    connectivity: FloatArray  # the expected weight of an edge between pure nodes
    kept: IntArray | None  # the nodes that hold the energy; None where the method looks at all
    n_seen: int  # among how many nodes it looked
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else it reports

    def unreached(self, recovery: str) -> str | None:
        """Return what the authors give to nodes that are not reached; None leaves what comes out."""
        return None if recovery == "simplex" else METHODS[self.method].unreached


@dataclass(frozen=True)
class SearchOptions:
    """What a search is told."""

    energy: float = 0.99  # the share of the squared norm that the kept nodes hold
    # Convex methods: among how many nodes to look; None for 10 000 where more than 20 000 are kept.
    n_candidates: int | None = None
    recovery: str = "least-squares"  # see `nonneg.applications.communities.recovery.recover`
    choice: str = "row-maxima"  # convex methods: how pure nodes follow from the coefficients
    # Parameters of the method and of its iterations that the user set.
    params: Mapping[str, Any] = field(default_factory=dict)
    rng: Seed = None  # for methods that draw
    n_jobs: int | None = None  # threads


@dataclass(frozen=True)
class CommunityMethod(ApplicationMethod):
    """A way to find communities: ``run(problem, options)`` returns a `Search`."""

    # What its authors give to nodes that the eigenvectors do not reach; None leaves what comes out.
    unreached: str | None = "mean"
    geometric: bool = True  # whether memberships are coordinates of the rows of the eigenvectors
    convex: bool = False  # whether `n_candidates` matters
    row_maxima: bool = False  # whether `choice` matters


def _by_anchors(name: str) -> Callable[[Problem, SearchOptions], Search]:
    method = "merit" if name == "merit-0" else name
    entry = ANCHOR_METHODS.find(method)
    convex = entry.kind == "convex"
    # As published, all eigenvalues of largest magnitude lead.
    spectrum = "magnitude" if name in AS_PUBLISHED else "auto"

    def run(problem: Problem, options: SearchOptions) -> Search:
        pairs, k = problem.pairs(spectrum), problem.k
        kept = energetic_nodes(pairs.vectors, options.energy)
        rows = kept
        if convex:
            limit = options.n_candidates
            if limit is None:
                limit = N_CANDIDATES if len(kept) > MANY_NODES else len(kept)
            rows = candidate_nodes(pairs.vectors, kept, limit)
        if k > len(rows):
            raise InvalidParameterError(
                f"n_communities={k} is more than the {len(rows)} nodes among which pure ones are looked for. "
                "Raise energy or n_candidates, or ask for fewer."
            )
        points = pairs.vectors[rows]
        if len(rows) < len(kept):
            # The squared norm of all rows is k: a part of them is brought there, so that the weight and the
            # gap mean the same.
            points *= np.sqrt(k / np.einsum("ij,ij->", points, points))
        keywords = dict(options.params)
        if method == "merit":
            lam = 0.0 if name == "merit-0" else MERIT_LAM
            published = {"steps": "open-loop", "choice": "row-maxima"}
            keywords = {"lam": lam, "tol": MERIT_GAP, "max_iter": MERIT_ITERATIONS} | published | keywords
        if "n_members" in entry.options:
            n_members = min(MOST_MEMBERS, max(1, int(MEMBERS * len(rows) / k)))
            keywords = {"n_members": n_members} | keywords
        found = select_anchors(
            points, k, method=method, rng=options.rng, n_jobs=options.n_jobs, **split_params(keywords)
        )
        if convex and options.choice == "spread":
            found = _spread(found, points, k)
        found = _in_rows_of(found, rows, pairs.vectors)
        corners = vertices(pairs.vectors, found)
        memberships = recover(pairs.vectors, corners, options.recovery)
        return Search(name, pairs, found, memberships, connectivity(pairs.values, corners), kept, len(rows))

    return run


def _spread(found: SelectionResult, points: FloatArray, k: int) -> SelectionResult:
    # Near twins share their weight, and two of them may both be among the largest row maxima: successive
    # projections on the points times their row maxima take what is used most and lies apart.
    maxima = np.asarray(found.row_maxima)
    anchors = select_anchors(points * maxima[:, None], k, method="spa").anchors
    kept = [statement for statement in found.certificate if statement.name == "duality-gap"]
    certificate = Certificate((*kept, span_statement(points[anchors])))
    return replace(found, anchors=anchors, scores=maxima[anchors], certificate=certificate)


def _in_rows_of(found: SelectionResult, rows: IntArray, vectors: FloatArray) -> SelectionResult:
    # The coefficients belong to the nodes that were looked at; what they say is in the row maxima.
    maxima = found.row_maxima
    if maxima is not None:
        maxima = np.zeros(len(vectors))
        maxima[rows] = found.row_maxima
    found = replace(found, anchors=rows[found.anchors], row_maxima=maxima, coefficients=None)
    if found.members is None:
        return found
    # Averages of the eigenvectors themselves, whose scale is another one where nodes were left out.
    members = tuple(rows[group] for group in found.members)
    aggregate = str(found.facts.get("aggregate", "mean"))
    components = np.stack([aggregated(vectors[group], aggregate) for group in members])
    return replace(found, members=members, components=components)


def vertices(vectors: FloatArray, found: SelectionResult) -> FloatArray:
    """Return the rows of the eigenvectors that are pure, or averages of nearly pure ones."""
    return vectors[found.anchors] if found.components is None else np.asarray(found.components)


def _by_spoc(problem: Problem, options: SearchOptions) -> Search:
    pairs = problem.pairs("algebraic")
    found, memberships = spoc(pairs.vectors, problem.k)
    ties = connectivity(pairs.values, pairs.vectors[found.anchors])
    return Search("spoc", pairs, replace(found, method="spoc"), memberships, ties, None, len(pairs.vectors))


def _by_geonmf(problem: Problem, options: SearchOptions) -> Search:
    pairs = problem.pairs("algebraic")
    choices = GeoNMFOptions(**options.params)
    found = geonmf(pairs.values, pairs.vectors, problem.degrees, options=choices, rng=options.rng)
    facts = {
        "condition": found.condition,
        "n_rounds": found.n_rounds,
        "n_nearly_pure": found.n_nearly_pure,
    }
    ties = connectivity(pairs.values, pairs.vectors[found.pure])
    selection = as_selection(found.pure, "geonmf")
    return Search("geonmf", pairs, selection, found.memberships, ties, None, len(pairs.vectors), facts)


def _by_symnmf(problem: Problem, options: SearchOptions) -> Search:
    params = dict(options.params)
    loop = {key: params.pop(key) for key in ("max_iter", "tol", "callback") if key in params}
    choices = SymNMFOptions(**params)
    matrix = normalized_adjacency(problem.adjacency, choices.regularization)
    # H H' has no eigenvalue below zero.
    normalized = replace(problem, adjacency=matrix, spectrum="algebraic", found={})
    plain = replace(options, params={}, recovery="least-squares")
    best: tuple[float, SymNMFResult] | None = None
    # Eigenvectors of the normalized matrix see small communities, but may stay in small components; those of
    # the adjacency matrix see large ones. The likelihood of the edges decides between the two starts.
    for start in (problem, normalized):
        try:
            memberships = _by_anchors("smoothed-spa")(start, plain).memberships
        except NonnegError:
            if start is normalized and best is None:
                raise
            continue
        found = symnmf(
            matrix,
            normalized.pairs("algebraic"),
            memberships.values,
            threshold=choices.threshold,
            n_first=problem.n_first,
            **loop,
        )
        score = _likelihood(problem, found.whole)
        if best is None or score > best[0]:
            best = score, found
    _, found = best  # type: ignore[misc]
    selection = replace(
        as_selection(found.pure, "symnmf"),
        certificate=found.certificate,
        history=found.history,
        n_iter=found.n_iter,
        stop_reason=found.stop_reason,
        stop_sentence=found.stop_sentence,
    )
    ties = _fitted_connectivity(problem.adjacency, found.memberships.values, problem.n_first)
    pairs = normalized.pairs("algebraic")
    return Search("symnmf", pairs, selection, found.memberships, ties, None, len(pairs.vectors))


def _likelihood(problem: Problem, memberships: Memberships) -> float:
    # A node that was not reached may belong anywhere.
    values = np.where(memberships.reached[:, None], memberships.values, 1.0 / problem.k)
    return edge_likelihood(problem.adjacency, values, problem.n_first)


def _fitted_connectivity(adjacency: SparseMatrix, memberships: FloatArray, n_first: int | None) -> FloatArray:
    """Return the least-squares fit of the adjacency matrix by memberships, raised to zero."""
    first = slice(None) if n_first is None else slice(0, n_first)
    second = slice(None) if n_first is None else slice(n_first, None)
    left, right = memberships[first], memberships[second]
    shared = left.T @ (adjacency[first, second] @ right)
    return np.maximum(np.linalg.pinv(left.T @ left) @ shared @ np.linalg.pinv(right.T @ right), 0.0)


def _by_spectrum(problem: Problem, options: SearchOptions) -> Search:
    """Take SymNMF, unless the graph is disassortative."""
    below = 0
    if problem.k > 1 and problem.n_first is None:
        normalized = normalized_adjacency(problem.adjacency, SymNMFOptions().regularization)
        values = leading_eigenvectors(normalized, problem.k, spectrum="auto").values
        below = int(np.count_nonzero(values < 0))
    half = AVOIDED * (problem.k - 1)
    names = [AVOIDING] if below > half else [USUAL]
    if below and below == half:  # the sign of one eigenvalue, which may be noise, does not decide
        names = [USUAL, AVOIDING]
    searches = [METHODS[name].run(problem, options) for name in names]
    search = (
        searches[0]
        if len(searches) == 1
        else max(searches, key=lambda s: _likelihood(problem, s.memberships))
    )
    return replace(search, facts={**search.facts, "n_below_zero": below})


def checked_params(
    name: str, method_params: Mapping[str, Any] | None, choice: str, loop: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of a method and of its iterations; refuse those that it does not accept."""
    params = dict(method_params or {})
    METHODS.check_options(name, params)
    params |= iteration_params(METHODS, name, **loop)
    if choice != CHOICES[0] and not METHODS[name].row_maxima:
        raise not_accepted(
            name, f"choice={choice!r}", [key for key, one in METHODS.items() if one.row_maxima]
        )
    return params


def _anchor_entry(name: str, entry: Method) -> CommunityMethod:
    return CommunityMethod(
        _by_anchors(name),
        entry.summary,
        options=entry.options | (entry.shared & {"init"}),
        shared=entry.shared & {"tol", "max_iter", "callback", "checkpoint"},
        aliases=entry.aliases,
        convex=entry.kind == "convex",
        row_maxima=entry.kind == "convex" and "aggregate" not in entry.options,
    )


_MERIT_0 = _anchor_entry("merit-0", ANCHOR_METHODS["merit"])

METHODS: Registry[CommunityMethod] = Registry(
    "method",
    {
        "auto": CommunityMethod(_by_spectrum, "SymNMF, or smoothed-spa on disassortative graphs"),
        "symnmf": CommunityMethod(
            _by_symnmf,
            "the normalized adjacency matrix as H H' with nonnegative H",
            options=frozenset(SymNMFOptions.__dataclass_fields__),
            shared=frozenset({"tol", "max_iter", "callback"}),
            geometric=False,
        ),
        **{name: _anchor_entry(name, entry) for name, entry in ANCHOR_METHODS.items() if entry.signed},
        "merit-0": replace(
            _MERIT_0, summary="MERIT without row sparsity", options=_MERIT_0.options - {"lam"}
        ),
        "spoc": CommunityMethod(_by_spoc, "successive projections among all nodes", unreached=None),
        "geonmf": CommunityMethod(
            _by_geonmf,
            "clusters of the rows with the largest norms",
            options=frozenset(GeoNMFOptions.__dataclass_fields__),
            unreached=None,
        ),
    },
)
"""The methods of `MixedMembership`: SymNMF, anchor methods that accept signed points, SPOC and GeoNMF."""
