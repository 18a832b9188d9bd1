"""Certificate of communities: eigenvectors, reached nodes, and why this method and this number."""

from __future__ import annotations

from typing import Any

from nonneg.applications.communities.eigenvectors import Eigenpairs
from nonneg.applications.communities.methods import ERRORS_AHEAD, METHODS, Search
from nonneg.applications.communities.number import EIGENGAP
from nonneg.certificates.bounds import upper
from nonneg.certificates.certificate import Certificate, Statement, Verdict

# Residuals of eigenvectors above this share of the largest eigenvalue are more than rounding.
PRECISE = 1e-10
# The part of the coordinates below zero that rounding explains.
INSIDE = 1e-6


def community_certificate(
    search: Search, n_nodes: int, n_lost: int, n_isolated: int, count: dict[str, Any] | None
) -> Certificate:
    """Collect the statements."""
    statements = [_reached(search, n_nodes, n_lost, n_isolated)]
    if METHODS[search.method].geometric:
        statements = [_eigenvectors(search.pairs), *statements, _inside(search)]
    if len(search.scores) > 1:
        statements.append(_method(search))
    if count is not None and count["estimates"]:
        statements.append(_number(count))
    return Certificate(tuple(statements)).with_statements(search.selection.certificate)


def _method(search: Search) -> Statement:
    scores = search.scores
    rival = max((name for name in scores if name != search.method), key=scores.__getitem__)
    advantage, error = scores[search.method] - scores[rival], search.errors[rival]
    scored = ", ".join(f"{name} {score:.4g}" for name, score in scores.items())
    sentence = (
        "A tenth of the edges was hidden. Their log-likelihood per edge, relative to a single community, "
        f"given the others: {scored}. The difference to {rival} is {abs(advantage):.3g}, its standard error "
        f"{error:.2g}."
    )
    if abs(advantage) <= ERRORS_AHEAD * error:
        sentence += f" They do not differ beyond {ERRORS_AHEAD:g} of these, and {search.method} comes first."
    verdict = Verdict.HOLDS if advantage > ERRORS_AHEAD * error else Verdict.NOT_VERIFIABLE
    sentence += " A single community explains them no worse." * (
        scores[search.method] <= ERRORS_AHEAD * search.errors[search.method]
    )
    return Statement(
        "method", sentence, advantage, ERRORS_AHEAD * error, verdict, {**scores, "standard_error": error}
    )


def _number(count: dict[str, Any]) -> Statement:
    quantities = {f"{name} estimate": float(k) for name, k in count["estimates"].items()}
    gap = float(count["curves"][EIGENGAP][count["n_communities"] - 1])
    quantities |= zip(("ahead", "standard_error"), count["ahead"], strict=False)
    verdict = Verdict.HOLDS if count["decided"] else Verdict.FAILS
    return Statement("number-of-communities", count["reason"], gap, None, verdict, quantities)


def _eigenvectors(pairs: Eigenpairs) -> Statement:
    sentence = (
        f"The {len(pairs.values)} leading eigenvectors satisfy A v = value v up to "
        f"{upper(pairs.residual, 2)} of the largest eigenvalue."
    )
    verdict = Verdict.HOLDS if pairs.residual <= PRECISE else Verdict.FAILS
    quantities = {"largest_value": float(pairs.values[0]), "last_value": float(pairs.values[-1])}
    return Statement("eigenvectors", sentence, pairs.residual, PRECISE, verdict, quantities)


def _reached(search: Search, n_nodes: int, lost: int, n_isolated: int) -> Statement:
    share = (lost + n_isolated) / n_nodes
    what = "The eigenvectors reach" if METHODS[search.method].geometric else "The communities reach"
    missing = [(lost, "no coordinate above rounding"), (n_isolated, "no edges")]
    rest = ", and ".join(
        f"{count} {'has' if count == 1 else 'have'} {why}" for count, why in missing if count
    )
    reached = f"{n_nodes - lost - n_isolated} of {n_nodes} nodes; {rest}" if rest else f"all {n_nodes} nodes"
    sentence = f"{what} {reached}."
    verdict = Verdict.HOLDS if share == 0 else Verdict.FAILS
    return Statement(
        "reached-nodes", sentence, share, 0.0, verdict, {"unreached": lost, "isolated": n_isolated}
    )


def _inside(search: Search) -> Statement:
    clipped = abs(search.memberships.clipped)  # no minus zero
    sentence = (
        f"{clipped:.2%} of the coordinates with respect to the pure nodes were negative and set to zero; 0 "
        "would mean that the pure nodes explain all others exactly."
    )
    verdict = Verdict.HOLDS if clipped <= INSIDE else Verdict.FAILS
    return Statement("inside-cone", sentence, clipped, INSIDE, verdict)
