"""Iterations on one GPU, beside bare products, the limit of the formula, and peers."""

from __future__ import annotations

import gc
import statistics
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import gpu_peers
from benchmarks.gpu_peers import median_seconds, synchronized_seconds

SEED = 7
# Inner passes of a row in the formula of the limit.
PASSES = 3
# Memory of an iteration beyond X and the factors.
EXTRA_BYTES = 256 << 20
# About as long as the iterations of a case may take in a turn.
SECONDS = 1.0


@dataclass(frozen=True)
class Iteration:
    """An iteration of a solver on generated data."""

    name: str
    solver: str
    shape: tuple[int, int]
    k: int
    dtype: str = "float32"
    beta: float = 2.0
    nonzeros: int | None = None  # sparse, with about this many
    land: float | None = None  # milliseconds that are asked for, and aimed at
    goal: float | None = None
    peers: tuple[str, ...] = ()
    n_iter: int = 30

    @property
    def title(self) -> str:
        """Name and type."""
        return f"{self.name}, {self.dtype}"

    @property
    def family(self) -> str:
        """What is measured in one process."""
        if self.nonzeros is not None:
            return "sparse"
        return self.solver if self.beta == 2.0 else "divergences"

    def limit(self, rate: float, bandwidth: float) -> float:
        """Return the seconds that arithmetic or memory need at least."""
        (m, n), k, s = self.shape, self.k, 4 if self.dtype == "float32" else 8
        if self.nonzeros is not None:
            z = self.nonzeros
            work = (4 if self.beta == 2.0 else 8) * z * k + (2 + 2 * PASSES) * (m + n) * k * k
            return max(work / rate, (2 * z * (s + 4) + 4 * s * (m + n) * k) / bandwidth)
        if self.beta != 2.0:
            return max(8.0 * m * n * k / rate, s * (m * n + 4 * (m + n) * k) / bandwidth)
        work = 4.0 * m * n * k + (2 + 2 * PASSES) * (m + n) * k * k
        return max(work / rate, s * (m * n + 4 * (m + n) * k) / bandwidth)


ITERATIONS = (
    Iteration("HALS 200000 x 2000, k=50", "hals", (200_000, 2_000), 50, land=8, goal=3, peers=("nmf-torch",)),
    Iteration("HALS 200000 x 2000, k=50", "hals", (200_000, 2_000), 50, "float64", land=20, goal=5),
    Iteration("HALS 20000 x 2000, k=20", "hals", (20_000, 2_000), 20, land=0.8, goal=0.35, n_iter=100),
    Iteration("HALS 2000 x 1000, k=20", "hals", (2_000, 1_000), 20, land=0.5, goal=0.2, n_iter=200),
    Iteration("ANLS 1000000 x 1000, k=40", "anls", (1_000_000, 1_000), 40, land=40, goal=20, n_iter=10),
    Iteration(
        "KL, multiplicative, 20000 x 2000, k=50", "mu", (20_000, 2_000), 50, beta=1.0, land=1.2, goal=0.6,
        peers=("plain PyTorch", "torchnmf", "nmf-torch"), n_iter=100,
    ),
    Iteration(
        "KL, multiplicative, 200000 x 2000, k=40", "mu", (200_000, 2_000), 40, beta=1.0, land=12, goal=6,
        peers=("plain PyTorch",),
    ),
    Iteration("KL, Newton, 20000 x 2000, k=50", "newton", (20_000, 2_000), 50, beta=1.0),
    Iteration("Itakura-Saito, Newton, 20000 x 2000, k=50", "newton", (20_000, 2_000), 50, beta=0.0),
    Iteration(
        "CSR 5000 x 40000, 33 M nonzeros, k=20", "hals", (5_000, 40_000), 20, nonzeros=33_000_000, land=6,
        goal=3,
    ),
    Iteration(
        "CSR 1000000 x 30000, 100 M nonzeros, k=40", "hals", (1_000_000, 30_000), 40, nonzeros=100_000_000,
        land=45, goal=30, n_iter=10,
    ),
    Iteration(
        "KL, CSR 5000 x 40000, 30 M nonzeros, k=20", "mu", (5_000, 40_000), 20, beta=1.0, nonzeros=30_000_000,
        land=10, goal=5,
    ),
    Iteration(
        "KL, Newton, CSR 5000 x 40000, 30 M nonzeros, k=20", "newton", (5_000, 40_000), 20, beta=1.0,
        nonzeros=30_000_000,
    ),
)  # fmt: skip


def ceilings(dtype: str) -> tuple[float, float]:
    """Measure the operations per second of a large product and the bytes per second of a copy."""
    import torch

    kind = getattr(torch, dtype)
    size = 8192 if dtype == "float32" else 6144
    a = torch.rand((size, size), dtype=kind, device="cuda")
    rate = 2.0 * size**3 / median_seconds(lambda: a @ a)
    x = torch.rand((1 << 28,), dtype=torch.float32, device="cuda")
    y = torch.empty_like(x)
    return rate, 2.0 * x.numel() * 4 / median_seconds(lambda: y.copy_(x))


def dense(shape: tuple[int, int], k: int, dtype: str) -> Any:
    """Return a product of random factors plus noise, made on the device."""
    import torch

    generator = torch.Generator("cuda").manual_seed(SEED)
    kind = getattr(torch, dtype)
    W = torch.rand((shape[0], k), dtype=kind, device="cuda", generator=generator) ** 3
    H = torch.rand((k, shape[1]), dtype=kind, device="cuda", generator=generator) ** 3
    X = W @ H
    for at in range(0, shape[0], 50_000):
        noise = torch.rand(X[at : at + 50_000].shape, dtype=kind, device="cuda", generator=generator)
        X[at : at + 50_000] *= 0.5 + noise
    return X


def sparse(shape: tuple[int, int], nonzeros: int) -> Any:
    """Return a CSR tensor with as many nonzeros in every row, one in every stratum of columns."""
    import torch

    generator = torch.Generator("cuda").manual_seed(SEED)
    per_row = max(1, nonzeros // shape[0])
    width = shape[1] // per_row
    size = (shape[0], per_row)
    columns = torch.randint(0, width, size, dtype=torch.int32, device="cuda", generator=generator)
    columns += torch.arange(per_row, dtype=torch.int32, device="cuda") * width
    values = torch.rand(size, device="cuda", generator=generator) * 5 + 0.5
    starts = torch.arange(0, (shape[0] + 1) * per_row, per_row, dtype=torch.int32, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(starts, columns.reshape(-1), values.reshape(-1), size=shape)


def iteration(case: Iteration, rate: float, bandwidth: float) -> Iterator[dict[str, Any]]:
    """Time the iterations of a solver, its bare products, and those of peers."""
    import torch

    from nonneg.data import as_data_matrix
    from nonneg.losses.penalties import Penalties
    from nonneg.solvers.registry import SOLVERS

    X = dense(case.shape, case.k, case.dtype) if case.nonzeros is None else sparse(case.shape, case.nonzeros)
    data = as_data_matrix(X)
    rng = np.random.default_rng(SEED)
    W = data.to_device(rng.random((case.shape[0], case.k)) + 0.01)
    Ht = data.to_device(rng.random((case.shape[1], case.k)) + 0.01)

    def run(n: int) -> float:
        return synchronized_seconds(
            lambda: SOLVERS[case.solver].run(
                data, W, Ht, penalties=Penalties(), beta=case.beta, max_iter=n, tol=0
            )
        )

    first = run(2)
    few = run(2)
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    # As many as the time allows: a solver that is far from its limit shall not use up the time of all others.
    guess = max((run(5) - few) / 3, 1e-6)
    n_iter = int(max(3, min(case.n_iter, SECONDS / guess)))
    turns = 3 if guess * n_iter < SECONDS else 1
    per_iteration = statistics.median(max(run(2 + n_iter) - few, 1e-9) / n_iter for _ in range(turns))
    extra = torch.cuda.max_memory_allocated() - held
    s = 4 if case.dtype == "float32" else 8
    Xt = X.T if case.nonzeros is None else None
    products = median_seconds(lambda: (X @ Ht, Xt @ W)) if Xt is not None else None
    limit = case.limit(rate, bandwidth)
    head = {"case": case.name, "dtype": case.dtype}
    yield head | {
        "kind": "iteration", "contender": "nonneg", "seconds": per_iteration, "products": products,
        "limit": limit, "land": case.land, "goal": case.goal, "first": first,
        "extra_bytes": extra, "allowed_bytes": 4 * sum(case.shape) * case.k * s + EXTRA_BYTES,
    }  # fmt: skip
    for peer in case.peers:
        found = gpu_peers.seconds_per_iteration(peer, X, W, Ht, case.beta)
        yield head | {"kind": "iteration", "contender": peer} | found


def iterations(wanted: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    """Time all iterations that are wanted."""
    measured: dict[str, tuple[float, float]] = {}
    for case in ITERATIONS:
        if not wanted(case.title):
            continue
        if case.dtype not in measured:
            measured[case.dtype] = ceilings(case.dtype)
            rate, bandwidth = measured[case.dtype]
            yield {
                "kind": "card", "case": "the card", "dtype": case.dtype, "contender": "card",
                "rate": rate, "bandwidth": bandwidth,
            }  # fmt: skip
        yield from guarded(case.name, lambda case=case: iteration(case, *measured[case.dtype]), case.dtype)


def guarded(case: str, measure: Callable[[], Any], dtype: str = "float32") -> Iterator[dict[str, Any]]:
    """Yield what is measured; a failure becomes a record."""
    try:
        yield from measure()
    except Exception as error:
        sys.stderr.write(traceback.format_exc())
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:160]}"
        yield {"kind": "failed", "case": case, "dtype": dtype, "contender": "nonneg", "failure": reason}
    gc.collect()
    import torch

    torch.cuda.empty_cache()
