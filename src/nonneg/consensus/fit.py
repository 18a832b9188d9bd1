"""From data to the consensus of every candidate rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nonneg._devices import device_work
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg._warnings import warn_user
from nonneg.certificates.bounds import upper
from nonneg.consensus.combine import ConsensusOptions, combine, table_of
from nonneg.consensus.genes import check_columns
from nonneg.consensus.resampling import check_resampling
from nonneg.consensus.restarts import RestartData, RestartOptions, run_all
from nonneg.consensus.result import RankConsensus, RestartTable
from nonneg.data import DataMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError, NonnegWarning
from nonneg.iteration import Progress
from nonneg.iteration.checkpoint import checkpoint_key
from nonneg.solvers.registry import choose_solver


@dataclass(frozen=True)
class ConsensusProblem:
    """Data, candidates and options."""

    counts: DataMatrix  # X as it was given
    data: DataMatrix  # with scaled columns
    scale: FloatArray | None
    ranks: Sequence[int]
    n_init: int
    restarts: RestartOptions
    combining: ConsensusOptions

    def check(self, names: Sequence[Any] | None, caller: str) -> None:
        """Reject what cannot work before anything runs."""
        n_rows, n_columns = self.data.shape
        if self.ranks[-1] > min(n_rows, n_columns):
            raise InvalidParameterError(
                f"n_components={self.ranks[-1]} is larger than the smaller side of X (n_samples={n_rows}, "
                f"n_features={n_columns}): more components than that cannot be distinguished. Use at most "
                f"{min(n_rows, n_columns)}; a useful number lies well below."
            )
        check_columns(self.counts, names, caller)
        check_resampling(self.counts, self.restarts.resample)
        choose_solver("auto", self.data, self.ranks[0], self.restarts.beta)

    def root_and_folder(self, seed: Seed, folder: Path | None) -> tuple[int, Path | None]:
        """Return where seeds come from and where restarts are kept."""
        if folder is None:
            return int(generator(seed).integers(2**62)), None
        key = checkpoint_key(repr(self.restarts), str(self.data.dtype), self.scale, fingerprint(self.data))
        # Without a seed it follows from data and parameters, so that the same call resumes.
        root = int(key[:15], 16) if seed is None else int(generator(seed).integers(2**62))
        return root, folder / key[:16] / f"{root:016x}"

    def solve(
        self,
        *,
        seed: Seed,
        folder: Path | None,
        n_jobs: int | None,
        verbose: int,
        callback: Callable[[Progress], bool | None] | None,
        caller: str,
    ) -> tuple[list[RankConsensus], RestartTable]:
        """Run the restarts and combine those of each rank."""
        root, place = self.root_and_folder(seed, folder)
        with device_work(self.data):
            restarts = run_all(
                RestartData.of(self.counts, self.data, self.scale, root, self.restarts.beta),
                self.ranks,
                self.n_init,
                self.restarts,
                root=root,
                folder=place,
                n_jobs=n_jobs,
                verbose=verbose,
                callback=callback,
                caller=caller,
            )
        if not restarts:
            raise InvalidParameterError(
                "callback ended the fit before two restarts of a rank were done, but a consensus needs two."
            )
        with threads(n_jobs), device_work(self.data):
            beta = self.restarts.beta
            ranks = [combine(self.data, restarts[k], self.combining, beta=beta) for k in sorted(restarts)]
        return ranks, table_of(restarts)


def candidates_of(n_components: Any, caller: str) -> list[int]:
    """Return the candidates in ascending order."""
    values = np.asarray(list(n_components) if np.iterable(n_components) else [n_components])
    whole = values.size > 0 and values.ndim == 1 and values.dtype.kind in "iu" and (values >= 1).all()
    if not whole:
        raise InvalidParameterError(
            f"The 'n_components' parameter of {caller} must be an integer of at least 1, or a list or range "
            f"of them. Got {n_components!r} instead."
        )
    return sorted({int(value) for value in values})


def warn_of_result(consensus: RankConsensus, restarts: RestartTable, options: Any) -> None:
    """Warn if `max_iter` ended more than a tenth of the restarts of the result, or if they hardly agree."""
    k, threshold = consensus.n_components, options.density_threshold
    share = float(np.mean(restarts.converged[restarts.of(k)]))
    if options.tol > 0 and share < 0.9:
        warn_user(
            f"{100 * (1 - share):.0f}% of the restarts with {k} components reached the maximum number of "
            f"iterations before the tolerance tol was reached. Raise max_iter (now {options.max_iter}) or "
            f"tol (now {options.tol:g}).",
            ConvergenceWarning,
        )
    n_dense = int(np.sum(consensus.density < threshold))
    if n_dense < 2 * k and threshold < 2.0:
        lowest = float(np.sort(consensus.density)[: 2 * k].max())
        warn_user(
            f"density_threshold={threshold:g} leaves {n_dense} of {len(consensus.density)} components for "
            f"{k} clusters: no outliers were removed at n_components={k}. Its restarts hardly agree; {2 * k} "
            f"components have a density of at most {upper(lowest, 3)}.",
            NonnegWarning,
        )
