"""Recommended rank of a consensus: the largest one that is as stable as the most stable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nonneg.consensus.result import RankConsensus


def recommended(ranks: Sequence[RankConsensus]) -> tuple[int, str]:
    """Return the recommended rank with its reason."""
    # The mean silhouette is the stability of cNMF (Kotliar et al. 2019, eLife 8, e43803); "as stable" is the
    # one-standard-error rule, over restarts, on silhouettes to the two digits that are shown.
    if len(ranks) == 1:
        return ranks[0].n_components, f"{ranks[0].n_components} components were requested."
    numbers = [each.n_components for each in ranks]
    silhouettes = np.round([each.silhouette for each in ranks], 2)
    errors = np.array([each.silhouette_error for each in ranks])
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
            f"Mean silhouettes: {curve}. More components may still be useful, but restarts agree less."
        )
    return rank, (
        f"{rank} components are as stable as those of the most stable of {len(ranks)} ranks, up to a "
        f"standard error, and more are not. Mean silhouettes: {curve}."
    )
