"""What can be said about a consensus: how stable each component is, and what the consensus costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.consensus.result import RankConsensus, RestartTable

# A silhouette above 0.8 is what SigProfilerExtractor calls stable (Islam et al. 2022, Cell Genomics 2(11)).
STABLE = 0.8
# A consensus has a majority. Two local minima with half of the restarts each make tight clusters, whose
# silhouettes are near one, and either may be the consensus (docs/benchmarks/consensus.md).
MAJORITY = 0.5
# A consensus whose error is this much above that of the best restart no longer describes the data as well.
MAX_EXCESS = 0.05


def are_stable(found: RankConsensus) -> Any:
    """Tell which components restarts agree on: tight clusters of their own, in more than half of them."""
    return (found.stability >= STABLE) & (found.recurrence > MAJORITY)


def consensus_certificate(
    found: RankConsensus, restarts: RestartTable, *, resampled: bool = False
) -> Certificate:
    """Return the statements about the consensus of one rank."""
    rows = restarts.of(found.n_components)
    return Certificate(
        (
            *(_stability(found, at) for at in range(found.n_components)),
            _error(found, resampled),
            _converged(restarts.converged[rows]),
        )
    )


def _stability(found: RankConsensus, at: int) -> Statement:
    silhouette, share = float(found.stability[at]), float(found.recurrence[at])
    stable = bool(are_stable(found)[at])
    rare = share <= MAJORITY < STABLE <= silhouette
    # One cluster has no others to be compared with, and its measure is another one.
    has = "one minus the mean distance between its restarts is"
    if found.n_components > 1:
        has = "its cluster has a mean silhouette of"
    return Statement(
        f"stability-{at}",
        f"Component {at} {'is' if stable else 'is not'} stable: {has} "
        f"{silhouette:.2f} (threshold {STABLE}), {'but only' if rare else 'and'} {100 * share:.0f}% of "
        f"{found.n_restarts} restarts have a component in it{' (more than half needed)' if rare else ''}.",
        silhouette,
        STABLE,
        Verdict.HOLDS if stable else Verdict.FAILS,
        {"recurrence": share, "n_restarts": found.n_restarts},
    )


def _error(found: RankConsensus, resampled: bool) -> Statement:
    if resampled:
        sentence = "Restarts saw resampled data, so their errors cannot be compared with the consensus."
        return Statement("consensus-error", sentence, None, MAX_EXCESS, Verdict.NOT_VERIFIABLE)
    best = float(np.sqrt(2.0 * max(found.best_loss, 0.0)))
    if best == 0.0 or not np.isfinite(found.error / best):
        sentence = "The best restart is exact up to rounding, so errors cannot be compared."
        return Statement("consensus-error", sentence, None, MAX_EXCESS, Verdict.NOT_VERIFIABLE)
    excess = found.error / best - 1.0
    return Statement(
        "consensus-error",
        f"The error of the consensus is {100 * abs(excess):.2g}% {'above' if excess >= 0 else 'below'} that "
        f"of the best of {found.n_restarts} restarts (threshold {100 * MAX_EXCESS:.0f}%).",
        excess,
        MAX_EXCESS,
        Verdict.HOLDS if excess <= MAX_EXCESS else Verdict.FAILS,
        {"error": found.error, "best_restart": best},
    )


def _converged(converged: np.ndarray) -> Statement:
    share = float(np.mean(converged))
    return Statement(
        "restarts-converged",
        f"{int(np.sum(converged))} of {len(converged)} restarts reached the tolerance tol before max_iter.",
        share,
        1.0,
        Verdict.HOLDS if share == 1.0 else Verdict.FAILS,
        {"n_restarts": len(converged)},
    )
