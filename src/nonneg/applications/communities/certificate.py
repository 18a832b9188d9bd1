"""What is known about the communities."""

from __future__ import annotations

from nonneg.applications.communities.eigenvectors import Eigenpairs
from nonneg.applications.communities.methods import METHODS, Search
from nonneg.certificates.certificate import Certificate, Statement, Verdict

# Residuals of eigenvectors above this share of the largest eigenvalue are more than rounding.
PRECISE = 1e-10
# The part of the coordinates below zero that rounding explains.
INSIDE = 1e-6


def community_certificate(search: Search, n_nodes: int, n_lost: int, n_isolated: int) -> Certificate:
    """Collect the statements."""
    reached = _reached(search, n_nodes, n_lost, n_isolated)
    if not METHODS[search.method].geometric:
        return Certificate((reached,)).with_statements(search.selection.certificate)
    pairs = search.pairs
    statements = [_eigenvectors(pairs)]
    if pairs.next_value is not None:
        statements.append(_gap(pairs, pairs.next_value))
    statements += [reached, _inside(search)]
    if search.kept is not None and search.n_seen < len(search.kept):
        statements.append(_candidates(search.n_seen, len(search.kept)))
    return Certificate(tuple(statements)).with_statements(search.selection.certificate)


def _eigenvectors(pairs: Eigenpairs) -> Statement:
    return Statement(
        "eigenvectors",
        f"The {len(pairs.values)} leading eigenvectors satisfy A v = value v up to {pairs.residual:.2g} of "
        "the largest eigenvalue.",
        pairs.residual,
        PRECISE,
        Verdict.HOLDS if pairs.residual <= PRECISE else Verdict.FAILS,
        {"largest_value": float(pairs.values[0]), "last_value": float(pairs.values[-1])},
    )


def _gap(pairs: Eigenpairs, following: float) -> Statement:
    last = abs(float(pairs.values[-1]))
    gap = (last - abs(following)) / last
    sentence = (
        f"The last eigenvalue that was used ({pairs.values[-1]:.4g}) exceeds the next ({following:.4g}) "
        f"in magnitude by {gap:.1%} of itself; with a gap of 0, the eigenvectors would not be determined."
    )
    if gap < 0:
        sentence = (
            f"The last eigenvalue that was used ({pairs.values[-1]:.4g}) is no larger in magnitude than a "
            f"negative one that was not ({following:.4g}): it may be noise. Choose the leading eigenvalues "
            f"with spectrum=."
        )
    return Statement(
        "spectral-gap",
        sentence,
        gap,
        1e-3,
        Verdict.HOLDS if gap > 1e-3 else Verdict.FAILS,
        {"next_value": following},
    )


def _reached(search: Search, n_nodes: int, lost: int, n_isolated: int) -> Statement:
    share = (lost + n_isolated) / n_nodes
    what = "The eigenvectors reach" if METHODS[search.method].geometric else "The communities reach"
    sentence = (
        f"{what} {n_nodes - lost - n_isolated} of {n_nodes} nodes; {lost} have no "
        f"coordinate above rounding, and {n_isolated} have no edges."
    )
    verdict = Verdict.HOLDS if share == 0 else Verdict.FAILS
    return Statement(
        "reached-nodes", sentence, share, 0.0, verdict, {"unreached": lost, "isolated": n_isolated}
    )


def _inside(search: Search) -> Statement:
    clipped = search.memberships.clipped
    return Statement(
        "inside-cone",
        f"{clipped:.2%} of the coordinates with respect to the pure nodes were negative and set to zero; 0 "
        "would mean that the pure nodes explain all others exactly.",
        clipped,
        INSIDE,
        Verdict.HOLDS if clipped <= INSIDE else Verdict.FAILS,
    )


def _candidates(n_seen: int, n_kept: int) -> Statement:
    return Statement(
        "candidates",
        f"Pure nodes were searched for among {n_seen} candidates of {n_kept} nodes: extreme ones and an even "
        "sample. It is not known whether a search among all would find the same.",
        n_seen / n_kept,
        1.0,
        Verdict.NOT_VERIFIABLE,
        {"candidates": n_seen, "kept": n_kept},
    )
