"""Whole fits on one GPU: encoding and certificate, streaming, restarts, and the processor beside it."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import gpu_peers
from benchmarks.gpu_iterations import SEED, dense, guarded
from benchmarks.gpu_peers import median_seconds, synchronized_seconds


def whole_fits() -> Iterator[dict[str, Any]]:
    """Time whole fits, encoding and certificate included, against their iterations alone."""
    for name, beta, shape, k in (
        ("whole fit, Frobenius, 20000 x 2000, k=20", 2.0, (20_000, 2_000), 20),
        ("whole fit, KL, 20000 x 2000, k=20", 1.0, (20_000, 2_000), 20),
        ("whole fit, Itakura-Saito, 5000 x 1000, k=10", 0.0, (5_000, 1_000), 10),
    ):
        yield from guarded(name, partial(whole_fit, name, beta, shape, k))


def whole_fit(name: str, beta: float, shape: tuple[int, int], k: int) -> Iterator[dict[str, Any]]:
    """Time one fit several times; the record is the one with the median ratio."""
    from nonneg import NMF

    X = dense(shape, k, "float32") + 1e-3
    model = NMF(k, beta_loss=beta, init="random", random_state=SEED, max_iter=100, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
        taken = []
        for _ in range(7):
            seconds = synchronized_seconds(lambda: model.fit(X))
            taken.append((seconds / model.history_.seconds[-1], seconds, model.history_.seconds[-1]))
    ratio, seconds, steps = sorted(taken)[len(taken) // 2]
    yield {
        "kind": "whole", "case": name, "dtype": "float32", "contender": "nonneg", "seconds": seconds,
        "steps": steps, "n_iter": model.n_iter_, "ratio": ratio, "land": 1.5, "goal": 1.2,
        "ratios": sorted(each[0] for each in taken),
    }  # fmt: skip


def streamed() -> Iterator[dict[str, Any]]:
    """Time iterations on host data of three times the memory that is free on the card."""
    import torch

    from nonneg._devices import free_memory
    from nonneg.data.door import Request, wrap
    from nonneg.losses.penalties import Penalties
    from nonneg.solvers.hals import hals

    device, (n_rows, n_columns), k = torch.device("cuda", 0), (500_000, 2_000), 40
    X = np.empty((n_rows, n_columns), dtype=np.float32)
    drawn = torch.empty((n_rows // 10, n_columns), pin_memory=True)
    for at in range(0, n_rows, n_rows // 10):
        drawn.copy_(dense((n_rows // 10, n_columns), k, "float32"))
        X[at : at + n_rows // 10] = drawn.numpy()
    pinned = torch.empty(1 << 26, dtype=torch.float32, pin_memory=True)
    target = torch.empty(1 << 26, dtype=torch.float32, device=device)
    bandwidth = pinned.numel() * 4 / median_seconds(lambda: target.copy_(pinned, non_blocking=True))
    del drawn
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(X.nbytes / 3 / total)
    head = {"kind": "streamed", "dtype": "float32", "contender": "nonneg", "bandwidth": bandwidth}
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            for name in ("array in memory", "memory-mapped file"):
                if name != "array in memory":
                    np.save(path, X)
                    X = np.load(path, mmap_mode="r")
                free = free_memory(device)
                data: Any = None
                started = time.perf_counter()
                data = wrap(X, Request(device=device))
                first = time.perf_counter() - started
                rng = np.random.default_rng(SEED)
                W, Ht = data.to_device(rng.random((n_rows, k))), data.to_device(rng.random((n_columns, k)))

                def run(n: int, data: Any = data, W: Any = W, Ht: Any = Ht) -> tuple[float, int]:
                    before = data.n_passes
                    seconds = synchronized_seconds(
                        lambda: hals(data, W, Ht, penalties=Penalties(), max_iter=n, tol=0, accelerate=False)
                    )
                    return seconds, data.n_passes - before

                facts = {"case": f"streamed, {name}", "size": int(X.nbytes), "free": free, "first": first}
                product = median_seconds(lambda data=data, Ht=Ht: data.times(Ht), 3)
                yield head | facts | {
                    "case": f"streamed, {name}, one product", "seconds": product, "passes": 1.0,
                    "ratio": X.nbytes / product / bandwidth, "land": None, "goal": None,
                }  # fmt: skip
                run(1)
                (few, passes), (many, more) = run(1), run(7)
                seconds = (many - few) / (more - passes)
                yield head | facts | {
                    "seconds": seconds, "ratio": X.nbytes / seconds / bandwidth,
                    "passes": (more - passes) / 6, "land": 0.6, "goal": 0.85,
                }  # fmt: skip
                del data, W, Ht, run  # buffers of the first
                gc.collect()
                torch.cuda.empty_cache()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def restarts() -> Iterator[dict[str, Any]]:
    """Time 100 restarts as one batch and one after another."""
    import torch

    from nonneg._random import generator
    from nonneg.data import as_data_matrix
    from nonneg.solvers import batched
    from nonneg.solvers.restarts import run_restarts

    n, n_iter, k = 100, 200, 20
    rng = np.random.default_rng(SEED)
    counts = rng.poisson(50 * rng.dirichlet(np.full(96, 0.2), k).T @ rng.gamma(0.5, 1.0, (k, 2700)))
    for beta, dtype, land, goal in (
        (1.0, "float32", 20, 60),
        (1.0, "float64", 20, 60),
        (2.0, "float64", None, None),
    ):
        data = as_data_matrix(torch.asarray(counts, dtype=getattr(torch, dtype), device="cuda"))

        def run(number: int, data: Any = data, beta: float = beta) -> list[Any]:
            return run_restarts(data, k, generator(SEED).spawn(number), beta=beta, max_iter=n_iter, tol=0)

        run(2)
        together = median_seconds(lambda: run(n), 2)
        runs = run(2)
        sys.stderr.write(f"100 restarts, beta={beta:g}, {dtype}: {together:.3f} s as one batch\n")
        batched.can_be_batched, before = (lambda *given: False), batched.can_be_batched
        single: list[Any] = []
        try:
            run(1)
            alone = synchronized_seconds(lambda single=single: single.extend(run(2))) * n / 2
        finally:
            batched.can_be_batched = before
        pairs = zip(runs, single, strict=True)
        differ = max(abs(a.history.loss[19] / b.history.loss[19] - 1) for a, b in pairs)
        yield {
            "kind": "restarts", "case": f"100 restarts, 96 x 2700, beta={beta:g}, k=20", "dtype": dtype,
            "contender": "nonneg", "seconds": together, "alone": alone, "ratio": alone / together,
            "land": land, "goal": goal, "n_iter": n_iter, "differ": differ,
        }  # fmt: skip


def against_sklearn(n_iter: int = 200) -> Iterator[dict[str, Any]]:
    """Time fits to the errors that scikit-learn's coordinate descent reaches on all cores."""
    import sklearn.decomposition
    from reproduction import data as datasets

    from nonneg import NMF
    from nonneg._threads import available_threads

    (n_rows, n_columns), k = (20_000, 1_500), 40
    X = datasets.low_rank_plus_noise(
        n_rows, n_columns, k, noise="gaussian", level=0.1, rng=SEED, dtype=np.float32
    ).X
    scale = np.sqrt(X.mean() / k)
    theirs, ours = [], []
    for seed in range(2):
        # Both begin with the same factors, drawn as scikit-learn draws them.
        rng = np.random.default_rng(seed)
        W, H = (
            np.abs(scale * rng.standard_normal(size)).astype(np.float32)
            for size in ((n_rows, k), (k, n_columns))
        )
        model = sklearn.decomposition.NMF(k, init="custom", solver="cd", max_iter=n_iter, tol=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = time.perf_counter()
            model.fit(X, W=W.copy(), H=H.copy())
            theirs.append((time.perf_counter() - started, float(model.reconstruction_err_)))
            target = 0.5 * model.reconstruction_err_**2

            def fit(n: int, W: Any = W, H: Any = H) -> Any:
                return NMF(k, init="custom", max_iter=n, tol=0, device="cuda").fit(X, W=W, H=H)

            # How many iterations it takes; the fit that is timed ends with them.
            below = np.flatnonzero(np.asarray(fit(150).history_.loss) <= target)
            if not below.size:
                raise RuntimeError("the error of scikit-learn was not reached in 150 iterations")
            n = int(below[0]) + 1
            seconds = synchronized_seconds(lambda fit=fit, n=n: fit(n))
        ours.append((seconds, n, float(fit(n).reconstruction_err_)))
    yield {
        "kind": "race", "case": f"to the error of scikit-learn's cd-{n_iter}, 20000 x 1500, k=40",
        "dtype": "float32", "contender": "nonneg", "seconds": statistics.median(each[0] for each in ours),
        "alone": statistics.median(each[0] for each in theirs),
        "ratio": statistics.median(a[0] / b[0] for a, b in zip(theirs, ours, strict=True)),
        "land": 20, "goal": 50, "n_iter": [each[1] for each in ours], "cores": available_threads(),
        "differ": [b[2] / a[1] - 1 for a, b in zip(theirs, ours, strict=True)],
    }  # fmt: skip


# Samples, features, components, beta and restarts: what "auto" must decide about, on both sides of its
# threshold.
CROSSOVER = (
    (2_000, 500, 10, 2.0, 1), (20_000, 1_000, 20, 2.0, 1), (2_000, 500, 10, 1.0, 1),
    (5_000, 1_000, 20, 1.0, 1), (20_000, 1_000, 20, 1.0, 1), (40_000, 2_000, 40, 2.0, 1),
    (80_000, 2_000, 40, 2.0, 1), (96, 2_700, 20, 1.0, 100),
)  # fmt: skip
# The first fit of a process, which imports PyTorch, starts CUDA and loads kernels or compiled code.
FIRST_FIT = """
import sys, time, warnings
import numpy as np
from nonneg import NMF
X = np.random.default_rng(0).random((2000, 500), dtype=np.float32) + 0.01
device, beta = sys.argv[1], float(sys.argv[2])
model = NMF(10, init="random", beta_loss=beta, random_state=0, max_iter=50, tol=0, device=device)
warnings.simplefilter("ignore")
started = time.perf_counter()
model.fit(X)
print(time.perf_counter() - started)
"""


def first_fits() -> Iterator[dict[str, Any]]:
    """Time the first fit of a process on the processor and on the GPU: what a GPU costs before it works."""
    for beta in (2.0, 1.0):
        taken = {}
        for device in ("cpu", "cuda"):
            command = [sys.executable, "-c", FIRST_FIT, device, str(beta)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
            taken[device] = float(done.stdout)
        yield compared("first fit of a process, ", (2_000, 500, 10, beta, 1), taken)


def compared(prefix: str, case: tuple[int, int, int, float, int], taken: dict[str, float]) -> dict[str, Any]:
    """Return a record of a fit on the processor and on the GPU, and which of them "auto" takes."""
    from nonneg._devices import likely_iterations, pays
    from nonneg._threads import available_threads

    n_rows, n_columns, k, beta, n_init = case
    entries, n_iter = float(n_rows * n_columns), likely_iterations(50, n_init, beta)
    return {
        "kind": "crossover", "dtype": "float32", "contender": "nonneg", "seconds": taken["cuda"],
        "case": f"{prefix}{n_rows} x {n_columns}, k={k}, beta={beta:g}, {n_init} x 50 iterations",
        "alone": taken["cpu"], "ratio": taken["cpu"] / taken["cuda"], "cores": available_threads(),
        "chosen": "cuda" if pays((n_rows, n_columns), entries, k, n_iter, started=not prefix) else "cpu",
        "operations": 4.0 * entries * k * n_iter,
    }  # fmt: skip


def crossover() -> Iterator[dict[str, Any]]:
    """Time fits of NumPy arrays on the processor and on the GPU, copies included."""
    from sklearn.base import clone

    from nonneg import NMF

    for case in CROSSOVER:
        n_rows, n_columns, k, beta, n_init = case
        X = dense((n_rows, n_columns), k, "float32").cpu().numpy()
        taken = {}
        for device, warm in (("cpu", 3), ("cuda", 50)):
            model = NMF(
                k, init="random", beta_loss=beta, n_init=n_init, random_state=SEED, max_iter=50, tol=0,
                device=device,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Compiles; on the GPU, late iterations have kernels of their own.
                clone(model).set_params(max_iter=warm, n_init=min(n_init, 2)).fit(X)
                taken[device] = synchronized_seconds(lambda model=model, X=X: model.fit(X))
        yield compared("", case, taken)


def without_triton() -> Iterator[dict[str, Any]]:
    """Time iterations with Triton's kernels and with array operations in their place."""
    import torch

    from nonneg.data import as_data_matrix
    from nonneg.losses.penalties import Penalties
    from nonneg.solvers.registry import SOLVERS

    for solver, beta, shape, k in (("hals", 2.0, (20_000, 2_000), 20), ("newton", 1.0, (20_000, 2_000), 20)):
        data = as_data_matrix(dense(shape, k, "float32"))
        rng = np.random.default_rng(SEED)
        W, Ht = (data.to_device(rng.random((side, k)) + 0.01) for side in shape)

        def run(
            n: int, data: Any = data, W: Any = W, Ht: Any = Ht, solver: str = solver, beta: float = beta
        ) -> float:
            return synchronized_seconds(
                lambda: SOLVERS[solver].run(data, W, Ht, penalties=Penalties(), beta=beta, max_iter=n, tol=0)
            )

        run(2)
        fast = (run(22) - run(2)) / 20
        with gpu_peers.no_triton():
            run(2)
            slow = (run(7) - run(2)) / 5
        torch.cuda.empty_cache()
        yield {
            "kind": "fallback", "case": f"without Triton, {solver}, {shape[0]} x {shape[1]}, k={k}",
            "dtype": "float32", "contender": "nonneg", "seconds": slow, "alone": fast, "ratio": slow / fast,
        }  # fmt: skip


PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "whole fit": whole_fits,
    "streamed": streamed,
    "restarts": restarts,
    "scikit-learn": against_sklearn,
    "first fit": first_fits,
    "auto": crossover,
    "without Triton": without_triton,
}
