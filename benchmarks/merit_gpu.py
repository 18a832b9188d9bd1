"""MERIT on a GPU: the points of the CPU's scan, the time of an iteration, and a million points.

Run with ``python -m benchmarks.merit_gpu WHAT`` on a machine with an NVIDIA GPU, PyTorch and Triton; WHAT is

- ``check``: indices and whole runs equal those on the CPU;
- ``time``: seconds of iterations and of one scan at 100 000 points, fused kernel and blocked PyTorch;
- ``noise``: success of MERIT and SPA at 100 000 points over signal-to-noise ratios, to find the lowest at
  which MERIT finds the anchors and SPA does not;
- ``million``: 1 000 000 points, 100 iterations, in two parts with a checkpoint between them.

Every line printed is a JSON record.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

N_FEATURES, N_ANCHORS, SEED = 50, 40, 20240601


def make(n_points: int, snr: float, seed: int = SEED) -> Any:
    """Return generated points."""
    from nonneg.datasets import separable_dirichlet

    return separable_dirichlet(n_points, N_FEATURES, N_ANCHORS, snr=snr, rng=seed)


def check() -> Iterator[dict[str, Any]]:
    """Compare the scans and whole runs with those on the CPU."""
    import torch

    from nonneg import select_anchors
    from nonneg.data import as_data_matrix
    from nonneg.kernels.self_dictionary import array_api as portable
    from nonneg.kernels.self_dictionary import dictionary_of, minimizing_vertices
    from nonneg.kernels.self_dictionary import torch as tensor_scan
    from nonneg.kernels.sparse_columns import no_entries
    from nonneg.separable.merit.frank_wolfe import advance, open_loop
    from nonneg.separable.merit.problem import SelfDictionary

    for n_points in (1_000, 20_000):
        X = make(n_points, 10.0).X
        problem = SelfDictionary.of(as_data_matrix(X), 1.0, 1e-5)
        state = problem.initial_iterate(no_entries(n_points))
        device = dictionary_of(torch.tensor(X, device="cuda"))
        for t in range(6):
            state, _ = problem.call_oracle(state)
            slope = problem.sparsity(state).penalty_gradient(1.0)
            residual = torch.tensor(state.residual, device="cuda")
            fused = tensor_scan.minimizing_vertices(device, residual, slope)
            blocked = portable.minimizing_vertices(device, residual, slope)
            host = minimizing_vertices(problem.dictionary, state.residual, slope)
            yield {
                "what": "scan", "n_points": n_points, "t": t,
                "fused_differs": int(np.sum(fused != host)), "blocked_differs": int(np.sum(blocked != host)),
            }  # fmt: skip
            state = advance(problem, state, open_loop(problem, state))
    X = make(5_000, 10.0).X
    host = select_anchors(X, N_ANCHORS, max_iter=30)
    device = torch.tensor(X, device="cuda")
    found, again = (
        select_anchors(device, N_ANCHORS, max_iter=30, method_params={"lam": host.lam}) for _ in range(2)
    )
    yield {
        "what": "run", "n_points": 5_000, "gap": found.gap,
        "coefficients_differ": float(abs(host.coefficients - found.coefficients).max()),
        "gap_of_cpu": host.gap, "same_anchors": bool(set(host.anchors) == set(found.anchors)),
        "gaps_differ": float(np.abs(1 - np.array(found.history["gap"]) / host.history["gap"]).max()),
        "second_run_equal": bool(
            again.history["gap"] == found.history["gap"]
            and abs(again.coefficients - found.coefficients).max() == 0
        ),
    }  # fmt: skip


def timed(n_points: int = 100_000, n_iter: int = 100) -> Iterator[dict[str, Any]]:
    """Time iterations and scans."""
    import torch

    from nonneg.data import as_data_matrix
    from nonneg.kernels.self_dictionary import array_api as portable
    from nonneg.kernels.self_dictionary import torch as tensor_scan
    from nonneg.kernels.self_dictionary import triton as triton_scan
    from nonneg.kernels.sparse_columns import no_entries
    from nonneg.separable.merit.frank_wolfe import advance, open_loop
    from nonneg.separable.merit.problem import SelfDictionary
    from nonneg.separable.merit.row_sparsity import tensor_row_sparsity

    X = torch.tensor(make(n_points, 10.0).X, device="cuda")
    problem = SelfDictionary.of(as_data_matrix(X), 3.0, 1e-5)
    state = problem.initial_iterate(no_entries(n_points), on_device=True)
    part = max(1, n_iter // 10)
    taken: list[float] = []
    for _ in range(n_iter + 3):
        torch.cuda.synchronize()
        started = time.perf_counter()
        state, _ = problem.call_oracle(state)
        state = advance(problem, state, open_loop(problem, state))
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - started)
        # The first three compile the kernels.
        if len(taken) > 3 and (len(taken) - 3) % part == 0:
            some = sorted(taken[-part:])
            yield {
                "what": "iterations", "n_points": n_points, "until": state.t, "median": some[part // 2],
                "least": some[0], "most": some[-1],
            }  # fmt: skip
    sparsity = tensor_row_sparsity(state.columns, problem.mu, state.row_max, state.row_count)
    slope, residual = sparsity.penalty_gradient(problem.lam), state.residual
    scan = tensor_scan.TensorScan(problem.dictionary, residual, slope)
    for kind in (torch.float16, torch.float32):
        left = scan.rounded.in_type(kind, scan.base)[0]
        right = scan.scaled_columns(residual, kind)[0]
        yield {
            "what": f"kernel {kind}", "n_points": n_points,
            "seconds": _median(lambda p=left, c=right: triton_scan.lowest_scores(p, c), 10),
            "doubtful": int(scan.decided(None, kind)[1].sum()), "listed": len(slope.rows),
        }  # fmt: skip
    host = problem.sparsity(state.as_numpy).penalty_gradient(problem.lam)
    for name, function, given in (
        ("fused", tensor_scan.minimizing_vertices, slope),
        ("blocked", portable.minimizing_vertices, host),
    ):
        seconds = _median(lambda f=function, s=given: f(problem.dictionary, residual, s), 10)
        yield {"what": f"scan, {name}", "n_points": n_points, "seconds": seconds}


def _median(call: Any, n_times: int) -> float:
    import torch

    taken = []
    for _ in range(n_times + 1):
        torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - started)
    return sorted(taken[1:])[n_times // 2]


def noise(
    n_points: int = 100_000, ratios: tuple[float, ...] = (8, 9, 10, 11, 12, 13, 14, 16)
) -> Iterator[dict[str, Any]]:
    """Find out at which noise MERIT finds the anchors and SPA does not."""
    import torch

    from nonneg import select_anchors

    for snr in ratios:
        data = make(n_points, snr)
        X = torch.tensor(data.X, device="cuda")
        started = time.perf_counter()
        found = select_anchors(X, N_ANCHORS, tol=0.0, method_params={"recovery": False})
        seconds = time.perf_counter() - started
        greedy = select_anchors(X, N_ANCHORS, method="spa")
        truth = set(data.anchors.tolist())
        yield {
            "what": "noise", "n_points": n_points, "snr": snr, "seconds": seconds, "gap": found.gap,
            "objective": found.objective, "lam": found.lam, "margin": found.margin,
            "merit_right": len(truth & set(found.anchors.tolist())),
            "spa_right": len(truth & set(greedy.anchors.tolist())),
        }  # fmt: skip


def million(snr: float, n_points: int = 1_000_000, n_iter: int = 100) -> Iterator[dict[str, Any]]:
    """Run a million points in two parts with a checkpoint between them."""
    import torch

    from nonneg import select_anchors

    data = make(n_points, snr)
    X = torch.tensor(data.X, device="cuda")
    truth = set(data.anchors.tolist())
    greedy = select_anchors(X, N_ANCHORS, method="spa")
    yield {
        "what": "spa",
        "n_points": n_points,
        "snr": snr,
        "right": len(truth & set(greedy.anchors.tolist())),
    }
    with tempfile.TemporaryDirectory() as folder:
        total = 0.0
        for last in (n_iter // 2, n_iter):
            started = time.perf_counter()
            found = select_anchors(
                X, N_ANCHORS, max_iter=last, tol=0.0, method_params={"recovery": False}, checkpoint=folder
            )
            seconds = time.perf_counter() - started
            total += seconds
            yield {
                "what": "million", "n_points": n_points, "snr": snr, "until": last, "n_iter": found.n_iter,
                "seconds": seconds, "seconds_so_far": total, "in_steps": found.history.seconds[-1],
                "right": len(truth & set(found.anchors.tolist())), "margin": found.margin, "gap": found.gap,
                "objective": found.objective, "lam": found.lam, "entries": found.facts["entries"],
                "gpu_memory": torch.cuda.max_memory_allocated(),
            }  # fmt: skip


def main() -> None:
    """Run one part and print its records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("check", "time", "noise", "million"))
    parser.add_argument("--points", type=int, default=0, help="another number of points")
    parser.add_argument("--snr", type=float, default=10.0, help="noise of the million points, in dB")
    parser.add_argument("--ratios", default="", help="signal-to-noise ratios, with commas between")
    parser.add_argument("--iterations", type=int, default=100)
    given = parser.parse_args()
    size = {"n_points": given.points} if given.points else {}
    if given.what == "noise" and given.ratios:
        size["ratios"] = tuple(float(word) for word in given.ratios.split(","))
    parts = {
        "check": check,
        "time": lambda: timed(n_iter=given.iterations, **size),
        "noise": lambda: noise(**size),
        "million": lambda: million(given.snr, n_iter=given.iterations, **size),
    }
    for record in parts[given.what]():
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
