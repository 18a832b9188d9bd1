"""Data with uncertainties: weights of entries beside LS-NMF and beside repairs, error bars, cost.

    python -m benchmarks.uncertainties [--parts sources] [--starts 20] [--draws 20] [--write]

sources: source apportionment against LS-NMF. The hydrocarbons of Baton Rouge (307 x 41, 6 sources) and the
aerosols of St. Louis (418 x 13, 6 sources), with an uncertainty for every entry. LS-NMF (Wang, Kossenkov &
Ochs 2006, BMC Bioinformatics 7:175) is the method of ESAT: multiplicative updates of weighted squares, here
in NumPy, from ESAT's random factors. ESAT's rule ends it where less than 0.1 of Q was gained in 100
iterations; what it would gain up to ESAT's limit of 20,000 is measured, too. From the same factors: Q at the
end, and the CPU time until Q is that of the peer. Beside them: the lowest of five random restarts, and one
fit with all defaults, which draws nothing.

components: planted components under noise that takes a fifth of the entries below zero. The spread is the
largest uncertainty of a feature over the smallest; or factors of the two files are planted, with their
uncertainties and in their units, and errors are relative to the mean of each feature. Errors with
uncertainties, from random factors and from the planted ones (which no user has), beside repairs of negative
entries.

intervals: how many of the planted factors lie in the intervals of `estimate_errors`, nominally 90%.

cost: CPU time of an iteration, and peak memory of a fit, with weights of 2,000 x 1,000 entries.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg import NMF, estimate_errors, factorize

Row = dict[str, Any]
CASES = {"esat_batonrouge": 6, "esat_stlouis": 6}
LEAST_GAIN, WINDOW, MAX_ITER = 0.1, 100, 20_000
SPREADS = (1, 3, 10, 30, 100)
# Samples, features, components, noise over the mean, share of zeros, and whether uncertainties are given.
DESIGNS: dict[str, tuple[int, int, int, float, float, bool]] = {
    "small": (40, 8, 2, 0.1, 0.3, True),
    "larger": (100, 12, 3, 0.1, 0.3, True),
    "strong noise": (60, 10, 2, 0.4, 0.3, True),
    "half zeros": (60, 10, 3, 0.1, 0.5, True),
    "unknown noise": (60, 10, 2, 0.1, 0.3, False),
    "no zeros": (60, 10, 2, 0.1, 0.0, True),
}
LEVEL, N_RESAMPLES = 0.9, 100
REPAIRS = ("plain", "clipped", "shifted")


def read(name: str) -> tuple[Any, Any]:
    """Return concentrations and uncertainties."""
    folder = Path(os.environ["NONNEG_DATA"]) / name
    tables = []
    for file in ("concentrations.csv", "uncertainties.csv"):
        lines = (folder / file).read_text(encoding="utf-8").splitlines()[1:]
        tables.append(np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines]))
    return tables[0], tables[1]


def random_factors(X: Any, k: int, seed: int) -> tuple[Any, Any]:
    """Draw W and H as ESAT does, with what is below zero replaced by 1e-12."""
    rng = np.random.default_rng(seed)
    H = np.sqrt(X.mean(axis=0) / k) * rng.normal(size=(k, X.shape[1]))
    W = np.sqrt(X.mean(axis=1, keepdims=True) / k) * rng.normal(size=(len(X), k))
    return np.maximum(W, 1e-12), np.maximum(H, 1e-12)


def ls_nmf(X: Any, weights: Any, W: Any, H: Any) -> Row:
    """Return Q and the seconds of weighted multiplicative updates by ESAT's rule, and Q at its limit."""
    weighted, tiny = weights * X, np.finfo(float).tiny
    started, history, measured = time.process_time(), [], {}
    for n_iter in range(MAX_ITER):
        H = H * (W.T @ weighted) / np.maximum(W.T @ (weights * (W @ H)), tiny)
        W = W * (weighted @ H.T) / np.maximum((weights * (W @ H)) @ H.T, tiny)
        # Subnormal numbers would take several times as long.
        H, W = np.where(tiny < H, H, 0.0), np.where(tiny < W, W, 0.0)
        history.append(float(np.sum(weights * (X - W @ H) ** 2)))
        ended = n_iter >= WINDOW and history[-WINDOW] - history[-1] < LEAST_GAIN
        if not measured and (ended or n_iter == MAX_ITER - 1):
            seconds = time.process_time() - started
            measured = {"LS-NMF": history[-1], "seconds of LS-NMF": seconds, "its iterations": n_iter + 1}
    return {**measured, "LS-NMF at its limit": history[-1]}


def ours(X: Any, uncertainties: Any, W: Any, H: Any, target: float, seed: int) -> Row:
    """Return Q, the seconds, and those until Q was that of the peer, or None; and the same of restarts."""
    reached: list[float] = []
    started = time.process_time()

    def look(now: Any) -> None:
        if not reached and 2 * now.history.loss[-1] <= target:
            reached.append(time.process_time() - started)

    options: dict[str, Any] = {"uncertainty": uncertainties, "tol": 1e-8, "max_iter": 1000, "n_jobs": 1}
    result = factorize(X, len(H), W=W, H=H, callback=look, **options)
    single, started = time.process_time() - started, time.process_time()
    restarts = factorize(X, len(H), n_init=5, rng=seed, **options)
    return {
        "nonneg": 2 * result.loss, "iterations": len(result.history.loss), "seconds of nonneg": single,
        "seconds to the Q of LS-NMF": reached[0] if reached else None, "nonneg, n_init=5": 2 * restarts.loss,
        "seconds of nonneg, n_init=5": time.process_time() - started,
    }  # fmt: skip


def sources(n_starts: int) -> Iterator[Row]:
    """Race LS-NMF from random factors."""
    for name, k in CASES.items():
        X, uncertainties = read(name)
        factorize(X, k, uncertainty=uncertainties, max_iter=2)  # loads what a first fit loads
        started = time.process_time()
        default: Row = {"nonneg, default fit": 2 * factorize(X, k, uncertainty=uncertainties, n_jobs=1).loss}
        default["seconds of nonneg, default fit"] = time.process_time() - started
        for start in range(n_starts):
            W, H = random_factors(X, k, start)
            peer = ls_nmf(X, uncertainties**-2.0, W, H)
            yield {
                "case": f"{name}, start {start}", "data": name, **default,
                **peer, **ours(X, uncertainties, W, H, peer["LS-NMF"], start),
            }  # fmt: skip


def component_error(found: Any, truth: Any) -> float:
    """Return the relative distance of components of unit norm, after the best match."""
    found, truth = (
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) for rows in (found, truth)
    )
    rows, columns = linear_sum_assignment(-truth @ found.T)
    return float(np.linalg.norm(truth[rows] - found[columns]) / np.linalg.norm(truth))


def components(n_draws: int) -> Iterator[Row]:
    """Measure errors of planted components, for several spreads of the uncertainties and those of files."""
    fitted = {name: fitted_factors(name, k) for name, k in CASES.items()}
    for uncertainties, draw in product([*SPREADS, *CASES], range(n_draws)):
        rng = np.random.default_rng(draw)
        W, H, S = fitted[uncertainties] if uncertainties in fitted else spread_factors(uncertainties, rng)
        truth, noise, k = W @ H, rng.normal(size=S.shape), len(H)
        # A fifth of the entries below zero, whatever the uncertainties.
        low, high = 1e-3, 1e3
        for _ in range(60):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if np.mean(truth + middle * S * noise < 0) < 0.2 else (low, middle)
        S = low * S
        X = truth + S * noise
        options: dict[str, Any] = {"negative": "keep", "tol": 1e-8, "max_iter": 2000}
        restarts: dict[str, Any] = {**options, "rng": 0, "n_init": 5}
        weighted = factorize(X, k, uncertainty=S, **restarts)
        from_planted = factorize(X, k, uncertainty=S, W=W, H=H, **options)
        fits = {
            "nonneg": weighted,
            "from the planted factors": from_planted,
            "clipped, with uncertainties": factorize(np.maximum(X, 0), k, uncertainty=S, **restarts),
            "plain": factorize(X, k, **restarts),
            "clipped": factorize(np.maximum(X, 0), k, **restarts),
            "shifted": factorize(X - X.min(), k, **restarts),
        }
        # Features of files have units of their own.
        unit = truth.mean(axis=0) if uncertainties in CASES else 1.0
        yield {
            "case": f"spread {uncertainties}, draw {draw}", "spread": str(uncertainties),
            "below zero": float(np.mean(X < 0)), "excess of Q": weighted.loss / from_planted.loss - 1,
            **{name: component_error(fit.H / unit, H / unit) for name, fit in fits.items()},
        }  # fmt: skip


def spread_factors(spread: float, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Draw W, H and uncertainties up to a scale, the largest of a feature `spread` times the smallest."""
    n, m, k = 120, 30, 3
    W = rng.gamma(0.7, size=(n, k))
    H = rng.gamma(0.5, size=(k, m)) * (rng.random((k, m)) < 0.6)
    features = rng.permutation(np.geomspace(1.0, spread, m)) / np.sqrt(spread)
    return W, H, features * rng.uniform(0.3, 2.0, (n, m)) * (W @ H).mean()


def fitted_factors(name: str, k: int) -> tuple[Any, Any, Any]:
    """Return W and H of the lowest Q of 20 restarts on a file, and its uncertainties."""
    X, S = read(name)
    fit = factorize(X, k, uncertainty=S, n_init=20, rng=0, tol=1e-7, max_iter=1000)
    return fit.W, fit.H, S


def planted(name: str, draw: int) -> tuple[Any, Any, Any, Any]:
    """Draw data of a design, their standard deviations, W and H."""
    n, m, k, noise, zeros, known = DESIGNS[name]
    rng = np.random.default_rng(draw)
    W = rng.gamma(1.0, size=(n, k)) * (rng.random((n, k)) >= zeros)
    H = (rng.gamma(1.0, size=(k, m)) + 0.2) * (rng.random((k, m)) >= zeros)
    S = noise * (W @ H).mean() * (rng.uniform(0.3, 2.0, (n, m)) if known else np.ones((n, m)))
    return W @ H + S * rng.normal(size=(n, m)), S, W, H


def rotates(W: Any, H: Any) -> bool:
    """Tell whether a component is nonzero only where another one is, in W or in H.

    Then some of the one can be taken from the other, and the product stays the same.
    """
    supports = H > 0, W.T > 0
    pairs = [(a, b) for a in range(len(H)) for b in range(len(H)) if a != b]
    return any((support[a] <= support[b]).all() for support in supports for a, b in pairs)


def intervals(n_draws: int, designs: Sequence[str], methods: Sequence[str]) -> Iterator[Row]:
    """Count the planted entries that lie in their intervals."""
    for name, method, draw in product(designs, methods, range(n_draws)):
        X, S, W, H = planted(name, draw)
        k, given = len(H), {"uncertainty": S} if DESIGNS[name][-1] else {}
        model = NMF(k, n_init=3, negative="keep", random_state=0, tol=1e-7, max_iter=2000).fit(X, **given)
        options: dict[str, Any] = {"level": LEVEL, "n_resamples": N_RESAMPLES, "rng": draw, "n_jobs": 1}
        errors = estimate_errors(model, X, **given, method=method, **options)
        order = linear_sum_assignment(-np.corrcoef(errors.H, H)[:k, k:])[1]
        scale = errors.W.mean(axis=0) / W[:, order].mean(axis=0)
        truth, of_W = H[order] / scale[:, None], W[:, order] * scale
        row: Row = {"case": f"{name}, {method}, draw {draw}", "design": name, "method": method}
        row["H"] = float(np.mean((errors.H_low <= truth) & (truth <= errors.H_high)))
        row["W"] = None
        if errors.W_low is not None:
            row["W"] = float(np.mean((errors.W_low <= of_W) & (of_W <= errors.W_high)))
        yield row


def cost(n_repeats: int) -> Iterator[Row]:
    """Time iterations in turns, and trace the memory of a fit."""
    rng = np.random.default_rng(0)
    k, (n, m) = 20, (2000, 1000)
    X = rng.gamma(1.0, size=(n, k)) @ rng.gamma(1.0, size=(k, m)) + rng.random((n, m))
    W, H = rng.random((n, k)), rng.random((k, m))
    outer = np.outer(rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, m))
    kinds: dict[str, Row] = {
        "no weights": {},
        "rank-one weights": {"entry_weight": outer},
        "general weights": {"entry_weight": rng.uniform(0.5, 2.0, (n, m))},
    }
    given: dict[str, Any] = {"W": W, "H": H, "tol": 0, "n_jobs": 1}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(n_repeats):
        for kind, weights in kinds.items():
            spent = []
            for n_iter in (2, 12):
                started = time.process_time()
                factorize(X, k, max_iter=n_iter, **given, **weights)
                spent.append(time.process_time() - started)
            times[kind].append((spent[1] - spent[0]) / 10)
    for kind, weights in kinds.items():
        tracemalloc.start()
        factorize(X, k, max_iter=2, tol=0, n_jobs=1, rng=0, **weights)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield {
            "case": kind, "CPU seconds per iteration": float(np.median(times[kind])),
            "over no weights": float(np.median(times[kind]) / np.median(times["no weights"])),
            "peak memory over X": peak / X.nbytes,
        }  # fmt: skip


def table(part: str, rows: list[Row]) -> str:
    """Return the table of a part."""
    frame, lines, head = pd.DataFrame(rows), [], [""]
    if part == "sources":
        names = ["nonneg, default fit", "nonneg", "nonneg, n_init=5", "LS-NMF", "LS-NMF at its limit"]
        head = ["data", "fit", "starts", "lowest Q", "median Q", "below LS-NMF", "CPU seconds of a start"]
        for data, group in frame.groupby("data"):
            for name in names:
                lower = str((group[name] <= group["LS-NMF"]).sum()) if "LS" not in name else "-"
                spent = group.get(f"seconds of {name}")
                cells = [f"{group[name].min():.1f}", f"{group[name].median():.1f}", lower]
                seconds = "-" if spent is None else f"{spent.median():.2g}"
                starts = "1" if "default" in name else str(len(group))
                lines.append([str(data), name, starts, *cells, seconds])
    elif part == "components":
        names = ["nonneg", "from the planted factors", "clipped, with uncertainties", *REPAIRS]
        head = ["spread", "draws", "below zero", *names, *(f"nonneg over {name}" for name in REPAIRS)]
        for spread, group in frame.astype({"spread": str}).groupby("spread", sort=False):
            mean = group.mean(numeric_only=True)
            cells = [f"{mean['below zero']:.0%}", *(f"{mean[name]:.3f}" for name in names)]
            ratios = [f"{mean['nonneg'] / mean[name]:.2f}" for name in REPAIRS]
            lines.append([str(spread), str(len(group)), *cells, *ratios])
    elif part == "intervals":
        head = ["design", "samples x features, components", "noise", "zeros", "rotations", "method", "draws",
                "of H", "of W"]  # fmt: skip
        draws = [(row["design"], int(row["case"].split()[-1])) for row in rows]
        frame["rotations"] = ["yes" if rotates(*planted(*draw)[2:]) else "no" for draw in draws]
        for (name, rotations, method), group in frame.groupby(["design", "rotations", "method"], sort=False):
            n, m, k, noise, zeros, _ = DESIGNS[str(name)]
            about = [f"{n} x {m}, {k}", f"{noise}", f"{zeros:.0%}", str(rotations), str(method)]
            cells = ["-" if group[side].isna().all() else f"{group[side].mean():.1%}" for side in "HW"]
            lines.append([str(name), *about, str(len(group)), *cells])
        lines.sort(key=lambda line: (line[4], line[5], [*DESIGNS].index(line[0])))
    else:
        head = ["weights", "CPU seconds per iteration", "over no weights", "peak memory over X"]
        lines = [[row["case"], *(f"{row[each]:.3g}" for each in head[1:])] for row in rows]
    return markdown(head, lines)


def speed(rows: list[Row]) -> str:
    """Return the table of the times to the Q of LS-NMF."""
    lines = []
    for data, group in pd.DataFrame(rows).groupby("data"):
        faster = (group["seconds of LS-NMF"] / group["seconds to the Q of LS-NMF"]).dropna()
        # Starts are taken in turn until one of them is there.
        spent, lowest = group["seconds of nonneg"].cumsum(), group["LS-NMF"].min()
        seconds = [spent[group["nonneg"] <= lowest].min(), group["seconds of LS-NMF"].sum()]
        cells = [str(len(faster)), f"{faster.median():.0f}", f"{faster.min():.0f}"]
        lines.append([str(data), *cells, *(f"{value:.2g}" for value in seconds)])
    head = ["data", "starts that reach its Q", "times faster there, median", "least"]
    return markdown([*head, "CPU seconds to its lowest Q", "of all its starts"], lines)


PARTS = ("sources", "components", "intervals", "cost")
METHODS = ("bootstrap", "displacement")


def main() -> None:
    """Run the parts and print their tables, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--starts", type=int, default=20, help="random factors of sources")
    parser.add_argument("--draws", type=int, default=20, help="planted data of components and intervals")
    parser.add_argument("--designs", nargs="+", default=[*DESIGNS], choices=[*DESIGNS], help="of intervals")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS, help="of intervals")
    parser.add_argument("--repeats", type=int, default=5, help="of the times of cost")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    measured = {
        "sources": sources(options.starts),
        "components": components(options.draws),
        "intervals": intervals(options.draws, options.designs, options.methods),
        "cost": cost(options.repeats),
    }
    for part in options.parts:
        rows: list[Row] = []
        for row in measured[part]:
            rows.append({"part": part} | row)
            sys.stderr.write(f"{rows[-1]}\n")
        if options.write:
            rows = merge("uncertainties", rows, ("part", "case"))
            rows = [row for row in rows if row["part"] == part]
        more = f"{speed(rows)}\n\n" if part == "sources" else ""
        sys.stdout.write(f"{part}\n\n{table(part, rows)}\n\n{more}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
