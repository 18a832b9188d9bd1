"""The default of MERIT on planted anchors: its weight and choice of anchors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Curves, Figure, Paragraph, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.anchor_trials import PUBLISHED, blocks
from reproduction.merit.rates import Rate, rate_cell
from reproduction.registry import TITLES
from reproduction.studies.planted_anchors import CHOOSING, KINDS, n_found, planted

NAME = "studies/merit-weight"
N_DRAWS, BATCH = 50, 10
CHOOSING_DRAWS, UNIT_DRAWS = 5, 10
SHOWN = ("uniform", "sparse", "near-duplicates", "duplicates", "scattered")
WINDOW = (0.05, 0.2, 1.0, 3.0, 10.0, 30.0)
"""Multiples of the automatic weight of which the page shows the window."""
GRID = (0.2, 1.0, 5.0)
"""Multiples whose best the default is compared with, where a setting says so; 1 is the default."""
GREEDY = {"spa": "SPA", "snpa": "SNPA", "xray": "XRAY", "fast-anchor": "FastAnchor"}
UNITS = (1e-6, 1e6)
# Two means differ by more than sampling explains beyond this many standard errors (99% of a normal variable).
STANDARD_ERRORS = 2.58


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings: the window of weights on choosing draws, then the draws that are reported."""
    if quick:
        small = {"n": 100, "m": 20, "k": 5, "snr": 20}
        cases = [
            {"stage": "window", "kind": "uniform", "stream": 0} | small,
            {"stage": "rates", "kind": "near-duplicates", "stream": 1} | small,
            {"stage": "rivals", "kind": "near-duplicates", "stream": 1} | small,
            {"stage": "units", "kind": "uniform", "stream": 1} | small,
        ]
        return [case | {"first_draw": 0, "n_draws": 2} for case in cases]
    usual: dict[str, Any] = {"m": 50, "k": 20, "n": 300}
    window = [
        usual | {"kind": kind, "n": n, "k": k, "snr": 10}
        for kind in CHOOSING
        for n, k in ((100, 20), (300, 20), (600, 20), (300, 5), (300, 40))
    ]
    rates = [usual | {"kind": kind, "snr": snr} for kind in SHOWN for snr in (5, 10, 20)]
    plain = usual | {"grid": 0}
    rates += [plain | {"kind": kind, "snr": 10} for kind in ("spectra", "laplace", "uneven")]
    rates += [plain | {"kind": "spectra", "snr": 20}, plain | {"kind": "uniform", "snr": 30}]
    rates += [
        plain | {"kind": kind, "k": k, "m": m, "snr": 10}
        for kind, k, m in (
            *(("uniform", 5, 20), ("uniform", 5, 100), ("uniform", 10, 50), ("uniform", 40, 50)),
            *(("uniform", 40, 100), ("near-duplicates", 5, 20), ("near-duplicates", 40, 50)),
        )
    ]
    rates += [
        {"kind": kind, "n": n, "m": 50, "k": 40, "snr": 10.5, "grid": 0}
        for kind, n in (("uniform", 100), ("near-duplicates", 100), ("uniform", 1000))
    ]
    units = [usual | {"kind": kind, "snr": 10} for kind in ("uniform", "near-duplicates")]
    return [
        {"stage": stage, "stream": stream} | case | block
        for stage, stream, cases, n_draws in (
            ("rates", 1, rates, N_DRAWS),
            ("rivals", 1, rates, N_DRAWS),
            ("units", 1, units, UNIT_DRAWS),
            ("window", 0, window, CHOOSING_DRAWS),
        )
        for case in cases
        for block in blocks(n_draws, BATCH)
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run the methods on some draws."""
    stages = {"window": _window, "rates": _rates, "rivals": _rivals, "units": _units}
    stage = stages[setting["stage"]]
    first = setting["first_draw"]
    return [
        {"draw": draw} | stage(setting, _draw(setting, draw))
        for draw in range(first, first + setting["n_draws"])
    ]


def _draw(setting: Setting, draw: int) -> Any:
    n, m, k = (setting[name] for name in ("n", "m", "k"))
    return planted(setting["kind"], n, m, k, setting["snr"], draw, stream=setting["stream"])


def _merit(X: FloatArray, k: int | None, **params: Any) -> SelectionResult:
    return select_anchors(X, k, method="merit", method_params={"recovery": False} | params)


def _window(setting: Setting, points: Any) -> dict[str, Any]:
    k = setting["k"]
    lam = _merit(points.X, k).lam or 0.0
    return {
        f"x {factor:g}": n_found(points, _merit(points.X, k, lam=factor * lam, choice="spread").anchors)
        for factor in WINDOW
    }


def _rates(setting: Setting, points: Any) -> dict[str, Any]:
    X, k = points.X, setting["k"]
    result = _merit(X, k)
    lam = result.lam or 0.0
    found: dict[str, Any] = {"x 1": n_found(points, result.anchors)}
    for factor in GRID if setting.get("grid", 1) else ():
        if factor != 1.0:
            found[f"x {factor:g}"] = n_found(points, _merit(X, k, lam=factor * lam).anchors)
    return found


def _rivals(setting: Setting, points: Any) -> dict[str, Any]:
    X, k = points.X, setting["k"]
    published = _merit(X, k, lam="paper", **PUBLISHED)
    found = {"published": n_found(points, published.anchors)}
    for method in GREEDY:
        # XRAY takes nonnegative data; the noise has made some entries negative.
        data = np.maximum(X, 0.0) if method == "xray" else X
        found[method] = n_found(points, select_anchors(data, k, method=method, rng=0).anchors)
    return found


def _units(setting: Setting, points: Any) -> dict[str, Any]:
    k = setting["k"]
    anchors = select_anchors(points.X, k).anchors.tolist()
    return {
        f"{unit:g}": int(select_anchors(unit * points.X, k).anchors.tolist() == anchors) for unit in UNITS
    }


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables and the claims."""
    by_stage = grouped(records, "stage")
    artifacts: list[Artifact] = []
    if window := by_stage.get(("window",), []):
        artifacts += _window_artifacts(window)
    if rates := _compared(by_stage.get(("rates",), []), by_stage.get(("rivals",), [])):
        artifacts += _rate_tables(rates)
    return [*artifacts, *_verdicts(rates, by_stage.get(("units",), []))]


def _compared(mine: Sequence[Record], rivals: Sequence[Record]) -> list[Record]:
    """Join what the default and the others found on the same draws."""
    draws = ("kind", "n", "m", "k", "snr", "draw")
    others = {tuple(record[name] for name in draws): record for record in rivals}
    keys = [tuple(record[name] for name in draws) for record in mine]
    return [{**others[key], **record} for key, record in zip(keys, mine, strict=True) if key in others]


def _window_artifacts(records: Sequence[Record]) -> list[Artifact]:
    panels = []
    for snr in sorted({record["snr"] for record in records}):
        here = [record for record in records if record["snr"] == snr]
        series = []
        for (n, k), group in sorted(grouped(here, "n", "k").items()):
            shares = [float(np.mean([r[f"x {factor:g}"] / k for r in group])) for factor in WINDOW]
            series.append(Series(f"N = {n}, K = {k}", list(WINDOW), shares))
        panels.append(Curves(f"{snr:g} dB", "weight / automatic weight", "anchors found", series, x_log=True))
    caption = (
        "The window of weights on the choosing draws: share of the anchors found against the weight in "
        f"multiples of the automatic one, mean over {', '.join(CHOOSING)} and draws (without SPA's anchors "
        "as an alternative)."
    )
    return [Figure("window", caption, panels, n_columns=2)]


def _cases(records: Sequence[Record]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    return grouped(records, "kind", "n", "m", "k", "snr")


def _counts(group: Sequence[Record], name: str) -> FloatArray:
    return np.array([record[name] for record in group], dtype=np.float64)


def _rate(group: Sequence[Record], name: str, k: int) -> Rate:
    return Rate(int(np.sum(_counts(group, name) == k)), len(group))


HEADS = {"kind": "samples", "n": "N", "m": "M", "k": "K", "snr": "SNR (dB)"}


def _rate_tables(records: Sequence[Record]) -> list[Artifact]:
    names = {"x 1": "default", "best": "best weight", "published": "published MERIT"} | GREEDY
    counts, rates = [], []
    for (kind, n, m, k, snr), group in _cases(records).items():
        head = {"kind": kind, "n": n, "m": m, "k": k, "snr": snr}
        plain = [name for name in names if name != "best"]
        means = {name: mean_and_spread(_counts(group, name).tolist())[0] for name in plain}
        grid = [f"x {factor:g}" for factor in GRID if f"x {factor:g}" in group[0]]
        best = max(float(np.mean(_counts(group, name))) for name in grid) if len(grid) > 1 else None
        counts.append(head | means | {"best": best})
        top = max(_rate(group, name, k).value for name in grid) if len(grid) > 1 else None
        rates.append(
            head
            | {"x 1": rate_cell(_rate(group, "x 1", k)), "best": top}
            | {name: _rate(group, name, k).value for name in ("published", *GREEDY)}
        )
    words = ", ".join(f"{factor:g}" for factor in GRID)
    shown = {record["kind"]: None for record in records}
    return [
        Paragraph("Samples: " + "; ".join(f"**{kind}**, {KINDS[kind]}" for kind in shown) + "."),
        Table(
            f"Anchors found, mean over draws. Best weight: the best of {words} times the automatic one.",
            HEADS | names,
            counts,
            3,
        ),
        Table("Share of the draws in which all anchors were found.", HEADS | names, rates, 3),
    ]


def _verdicts(records: Sequence[Record], units: Sequence[Record]) -> list[Verdict]:
    full = {key: group for key, group in _cases(records).items() if len(group) >= N_DRAWS}
    others = {"spa": "SPA", "published": "the published weight and choice of anchors", "snpa": "SNPA"}
    others |= {f"x {factor:g}": f"{factor:g} times its weight" for factor in GRID if factor != 1}
    return [
        *(_never_below(full, name, words) for name, words in others.items()),
        Verdict(
            "multiplying X by 1e-6 or 1e6 changes no anchor",
            all(record[f"{unit:g}"] for record in units for unit in UNITS)
            if len(units) >= UNIT_DRAWS
            else None,
            f"{len(units)} draws",
        ),
    ]


def _never_below(cases: dict[tuple[Any, ...], list[dict[str, Any]]], name: str, words: str) -> Verdict:
    claim = f"the default finds as many anchors as {words}, up to sampling error, in every setting"
    worse, compared = [], 0
    for (kind, n, m, k, snr), group in cases.items():
        if name not in group[0]:
            continue
        compared += 1
        difference = _counts(group, "x 1") - _counts(group, name)
        error = float(np.std(difference, ddof=1)) / math.sqrt(len(group))
        if np.mean(difference) < -STANDARD_ERRORS * error:
            worse.append(f"{kind}, N = {n}, M = {m}, K = {k}, {snr:g} dB: {np.mean(difference):.2f}")
    return Verdict(claim, not worse if compared else None, "; ".join(worse) or f"{compared} settings")


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    return float(setting["n_draws"] * (1 + (setting["n"] / 300) ** 2) * (1 + setting["k"] / 20))


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
