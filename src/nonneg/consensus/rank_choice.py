"""Which rank to recommend, and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nonneg.consensus.result import RankConsensus

# The least stable component of a rank that is too large has a silhouette this far below that of the best
# rank; resampling lowers the silhouettes of components that fit noise further. Chosen on planted programs, on
# other draws than those that report (docs/reproduced/studies/consensus).
CLOSE, CLOSE_RESAMPLED = 0.15, 0.25
# A component of a stable rank that lowers the squared error by less than this multiple of what components of
# larger ranks do fits noise, however stably. On the same draws 1.5 to 3 do about equally well; 1.5 is the
# only one of them that keeps all five stable programs of the blood cells of `load_pbmc3k`.
GAIN = 1.5
# A mean silhouette of at least 0.8 is what SigProfilerExtractor calls stable (Islam et al. 2022).
STABLE = 0.8


def recommended(found: Sequence[RankConsensus], *, resampled: bool = False) -> tuple[int, str]:
    """Return the recommended rank with its reason."""
    if len(found) == 1:
        return found[0].n_components, f"{found[0].n_components} components were requested."
    least = np.array([float(each.stability.min()) for each in found])
    stable = np.flatnonzero(least >= least.max() - (CLOSE_RESAMPLED if resampled else CLOSE)).tolist()
    dropped = []
    while len(stable) > 1 and _fits_noise(found, stable[-1]):
        dropped.append(stable.pop())
    best, at = found[stable[-1]], stable[-1]
    largest = f"{best.n_components} is the largest of {len(found)} ranks whose components are"
    if dropped:
        largest = f"The components of rank {best.n_components} are"
    reason = (
        f"{largest} all about as stable as those of the most stable rank: its least stable one has a "
        f"silhouette of {least[at]:.2f}; the highest of all ranks is {least.max():.2f}."
    )
    if dropped:
        ranks = " and ".join(str(found[each].n_components) for each in reversed(dropped))
        reason += (
            f" {ranks} would be as stable, but lower the error hardly more per component than still larger "
            "ranks do."
        )
    if best.silhouette < STABLE:
        reason += f" Its mean silhouette of {best.silhouette:.2f} is below {STABLE}: restarts hardly agree."
    elif at == len(found) - 1:
        reason += " It is the largest candidate, so larger ones may also be stable."
    return best.n_components, reason


def _fits_noise(found: Sequence[RankConsensus], at: int) -> bool:
    """Tell whether a rank lowers the squared error hardly more per component than larger ones."""
    if at in (0, len(found) - 1):
        return False

    def gain(start: int, stop: int) -> float:
        fall = found[start].error ** 2 - found[stop].error ** 2
        return fall / (found[stop].n_components - found[start].n_components)

    return gain(at - 1, at) < GAIN * gain(at, len(found) - 1)
