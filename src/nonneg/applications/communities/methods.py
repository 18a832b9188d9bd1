"""The methods that find pure nodes and memberships, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nonneg._random import Seed
from nonneg._registry import Registry
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.communities.candidates import (
    MANY_NODES,
    N_CANDIDATES,
    candidate_nodes,
    energetic_nodes,
)
from nonneg.applications.communities.eigenvectors import Eigenpairs
from nonneg.applications.communities.geonmf import GeoNMFOptions, geonmf
from nonneg.applications.communities.recovery import Memberships, recover
from nonneg.applications.communities.spoc import as_selection, spoc
from nonneg.applications.method_entries import ApplicationMethod
from nonneg.certificates.certificate import Certificate
from nonneg.exceptions import InvalidParameterError
from nonneg.separable.certificate import span_statement
from nonneg.separable.registry import METHODS as ANCHOR_METHODS
from nonneg.separable.registry import Method, split_params
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


@dataclass(frozen=True)
class Search:
    """What a method finds."""

    selection: SelectionResult  # the pure nodes, as rows of the eigenvectors
    memberships: Memberships  # of all nodes
    kept: IntArray | None  # the nodes that hold the energy; None where the method looks at all
    n_seen: int  # among how many nodes it looked
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else it reports


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
    """A way to find communities: ``run(pairs, degrees, options)`` returns a `Search`."""

    spectrum: str = "auto"  # which eigenvalues it takes by default
    # What its authors give to nodes that the eigenvectors do not reach; None leaves what comes out.
    unreached: str | None = "mean"
    convex: bool = False  # whether `n_candidates` matters
    row_maxima: bool = False  # whether `choice` matters


def _by_anchors(name: str) -> Callable[[Eigenpairs, FloatArray, SearchOptions], Search]:
    method = "merit" if name == "merit-0" else name
    entry = ANCHOR_METHODS.find(method)
    convex = entry.kind == "convex"

    def run(pairs: Eigenpairs, degrees: FloatArray, options: SearchOptions) -> Search:
        k = len(pairs.values)
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
        memberships = recover(pairs.vectors, vertices(pairs.vectors, found), options.recovery)
        return Search(found, memberships, kept, len(rows))

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


def _by_spoc(pairs: Eigenpairs, degrees: FloatArray, options: SearchOptions) -> Search:
    found, memberships = spoc(pairs.vectors, len(pairs.values))
    return Search(replace(found, method="spoc"), memberships, None, len(pairs.vectors))


def _by_geonmf(pairs: Eigenpairs, degrees: FloatArray, options: SearchOptions) -> Search:
    choices = GeoNMFOptions(**options.params)
    found = geonmf(pairs.values, pairs.vectors, degrees, options=choices, rng=options.rng)
    facts = {
        "condition": found.condition,
        "n_rounds": found.n_rounds,
        "n_nearly_pure": found.n_nearly_pure,
    }
    return Search(as_selection(found.pure, "geonmf"), found.memberships, None, len(pairs.vectors), facts)


def _anchor_entry(name: str, entry: Method) -> CommunityMethod:
    return CommunityMethod(
        _by_anchors(name),
        entry.summary,
        options=entry.options | (entry.shared & {"init"}),
        shared=entry.shared & {"tol", "max_iter", "callback", "checkpoint"},
        aliases=entry.aliases,
        # As published, all eigenvalues of largest magnitude lead.
        spectrum="magnitude" if name in AS_PUBLISHED else "auto",
        convex=entry.kind == "convex",
        row_maxima=entry.kind == "convex" and "aggregate" not in entry.options,
    )


_MERIT_0 = _anchor_entry("merit-0", ANCHOR_METHODS["merit"])

METHODS: Registry[CommunityMethod] = Registry(
    "method",
    {
        **{name: _anchor_entry(name, entry) for name, entry in ANCHOR_METHODS.items() if entry.signed},
        "merit-0": replace(
            _MERIT_0, summary="MERIT without row sparsity", options=_MERIT_0.options - {"lam"}
        ),
        "spoc": CommunityMethod(
            _by_spoc, "successive projections among all nodes", spectrum="algebraic", unreached=None
        ),
        "geonmf": CommunityMethod(
            _by_geonmf,
            "clusters of the rows with the largest norms",
            options=frozenset(GeoNMFOptions.__dataclass_fields__),
            spectrum="algebraic",
            unreached=None,
        ),
    },
)
"""The methods of `MixedMembership`: anchor methods that accept signed points, SPOC and GeoNMF."""
