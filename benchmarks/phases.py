"""Phases of a HALS iteration on dense data, each alone and fused, at several numbers of threads.

``python -m benchmarks.phases --threads 1 4 16`` prints milliseconds and the gain over one thread. What gains
little limits the whole iteration: hand-overs, serial sums, memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._threads import threads
from nonneg.kernels.factor_update import CoordinateDescent, update_factor
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.products import inner_product, multiply

SHAPES = ((2000, 560, 30), (7000, 204, 12), (20000, 1000, 40))


def phases(n: int, m: int, k: int, dtype: Any) -> dict[str, Callable[[], Any]]:
    """Return the phases of the update of W, and the whole updates of both factors."""
    rng = np.random.default_rng(0)
    X, W, Ht = (rng.random(shape).astype(dtype) for shape in ((n, m), (n, k), (m, k)))
    update = CoordinateDescent(tuple(range(k)), 3, 0.1)
    of_H, of_W, cross = SharedGram(Ht.T @ Ht), SharedGram(W.T @ W), X @ Ht
    products, turned = np.empty((n, k), dtype), np.empty((m, k), dtype)
    return {
        "hand-over": lambda: inner_product(W, W),
        "X H'": lambda: multiply(X, Ht, products),
        "X' W": lambda: multiply(X, W, turned, turned=True),
        "rows of W": lambda: hals_passes(W, of_H, cross, max_passes=3, shrink=0.1),
        "update of W with X' W": lambda: update_factor(update, W, of_H, Ht, data=X, old=W, momentum=0.5),
        "update of H": lambda: update_factor(update, Ht, of_W, turned, old=Ht, momentum=0.5),
    }


def milliseconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median over calls that follow each other, as in a fit."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return 1e3 * float(np.median(taken))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    for dtype in (np.float64, np.float32):
        for shape in SHAPES:
            print(f"\n{np.dtype(dtype).name}, {shape[0]} x {shape[1]}, k = {shape[2]}")
            print(f"{'ms at threads:':24}" + "".join(f"{n:>16}" for n in options.threads))
            for name, work in phases(*shape, dtype).items():
                found = []
                for n_threads in options.threads:
                    with threads(n_threads):
                        found.append(milliseconds(work, options.repeats))
                print(f"{name:24}" + "".join(f"{ms:9.3f} ({found[0] / ms:4.1f})" for ms in found))


if __name__ == "__main__":
    main()
