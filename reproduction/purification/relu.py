"""The same runs with and without the ReLU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.purification.planted_artifacts import (
    Groups,
    has_all,
    iteration_series,
    median_table,
    panel,
    worst_of,
)
from reproduction.purification.planted_runs import cost, run, settings
from reproduction.registry import TITLES

NAME = "purification/relu"
N_DRAWS = 5
N, S, ALPHA = 12, 2.0, 0.25
SYMMETRIES = ("symmetric", "skew", "neither")
RULES = {"shifted": "with the ReLU", "linear": "without it"}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per initialization, decoding and update."""
    p = S / N
    cases: list[dict[str, Any]] = []
    for symmetry in SYMMETRIES:
        start = {} if symmetry == "neither" else {"symmetry": symmetry}
        for rule in RULES:
            kept = 1.0 - ALPHA if rule == "shifted" else 1.0
            scale = {"decode": rule, "r": 1.0 / (2 * p * (1 - p) * kept), "eta": 0.5, "alpha": ALPHA}
            cases.append({"shape": symmetry, "update": "covariance"} | start | scale)
        regression = {"shape": symmetry, "update": "regression", "samples": 2000}
        cases += [regression | start, regression | start | {"decode": "linear"}]
    common = {"n": N, "m": 36, "s": S, "samples": "population", "pseudo_inverse": "moore-penrose"}
    return settings(cases, 1 if quick else N_DRAWS, common=common | {"curve": True})


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the error by iteration, a table, and the claims."""
    told = [
        dict(record) | {"rule": "linear" if record.get("decode") == "linear" else "relu"}
        for record in records
    ]
    groups = grouped(told, "update", "rule", "shape")
    panels = [
        panel(
            f"{update} update",
            "iteration",
            [
                iteration_series(f"{place[2]}, {'without' if place[1] == 'linear' else 'with'}", group)
                for place, group in groups.items()
                if place[0] == update
            ],
            y_label="||E||_1",
            x_log=False,
        )
        for update in ("covariance", "regression")
        if any(place[0] == update for place in groups)
    ]
    return [
        Figure("relu", "||E||_1 by iteration, with and without the ReLU, medians over draws.", panels),
        median_table(
            "Medians over draws after 60 iterations. For the linear runs also the distance of M from the "
            "polar factor of its initialization (largest entry), and how much that rotation mixes.",
            groups,
            {"update": "update", "rule": "decoding", "shape": "E of the initialization"},
            {
                "begin": "initial ||E||_1",
                "e_norm": "final ||E||_1",
                "from_rotation": "distance to the polar factor",
                "rotation": "||polar factor - I||_1",
            },
            3,
        ),
        *_verdicts(groups),
    ]


def _verdicts(groups: Groups) -> list[Verdict]:
    with_it = [(update, "relu", shape) for update in ("covariance", "regression") for shape in SYMMETRIES]
    turned = [("covariance", "linear", shape) for shape in ("skew", "neither")]
    even = [("covariance", "linear", "symmetric")]
    linear = [("covariance", "linear", shape) for shape in SYMMETRIES]
    unmoved = [("regression", "linear", shape) for shape in SYMMETRIES]

    def kept(places: Sequence[tuple[Any, ...]]) -> list[float]:
        return [record["e_norm"] / record["begin"] for place in places for record in groups.get(place, [])]

    left, stays = kept(turned), kept(unmoved)
    growth = kept(even)
    return [
        Verdict(
            "with the ReLU both updates end at ||E||_1 <= 1e-10 from every initialization",
            worst_of(groups, with_it, "e_norm") <= 1e-10 if has_all(groups, with_it, N_DRAWS) else None,
            f"worst {worst_of(groups, with_it, 'e_norm'):.1e}",
        ),
        Verdict(
            "without it the published update fails: at least a quarter of ||E||_1 stays where E is not "
            "symmetric",
            min(left) >= 0.25 if has_all(groups, turned, N_DRAWS) else None,
            f"{min(left):.2f} to {max(left):.2f} of it stays" if left else "no trials",
        ),
        Verdict(
            "without it the published update ends at the polar factor of the mixing it began with, to 1e-8",
            worst_of(groups, linear, "from_rotation") <= 1e-8 if has_all(groups, linear, N_DRAWS) else None,
            f"worst entry {worst_of(groups, linear, 'from_rotation'):.1e}",
        ),
        Verdict(
            "without it the regression update does not move: all of ||E||_1 stays",
            min(stays) > 0.999 and max(stays) < 1.001 if has_all(groups, unmoved, N_DRAWS) else None,
            f"{min(stays):.3f} to {max(stays):.3f} of it stays" if stays else "no trials",
        ),
        Verdict(
            "as the paper says, without it E grows where E and its transpose share signs",
            min(growth) > 1 if has_all(groups, even, N_DRAWS) else None,
            f"{max(growth):.1e} of ||E||_1 is left: it vanishes there, for the reason given above"
            if growth
            else "no trials",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
