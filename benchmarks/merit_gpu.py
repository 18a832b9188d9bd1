"""Anchors on a GPU: the default on a hundred thousand and on a million points, its time and its memory.

Run with ``python -m benchmarks.merit_gpu`` on a machine with an NVIDIA GPU and PyTorch. Every line printed is
a JSON record. The claims: on a million points (40 anchors, 50 features, 10.5 dB, float32) the default finds
all anchors in at most 4 minutes and 16 GB of GPU memory, and MERIT as published has the same coefficients as
on the CPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

N_FEATURES, N_ANCHORS, SNR, SEED = 50, 40, 10.5, 20240601


def make(n_points: int) -> Any:
    """Return generated points in float32."""
    from nonneg.datasets import separable_dirichlet

    return separable_dirichlet(n_points, N_FEATURES, N_ANCHORS, snr=SNR, rng=SEED, dtype="float32")


def same_as_on_the_cpu(n_points: int = 2_000) -> Iterator[dict[str, Any]]:
    """Compare runs with those on the CPU."""
    import torch

    from nonneg import select_anchors

    X = make(n_points).X
    for method in ("merit", "merit-exact", "auto"):
        host = select_anchors(X, N_ANCHORS, method=method)
        device = select_anchors(torch.tensor(X, device="cuda"), N_ANCHORS, method=method)
        record = {"what": "check", "method": method, "n_points": n_points}
        if method == "merit":
            record["coefficients_differ"] = float(abs(host.coefficients - device.coefficients).max())
        yield record | {"same_anchors": bool(set(host.anchors) == set(device.anchors))}


def default(
    n_points: int, methods: tuple[str, ...] = ("auto", "merit-exact", "snpa", "spa")
) -> Iterator[Any]:
    """Run the default, and single methods beside it."""
    import torch

    from nonneg import select_anchors

    data = make(n_points)
    X, truth = torch.tensor(data.X, device="cuda"), set(data.anchors.tolist())
    for method in methods:
        params = {"n_explained": 5000} if method == "merit-exact" else None
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        started = time.perf_counter()
        found = select_anchors(X, N_ANCHORS, method=method, method_params=params)
        torch.cuda.synchronize()
        record = {
            "what": "default" if method == "auto" else "method", "method": method, "n_points": n_points,
            "seconds": time.perf_counter() - started, "right": len(truth & set(found.anchors.tolist())),
            "gpu_gb": 1e-9 * torch.cuda.max_memory_allocated(), "returned": found.method,
        }  # fmt: skip
        if method == "auto":
            record["residuals"] = found.details["residuals"]
        yield record


def main() -> None:
    """Print the records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--no-check", action="store_true", help="leave the comparison with the CPU out")
    given = parser.parse_args()
    parts = [] if given.no_check else [same_as_on_the_cpu()]
    for part in (*parts, *(default(n_points) for n_points in given.points)):
        for record in part:
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
