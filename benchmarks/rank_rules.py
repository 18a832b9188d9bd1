"""How often the rank of planted data is found: the largest ratio of singular values, and the last large one.

Run with ``python -m benchmarks.rank_rules``; it prints a table, a row a kind of data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nonneg import estimate_rank
from nonneg.datasets import circular_cones

RANKS, N_DRAWS = (3, 5, 8, 12, 20), 20


def planted(rng: np.random.Generator) -> Iterator[tuple[str, Any, int]]:
    """Draw matrices of 300 x 100 with components of unequal strength, and cones."""
    for draw in range(N_DRAWS):
        for rank in RANKS:
            for shape, factors in ((0.2, "sparse factors"), (1.0, "dense factors")):
                W = rng.gamma(shape, size=(300, rank)) * rng.uniform(0.3, 1.7, size=rank)
                mean = W @ rng.gamma(shape, size=(rank, 100))
                yield f"counts, {factors}", rng.poisson(5 * mean / mean.mean()).astype(float), rank
                for noise in (0.1, 0.3):
                    noisy = mean + noise * mean.std() * rng.normal(size=mean.shape)
                    yield f"noise {noise}, {factors}", np.maximum(noisy, 0.0), rank
        yield "8 cones, noise 0.7", circular_cones(600, 200, 8, size_angle=0.3, noise=0.7, rng=draw).X, 8


def main() -> None:
    """Count and print."""
    right: dict[str, list[tuple[bool, bool]]] = {}
    for kind, X, rank in planted(np.random.default_rng(1)):
        k_min = 4 if "cones" in kind else 2
        found = [
            estimate_rank(X, k_min=k_min, method_params={"tolerance": tolerance}, n_jobs=1).rank
            for tolerance in (0, 0.5)
        ]
        right.setdefault(kind, []).append((found[0] == rank, found[1] == rank))
    for kind, pairs in sorted(right.items()):
        largest, last = np.mean(pairs, axis=0)
        print(f"{kind:28} matrices {len(pairs):4}  largest ratio {largest:.2f}  last large ratio {last:.2f}")


if __name__ == "__main__":
    main()
