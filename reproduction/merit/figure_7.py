"""Figure 7: the memory of the searches on the co-authorship networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nonneg.applications.communities import leading_eigenvectors
from nonneg.applications.communities.methods import (
    MERIT_GAP,
    MERIT_ITERATIONS,
    MERIT_LAM,
    energetic_nodes,
)
from reproduction.artifacts import Artifact, Curves, Figure, Measured, Paragraph, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.merit.coauthor_networks import (
    ENERGY,
    METHODS,
    NEEDED,
    NETWORKS,
    lacking_sentence,
    load_network,
    networks_at_hand,
)
from reproduction.merit.peak_memory import can_measure, measured_peak
from reproduction.registry import TITLES

NAME = "merit/figure-7"
SHOWN = ("merit", "merit-0", "spa", "fast-gradient", "default")
NAMES = METHODS | {"default": "select_anchors(X, k)"}
FAST_GRADIENT_STEPS = 5
FAST_GRADIENT_LIMIT = 16e9
LARGEST = "dblp1"
# More than 2 GB against less than 0.3.
RATIO = 2.0 / 0.3


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per network and method."""
    methods = ("merit", "fast-gradient") if quick else SHOWN
    return [
        {"network": network, "method": method, "threads": 1}
        for network in networks_at_hand(quick)
        for method in methods
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    network = load_network(setting["network"])
    vectors = leading_eigenvectors(network.adjacency, network.k).vectors
    points = vectors[energetic_nodes(vectors, ENERGY)]
    method = setting["method"]
    options: dict[str, Any] = {} if method == "default" else {"method": method}
    if method.startswith("merit"):
        lam = MERIT_LAM if method == "merit" else 0.0
        options = {"method": "merit", "tol": MERIT_GAP, "max_iter": MERIT_ITERATIONS}
        options["method_params"] = {"lam": lam, "recovery": False}
    elif method == "fast-gradient":
        options |= {"max_iter": FAST_GRADIENT_STEPS, "rng": 0}
        options["method_params"] = {"memory_limit": FAST_GRADIENT_LIMIT}
    return [measured_peak(points, network.k, options) | {"n": len(points), "k": network.k}]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, a table, and the claims."""
    found = {key: group[-1] for key, group in grouped(records, "method", "network").items()}
    names = sorted({record["network"] for record in records}, key=lambda name: _size(found, name))
    present = [method for method in SHOWN if any(key[0] == method for key in found)]
    panels = [
        Curves(
            words,
            "N",
            "MB",
            [
                Series(
                    NAMES[method],
                    [found[method, name]["n"] for name in names if (method, name) in found],
                    [max(found[method, name][entry], 0.1) for name in names if (method, name) in found],
                )
                for method in present
            ],
            x_log=True,
            y_log=True,
        )
        for entry, words in (("process", "whole process"), ("search", "search alone"))
    ]
    columns = {"network": "network", "n": "N"}
    columns |= {
        f"{entry} {method}": f"{NAMES[method]}, {entry} (MB)"
        for entry in ("process", "search")
        for method in present
    }
    rows = []
    for name in names:
        row: dict[str, Any] = {"network": NETWORKS.get(name, name), "n": _size(found, name)}
        for method in present:
            for entry in ("process", "search"):
                cell = found.get((method, name))
                row[f"{entry} {method}"] = Measured(None if cell is None else cell[entry])
        rows.append(row)
    artifacts: list[Artifact] = [
        Figure("peak-memory", "Peak resident memory against the number of nodes kept.", panels),
        Table("Peak resident memory.", columns, rows, 3),
        *_verdicts(found),
    ]
    missing = lacking_sentence(names)
    return [*artifacts, Paragraph(missing)] if missing else artifacts


def _size(found: dict[tuple[Any, ...], dict[str, Any]], network: str) -> int:
    return int(next(record["n"] for key, record in found.items() if key[1] == network))


def _verdicts(found: dict[tuple[Any, ...], dict[str, Any]]) -> list[Verdict]:
    words = NETWORKS[LARGEST]
    verdicts = []
    for method in ("merit", "merit-0", "default"):
        record = found.get((method, LARGEST))
        verdicts.append(
            Verdict(
                f"{NAMES[method]} needs less than 300 MB on {words}, the whole process included",
                None if record is None else record["process"] < 300,
                "not measured"
                if record is None
                else f"{record['process']:.0f} MB, of which selection {record['search']:.0f} MB",
            )
        )
    merit, fast = found.get(("merit", LARGEST)), found.get(("fast-gradient", LARGEST))
    verdicts.append(
        Verdict(
            f"FastGradient needs more than {RATIO:.1f} times as much as MERIT on {words}, whole processes "
            "compared, as published (more than 2 GB against less than 0.3)",
            fast["process"] > RATIO * merit["process"] if merit is not None and fast is not None else None,
            f"{fast['process'] / 1000:.2f} GB, including five N x N arrays; the authors' code needs more"
            if fast is not None
            else "not measured",
        )
    )
    return verdicts


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=NEEDED,
    quick_data_sets=(),
    parallel=False,
    lacks=lambda quick: (
        None if can_measure() else "memory is read from /proc/self/status, which only Linux has."
    ),
)
