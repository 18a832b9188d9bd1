"""Time and accuracy of `estimate_rank`: `python -m benchmarks.rank_estimate [--draws N]`.

Cone data of the paper (1600 features, 40 cones, size angle 0.3, k_min=11) and a sparse matrix of
100000 x 20000; one line a case, with the shares of draws that gave 40, seconds an estimate, and the memory
beyond that of the data.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
from reproduction.data import text_like

from nonneg import estimate_rank
from nonneg.datasets import circular_cones

CASES = [(0.1, 2000), (0.1, 5000), (0.5, 5000), (0.5, 10_000)]


def peak() -> float:
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def timed(X: Any, **options: Any) -> tuple[Any, float, float]:
    """Return the estimate, its seconds and by how many MB the peak of the memory rose."""
    before, started = peak(), time.perf_counter()
    found = estimate_rank(X, **options)
    return found, time.perf_counter() - started, peak() - before


def main() -> None:
    """Run the cases and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--skip-sparse", action="store_true")
    options = parser.parse_args()
    for noise, n_samples in CASES:
        ranks, seconds = [], []
        for draw in range(options.draws):
            rng = np.random.default_rng(draw)
            X = circular_cones(n_samples, size_angle=0.3, rng=rng).X
            X = np.maximum(X + noise * rng.standard_normal(X.shape), 0.0).astype(options.dtype)
            found, took, _ = timed(X, k_min=11, k_max=64)
            ranks.append(found.rank)
            seconds.append(took)
        right = np.mean(np.array(ranks) == 40)
        print(
            f"cones, noise {noise}, {n_samples} points: 40 in {100 * right:.0f}% of {options.draws} draws, "
            f"{np.median(seconds):.2f} s each",
            flush=True,
        )
    if not options.skip_sparse:
        X = text_like(100_000, 20_000, 40, mean_length=100.0, rng=0, dtype=options.dtype).X
        for normalize in (None, "l2"):
            found, took, more = timed(X, normalize=normalize)
            print(
                f"sparse 100000 x 20000, {X.nnz} nonzeros, normalize={normalize}: {took:.1f} s, "
                f"{more:.0f} MB beyond the data, rank {found.rank}",
                flush=True,
            )


if __name__ == "__main__":
    main()
