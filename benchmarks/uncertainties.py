"""Source apportionment against LS-NMF: `python -m benchmarks.uncertainties [--starts N]`.

The hydrocarbons of Baton Rouge (307 x 41, 6 sources) and the aerosols of St. Louis (418 x 13, 6 sources),
with an uncertainty for every entry. LS-NMF (Wang, Kossenkov & Ochs 2006, BMC Bioinformatics 7:175) is the
method of ESAT: multiplicative updates of weighted squares, here in NumPy, ended by ESAT's rule: less than 0.1
of Q gained in 100 iterations. From the same starts: the time until Q is that of the peer, and the lowest Q of
all starts.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from nonneg import factorize

CASES = {"esat_batonrouge": 6, "esat_stlouis": 6}
LEAST_GAIN, WINDOW, MAX_ITER = 0.1, 100, 20_000


def read(name: str) -> tuple[Any, Any]:
    """Return concentrations and uncertainties."""
    folder = Path(os.environ["NONNEG_DATA"]) / name
    tables = []
    for file in ("concentrations.csv", "uncertainties.csv"):
        lines = (folder / file).read_text(encoding="utf-8").splitlines()[1:]
        tables.append(np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines]))
    return tables[0], tables[1]


def ls_nmf(X: Any, weights: Any, W: Any, H: Any) -> tuple[float, float]:
    """Return Q and the seconds of weighted multiplicative updates."""
    W, H, weighted = W.copy(), H.copy(), weights * X
    tiny = np.finfo(float).tiny
    started, history = time.perf_counter(), []
    for n_iter in range(MAX_ITER):
        H *= (W.T @ weighted) / np.maximum(W.T @ (weights * (W @ H)), tiny)
        W *= (weighted @ H.T) / np.maximum((weights * (W @ H)) @ H.T, tiny)
        history.append(float(np.sum(weights * (X - W @ H) ** 2)))
        if n_iter >= WINDOW and history[-WINDOW] - history[-1] < LEAST_GAIN:
            break
    return history[-1], time.perf_counter() - started


def ours(X: Any, uncertainties: Any, W: Any, H: Any, target: float) -> tuple[float, float | None]:
    """Return Q, and the seconds until it was that of the peer; None if it never was."""
    reached: list[float] = []
    started = time.perf_counter()

    def look(now: Any) -> None:
        if not reached and 2 * now.history.loss[-1] <= target:
            reached.append(time.perf_counter() - started)

    options: dict[str, Any] = {"tol": 1e-8, "max_iter": 1000, "n_jobs": 1, "callback": look}
    result = factorize(X, len(H), uncertainty=uncertainties, W=W, H=H, **options)
    return 2 * result.loss, reached[0] if reached else None


def main() -> None:
    """Race on both data sets and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=20)
    n_starts = parser.parse_args().starts
    for name, k in CASES.items():
        X, uncertainties = read(name)
        weights, size = uncertainties**-2.0, np.sqrt(X.mean(axis=0) / k)
        factorize(X, k, uncertainty=uncertainties, max_iter=2)  # loads what a first fit loads
        peers, own, ratios = [], [], []
        for start in range(n_starts):
            rng = np.random.default_rng(start)
            W, H = np.abs(rng.normal(size=(len(X), k))), size**2 * np.abs(rng.normal(size=(k, X.shape[1])))
            target, seconds = ls_nmf(X, weights, W, H)
            found, reached = ours(X, uncertainties, W, H, target)
            peers.append(target)
            own.append(found)
            ratios.append(0.0 if reached is None else seconds / reached)
        faster = np.array(ratios)
        faster = faster[faster > 0]
        print(
            f"{name}, {n_starts} starts: lowest Q {min(own):.1f} against {min(peers):.1f}, median "
            f"{np.median(own):.1f} against {np.median(peers):.1f}; Q of the peer reached from {len(faster)} "
            f"starts, there {np.median(faster):.0f} times faster (median), {faster.min():.0f} times (least)",
            flush=True,
        )


if __name__ == "__main__":
    main()
