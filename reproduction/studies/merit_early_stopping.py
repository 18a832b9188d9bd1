"""Anchors of early-stopped and of converged solutions of MERIT, over the weight of the penalty."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nonneg.datasets import SeparableData
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Curves, Figure, Measured, Paragraph, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.anchor_trials import PUBLISHED, blocks
from reproduction.registry import TITLES
from reproduction.studies.planted_anchors import CHOOSING, n_found, planted

NAME = "studies/merit-early-stopping"
STEPS = {"early": "open-loop", "converged": "fully-corrective"}
"""100 published steps, or steps until the duality gap is 1% of the objective."""
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Multiples of the automatic weight, which is another one for each of the two."""
N_DRAWS, CHOOSING_DRAWS, LARGE_DRAWS = 50, 10, 10
RATIOS, REPORTED_RATIOS = (5, 10, 20), (5, 10)
# Two means differ by more than sampling explains beyond this many standard errors (99% of a normal variable).
STANDARD_ERRORS = 2.58
COMPARED = {
    "converged": "converged",
    "early": "early-stopped",
    "published": "published",
    "spa": "SPA",
    "snpa": "SNPA",
}

REPORTED = (*CHOOSING, "duplicates", "scattered", "spectra", "laplace", "uneven")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings: the weights on choosing draws, then the draws that are reported."""
    if quick:
        small: dict[str, Any] = {
            "kind": "uniform",
            "n": 80,
            "m": 20,
            "k": 5,
            "snr": 15,
            "first_draw": 0,
            "n_draws": 1,
        }
        return [
            small | {"stage": stage, "stream": stream} for stage, stream in (("weights", 0), ("report", 1))
        ]
    usual: dict[str, Any] = {"m": 50, "k": 20}
    weights = [usual | {"kind": kind, "n": 1000, "snr": snr} for kind in CHOOSING for snr in RATIOS]
    report = [usual | {"kind": kind, "n": 300, "snr": snr} for kind in REPORTED for snr in REPORTED_RATIOS]
    large = [
        {"kind": kind, "n": 5000, "m": 50, "k": 40, "snr": 10.5} for kind in ("uniform", "near-duplicates")
    ]
    found = [
        {"stage": stage, "stream": stream, "threads": 1} | case | block
        for stage, stream, cases, n_draws in (
            ("report", 1, large, LARGE_DRAWS),
            ("weights", 0, weights, CHOOSING_DRAWS),
            ("report", 1, report, N_DRAWS),
        )
        for case in cases
        for block in blocks(n_draws, 1 if case["n"] == 5000 else 5)
    ]
    # Draw after draw, so that a part of the trials compares all kinds.
    return sorted(found, key=lambda setting: (-setting["n"], setting["first_draw"]))


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    return setting["n_draws"] * setting["n"] ** 1.5 * (5 if setting["stage"] == "weights" else 1)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run both on some draws."""
    sizes = (setting[name] for name in ("kind", "n", "m", "k", "snr"))
    first, part = setting["first_draw"], {"weights": _weights, "report": _report}[setting["stage"]]
    kind, n, m, k, snr = sizes
    return [
        {"draw": draw} | part(planted(kind, n, m, k, snr, draw, stream=setting["stream"]), k)
        for draw in range(first, first + setting["n_draws"])
    ]


def _merit(points: SeparableData, k: int, **params: Any) -> SelectionResult:
    return select_anchors(points.X, k, method="merit", method_params={"recovery": False} | params)


def _weights(points: SeparableData, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, steps in STEPS.items():
        lam = None
        # The automatic weight first: the others are multiples of it.
        for factor in sorted(FACTORS, key=lambda factor: factor != 1.0):
            weight: float | str = "auto" if lam is None else factor * lam
            result = _merit(points, k, steps=steps, lam=weight, choice="spread")
            lam = result.lam if lam is None else lam
            found[f"{name} {factor:g}"] = n_found(points, result.anchors)
    return found


def _report(points: SeparableData, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, steps in STEPS.items():
        started = time.perf_counter()
        result = _merit(points, k, steps=steps)
        found |= {
            name: n_found(points, result.anchors),
            f"{name} seconds": round(time.perf_counter() - started, 4),
            f"{name} gap": round(result.gap / result.objective, 5)
            if result.gap is not None and result.objective
            else None,
        }
    found["published"] = n_found(points, _merit(points, k, lam="paper", **PUBLISHED).anchors)
    for method in ("spa", "snpa"):
        found[method] = n_found(points, select_anchors(points.X, k, method=method).anchors)
    return found


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the window of weights, the comparison, and which one should be the default."""
    stages = {str(key[0]): found for key, found in grouped(records, "stage").items()}
    shown: list[Artifact] = [
        Paragraph(
            "Mean fraction of the anchors found. *Early-stopped* is the published run of 100 steps, "
            "*converged* has a duality gap of 1% (fully corrective steps). Each has the automatic weight "
            "that is made for it. The weights were chosen on the draws of the figure, of the kinds "
            f"{', '.join(CHOOSING)}. The tables report other draws, and kinds "
            "that were not used to choose anything: "
            f"{', '.join(kind for kind in REPORTED if kind not in CHOOSING)}."
        )
    ]
    if "weights" in stages:
        shown.append(_window(stages["weights"]))
    report = stages.get("report", [])
    if not report:
        return shown
    columns = {"kind": "kind", "n": "N", "k": "K", "snr": "dB", "draws": "draws"} | COMPARED
    rows, more = [], []
    for (n, k, kind, snr), group in sorted(
        grouped(report, "n", "k", "kind", "snr").items(),
        key=lambda item: (item[0][0], item[0][2], item[0][3]),
    ):
        head = {"kind": kind, "n": n, "k": k, "snr": snr, "draws": len(group)}
        rows.append(head | {name: Measured(*_share(group, name)) for name in COMPARED})
        measured = {
            f"{name} {what}": mean_and_spread([record[f"{name} {what}"] for record in group])[0]
            for name in ("converged", "early")
            for what in ("gap", "seconds")
        }
        more.append(head | measured)
    names = {
        f"{name} {what}": f"{title}: {label}"
        for what, label in (("gap", "gap / objective"), ("seconds", "seconds"))
        for name, title in (("converged", "converged"), ("early", "early-stopped"))
    }
    head = {"kind": "kind", "n": "N", "k": "K", "snr": "dB"}
    shown += [
        Table("Fraction of the anchors found, mean ± standard deviation over draws.", columns, rows, 3),
        Table(
            "Duality gap, and time on one core.",
            head | names,
            more,
            3,
        ),
        *_verdicts(report),
    ]
    return shown


def _share(group: Sequence[Record], name: str) -> tuple[float | None, float | None]:
    return mean_and_spread([record[name] / record["k"] for record in group])


def _window(records: Sequence[Record]) -> Figure:
    panels = [
        Curves(
            f"{kind}, N = {n}",
            "multiple of the automatic weight",
            "fraction of anchors found",
            [
                Series(
                    f"{'early-stopped' if name == 'early' else name}, {snr} dB",
                    FACTORS,
                    [_share(group, f"{name} {factor:g}")[0] for factor in FACTORS],
                )
                for name in STEPS
                for snr in RATIOS
                if (group := [record for record in some if record["snr"] == snr])
            ],
            x_log=True,
        )
        for (kind, n), some in grouped(records, "kind", "n").items()
    ]
    return Figure("weights", "Anchors found against the weight, choosing draws.", panels)


def _verdicts(report: Sequence[Record]) -> list[Verdict]:
    worse = {"early": [], "spa": []}  # type: dict[str, list[str]]
    better = 0
    for (n, kind, snr), group in grouped(report, "n", "kind", "snr").items():
        for other, cases in worse.items():
            apart = [(record["converged"] - record[other]) / record["k"] for record in group]
            mean, spread = mean_and_spread(apart)
            if mean is None or spread is None:
                continue
            error = STANDARD_ERRORS * spread / len(apart) ** 0.5
            if mean < -max(error, 1e-12):
                cases.append(f"{kind}, N = {n}, {snr} dB: {mean:+.3f}")
            elif other == "early" and mean > max(error, 1e-12):
                better += 1
    gaps = [record["converged gap"] for record in report if record["converged gap"] is not None]
    decided = len(report) > 10
    return [
        Verdict(
            "converged solutions never find fewer anchors than early-stopped ones, beyond sampling error",
            not worse["early"] if decided else None,
            "; ".join(worse["early"]) or f"more in {better} settings",
        ),
        Verdict(
            "nor fewer than SPA",
            not worse["spa"] if decided else None,
            "; ".join(worse["spa"]) or "in no setting",
        ),
        Verdict(
            "the duality gap is at most 1% in every draw",
            max(gaps) <= 0.01 if decided and gaps else None,
            f"largest {100 * max(gaps, default=0.0):.2f}%",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
