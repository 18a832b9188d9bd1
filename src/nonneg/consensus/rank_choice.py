"""Which rank to recommend, and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nonneg.consensus.result import RankConsensus

# The least stable component of a rank that is too large has a silhouette far below that of the best rank.
# Chosen on planted programs, on other draws than those that report (docs/reproduced/studies/consensus-rank).
CLOSE = 0.1
# A mean silhouette of at least 0.8 is what SigProfilerExtractor calls stable (Islam et al. 2022).
STABLE = 0.8


def recommended(found: Sequence[RankConsensus]) -> tuple[int, str]:
    """Return the recommended rank with its reason."""
    if len(found) == 1:
        return found[0].n_components, f"{found[0].n_components} components were asked for."
    least = np.array([float(each.stability.min()) for each in found])
    at = int(np.flatnonzero(least >= least.max() - CLOSE)[-1])
    best = found[at]
    reason = (
        f"{best.n_components} is the largest of {len(found)} ranks whose components are all about as stable "
        f"as those of the most stable rank: its least stable one has a silhouette of {least[at]:.2f}; the "
        f"highest of all ranks is {least.max():.2f}."
    )
    if best.silhouette < STABLE:
        reason += f" Its mean silhouette of {best.silhouette:.2f} is below {STABLE}: hardly any agreement."
    elif at == len(found) - 1:
        reason += " It is the largest candidate, so that larger ones may be stable too."
    return best.n_components, reason
