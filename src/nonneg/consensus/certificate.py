"""Certificate of a consensus: which components are stable, what it costs, and the recommended rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg.certificates.certificate import Certificate, Statement, Verdict, verdict_of
from nonneg.consensus.result import RankConsensus, RestartTable

# A silhouette above 0.8 is what SigProfilerExtractor calls stable (Islam et al. 2022, Cell Genomics 2(11)).
STABLE = 0.8
# A consensus has a majority. Two local minima with half of the restarts each make tight clusters, whose
# silhouettes are near one, and either may be the consensus (docs/benchmarks/consensus.md).
MAJORITY = 0.5


def are_stable(consensus: RankConsensus) -> Any:
    """Tell which components restarts agree on: tight clusters of their own, in more than half of them."""
    # The two digits that are shown decide: 0.80 is not called less than 0.8.
    return (np.round(consensus.stability, 2) >= STABLE) & (consensus.recurrence > MAJORITY)


def consensus_certificate(
    consensus: RankConsensus, restarts: RestartTable, *, resampled: bool = False
) -> Certificate:
    """Return the statements about the consensus of one rank."""
    own = restarts.of(consensus.n_components)
    converged = restarts.converged[own]
    share = float(np.mean(converged))
    reached = Statement(
        "restarts-converged",
        f"{int(np.sum(converged))} of {len(converged)} restarts reached the tolerance tol before max_iter.",
        share,
        1.0,
        verdict_of(share == 1.0),
        {"n_restarts": len(converged)},
    )
    error = _error(consensus, float(restarts.loss[own].max()), resampled)
    return Certificate((_stability(consensus), error, reached))


def _stability(consensus: RankConsensus) -> Statement:
    k, stability, recurrence = consensus.n_components, consensus.stability, consensus.recurrence
    unstable = np.flatnonzero(~are_stable(consensus)).tolist()
    # One cluster has no others to be compared with, and its measure is another one.
    measure = "silhouette" if k > 1 else "one minus the mean distance between restarts"
    listed = "; ".join(
        f"{at} ({measure} {stability[at]:.2f}, in {100 * recurrence[at]:.0f}% of the restarts)"
        for at in unstable
    )
    exceptions = (
        f" Not stable: component{'s' if len(unstable) > 1 else ''} {listed}."
        if 0 < len(unstable) < max(k, 2)
        else ""
    )
    return Statement(
        "stability",
        f"Stable components: {k - len(unstable)} of {k} ({measure} at least {STABLE}, and found by more than "
        f"half of {consensus.n_restarts} restarts).{exceptions}",
        float(k - len(unstable)),
        float(k),
        Verdict.FAILS if unstable else Verdict.HOLDS,
        {
            "unstable": ", ".join(map(str, unstable)),
            "least_silhouette": float(stability.min()),
            "least_recurrence": float(recurrence.min()),
            "n_restarts": consensus.n_restarts,
        },
    )


def _error(consensus: RankConsensus, worst_loss: float, resampled: bool) -> Statement:
    best, worst = (float(np.sqrt(2.0 * max(loss, 0.0))) for loss in (consensus.best_loss, worst_loss))
    if resampled or best == 0.0 or not np.isfinite(consensus.error / best):
        sentence = "The best restart is exact up to rounding, so errors cannot be compared."
        if resampled:
            sentence = "Restarts saw resampled data, so their errors cannot be compared with the consensus."
        return Statement("consensus-error", sentence, None, None, Verdict.NOT_VERIFIABLE)
    excess, most = consensus.error / best - 1.0, worst / best - 1.0
    size = f"{abs(excess):.1%} {'above' if excess >= 0 else 'below'}" if abs(excess) >= 5e-4 else "about"
    # The digits that are shown decide.
    holds = round(excess, 3) <= round(most, 3)
    return Statement(
        "consensus-error",
        f"The error of the consensus is {size} that of the best of {consensus.n_restarts} restarts; that of "
        f"the worst is {most:.1%} above{'' if holds else ', so that each of them fits the data better'}.",
        excess,
        most,
        verdict_of(holds),
        {"error": consensus.error, "best_restart": best, "worst_restart": worst},
    )


def recommended(ranks: Sequence[RankConsensus]) -> tuple[int, str]:
    """Return the recommended rank with its reason."""
    # The mean silhouette is the stability of cNMF (Kotliar et al. 2019, eLife 8, e43803); "as stable" is the
    # one-standard-error rule, over restarts, on silhouettes to the two digits that are shown.
    if len(ranks) == 1:
        return ranks[0].n_components, "It was the only number that was tried."
    numbers = [entry.n_components for entry in ranks]
    silhouettes = np.round([entry.silhouette for entry in ranks], 2)
    errors = np.array([entry.silhouette_error for entry in ranks])
    best = int(np.argmax(silhouettes))
    as_stable = silhouettes >= silhouettes[best] - np.hypot(errors, errors[best])
    at = int(np.flatnonzero(as_stable)[-1])
    rank = numbers[at]
    curve = ", ".join(f"{k}: {value:.2f}" for k, value in zip(numbers, silhouettes, strict=True))
    if at == len(ranks) - 1:
        return rank, (
            f"No number stands out: the largest candidate, {rank} components, is as stable as any. Mean "
            f"silhouettes: {curve}. Try larger ones, such as {rank}:{2 * rank}."
        )
    if at == 0:
        return rank, (
            f"No number stands out: stability falls from the smallest candidate, {rank} components, on. "
            f"Mean silhouettes: {curve}. {'Try smaller numbers, too. ' * (rank > 2)}Larger ones may "
            "still be useful, but restarts agree less."
        )
    if silhouettes[best] < STABLE:
        return rank, (
            f"No number stands out: no mean silhouette reaches {STABLE}, from which on components are called "
            f"stable. Mean silhouettes: {curve}. {rank} components are as stable as any, and more are not."
        )
    return rank, (
        f"{rank} components are as stable as those of the most stable of {len(ranks)} ranks, up to a "
        f"standard error, and more are not. Mean silhouettes: {curve}."
    )


def lowest_akaike(ranks: Sequence[RankConsensus], shape: tuple[int, int]) -> tuple[int, str]:
    """Return the rank with the lowest Akaike criterion for Poisson counts of a shape, with its reason."""
    if len(ranks) == 1:
        return recommended(ranks)
    # For Kullback-Leibler the square of the error is twice the divergence: the Poisson deviance. A component
    # has a weight in every row and in every column, less one, because only their product matters.
    criteria = {
        entry.n_components: entry.error**2 + 2 * entry.n_components * (sum(shape) - 1) for entry in ranks
    }
    rank = min(criteria, key=criteria.__getitem__)
    at_end = rank in (ranks[0].n_components, ranks[-1].n_components) and 1 < rank < min(shape)
    curve = ", ".join(f"{k}: {value:.0f}" for k, value in criteria.items())
    return rank, (
        f"{rank} {'components have' if rank > 1 else 'component has'} the lowest Akaike criterion (deviance "
        f"of the consensus plus twice the number of parameters) of {len(ranks)} ranks."
        f"{' The range ends here: try a larger range.' if at_end else ''} Criteria: {curve}."
    )
