"""The report of a search for anchors: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.report import figures, wording
from nonneg.report.rendering import drawing, render

N_LISTED = 200
"""Maximum number of anchors listed."""
_N_SORTED = 30


def anchor_sentence(record: Mapping[str, Any]) -> str:
    """Describe the result in one sentence."""
    result = record["result"]
    k = result["n_anchors"]
    subject = "1 sample explains" if k == 1 else f"{wording.number(k)} samples explain"
    return f"{subject} {wording.percent(max(result['explained'], 0.0))} of the squared norm of the data."


def build_anchor_page(record: Mapping[str, Any], W: FloatArray, names: Sequence[str] | None = None) -> str:
    """Write the report of a search for anchors."""
    result, history = record["result"], record.get("history", {})
    losses = history.get("loss", [])
    order, ordered = np.arange(len(W)), ""
    if len(W) > _N_SORTED:
        order = np.lexsort((-W.max(axis=1), W.argmax(axis=1)))
        ordered = ", sorted by the largest weight"
    shown = None if ordered else names
    context = {
        "title": record["title"],
        "answer": anchor_sentence(record),
        "outcome": _outcome(record),
        "tiles": _tiles(record),
        "measure": result["measure"],
        "named": names is not None,
        "rows": [_row(entry) for entry in record["anchors"][:N_LISTED]],
        "bars": drawing(
            figures.ranked_bars(
                record["values"], result["n_anchors"], result["measure"], order=_order(record)
            )
        ),
        "bars_text": _bars_text(record),
        "curves": [
            drawing(figures.convergence(losses, history[key], label))
            for key, label in (("n_iter", "iteration"), ("seconds", "seconds"))
            if losses and key in history
        ],
        "weights": drawing(figures.heat_map(W[order].T, "sample", shown, ordered=bool(ordered))),
        "order": ordered,
        "certificate": [wording.statement(entry) for entry in record.get("certificate", [])],
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("anchors.html", context)


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "component": entry["component"],
        "row": wording.number(entry["row"]),
        "name": entry.get("name"),
        "value": wording.number(entry["value"]),
        "margin": wording.number(entry["margin"]),
        "weight": wording.number(entry["mean_weight"]),
    }


def _outcome(record: Mapping[str, Any]) -> str:
    result, data = record["result"], record["data"]
    rows, columns = data["shape"]
    reason = result["stop_reason"]["sentence"].strip().rstrip(".").replace("`", "")
    together = "sum to one" if result["sum_to_one"] else "are nonnegative"
    n_iter, duration = wording.counted(result["n_iter"], "iteration"), wording.seconds(result["seconds"])
    return (
        f"{wording.counted(rows, 'sample')} with {wording.counted(columns, 'feature')} from "
        f"{data['source']}. Anchors by {result['method']}, weights that {together}. The search took "
        f"{n_iter} and {duration}, and stopped because {reason}."
    )


def _bars_text(record: Mapping[str, Any]) -> str:
    result = record["result"]
    if result["unknown_rank"]:
        return "The number of anchors was taken from the largest drop."
    text = f"The {wording.number(result['n_anchors'])} anchors are in color."
    if result["measure"] == "score" and result["margin"] is not None:
        text += " They are followed by the best of the other samples."
    return text


def _order(record: Mapping[str, Any]) -> str:
    # A greedy method measures each point when it is picked.
    return "in the order they were picked" if record["result"]["measure"] == "score" else "largest first"


def _tiles(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    result = record["result"]
    tiles = [
        ("anchors", wording.number(result["n_anchors"])),
        ("relative error", wording.number(result["relative_error"])),
        ("smallest margin", wording.number(result["margin"])),
        ("time", wording.seconds(result["seconds"])),
    ]
    if result["duality_gap"] is not None:
        tiles.insert(3, ("duality gap", wording.number(result["duality_gap"])))
    return tiles


def _facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    data, result = record["data"], record["result"]
    rows, columns = data["shape"]
    about_data = [
        ("source", data["source"]),
        ("shape", f"{wording.number(rows)} \N{MULTIPLICATION SIGN} {wording.number(columns)}"),
        ("entries", data["dtype"]),
    ]
    shown = ("method", "lam", "objective", "duality_gap", "relative_error", "n_iter")
    about_result = [wording.fact(name, result[name]) for name in shown if result[name] is not None]
    steps = [(name, str(value)) for name, value in result["steps"].items()]
    parameters = [(name, wording.number(value)) for name, value in record.get("parameters", {}).items()]
    groups = [("Data", about_data), ("Result", about_result), ("Parameters", parameters)]
    return [*groups, ("Preprocessing", steps)] if steps else groups
