"""Clocks and peers on a GPU, and what tells one card from another."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import statistics
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any


def synchronized_seconds(call: Callable[[], Any]) -> float:
    """Return how long a call takes until the GPU has done its work."""
    import torch

    torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def median_seconds(call: Callable[[], Any], turns: int = 5) -> float:
    """Return the median of several calls after one that warms up."""
    call()
    return statistics.median(synchronized_seconds(call) for _ in range(turns))


def driver() -> str:
    """Return the version of the driver of the card."""
    words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def version(name: str) -> str | None:
    """Return the version of an installed library, None if it is not."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@contextmanager
def no_triton() -> Iterator[None]:
    """Let every kernel package believe that Triton is not installed."""
    found = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("nonneg.kernels.") and name.endswith(".triton") and hasattr(module, "is_supported")
    ]
    before = [module.is_supported for module in found]
    for module in found:
        module.is_supported = lambda *given, **named: False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, function in zip(found, before, strict=True):
            module.is_supported = function  # type: ignore[attr-defined]


def seconds_per_iteration(name: str, X: Any, W: Any, Ht: Any, beta: float) -> dict[str, Any]:
    """Time the iterations of a peer from the same factors, or say why it cannot run."""
    try:
        run = PEERS[name](X, W, Ht, beta)
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            run(10)
            few = synchronized_seconds(lambda: run(10))
            return {"seconds": max(synchronized_seconds(lambda: run(30)) - few, 1e-9) / 20}
    except Exception as error:
        return {"failure": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"}


def _plain(X: Any, W: Any, Ht: Any, beta: float) -> Any:
    """Multiplicative updates for the Kullback-Leibler divergence as one writes them down."""

    def run(n: int) -> None:
        w, h = W.clone(), Ht.T.clone()
        for _ in range(n):
            w = w * ((X / (w @ h).clamp_min(1e-12)) @ h.T) / h.sum(dim=1)
            h = h * (w.T @ (X / (w @ h).clamp_min(1e-12))) / w.sum(dim=0)[:, None]

    if beta != 1.0:
        raise ValueError("it minimizes the Kullback-Leibler divergence only")
    return run


def _torchnmf(X: Any, W: Any, Ht: Any, beta: float) -> Any:
    nmf = importlib.import_module("torchnmf.nmf")

    def run(n: int) -> None:
        nmf.NMF(W=Ht, H=W).cuda().fit(X, beta=beta, tol=0, max_iter=n)

    return run


def _nmf_torch(X: Any, W: Any, Ht: Any, beta: float) -> Any:
    # Its compiled extension serves one of its solvers only, and is not built for every machine.
    sys.modules.setdefault("nmf.cylib", types.ModuleType("nmf.cylib"))
    try:
        importlib.import_module("nmf.cylib.nnls_bpp_utils")
    except ImportError:
        stub = types.ModuleType("nmf.cylib.nnls_bpp_utils")
        stub._nnls_bpp = None  # type: ignore[attr-defined]
        sys.modules["nmf.cylib.nnls_bpp_utils"] = stub
    nmf = importlib.import_module("nmf")
    method = "halsvar" if beta == 2.0 else "mu"

    def run(n: int) -> None:
        nmf.run_nmf(
            X, W.shape[1], init="random", beta_loss=beta, algo=method, tol=0, use_gpu=True, batch_max_iter=n
        )

    return run


PEERS = {"plain PyTorch": _plain, "torchnmf": _torchnmf, "nmf-torch": _nmf_torch}
