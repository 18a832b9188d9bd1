"""Blocks of a search for anchors: the anchors, how clearly they stand out, the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.io import Table
from nonneg.report import drawings, quality, records, wording
from nonneg.report import elements as html
from nonneg.report.fits import factor_map, restore
from nonneg.report.records import Record

__all__ = ["describe", "restore", "sections", "table"]

_N_LISTED = 200  # maximum number of anchors listed


def describe(model: Any, W: FloatArray, data: Table, seconds: float, *, title: str) -> Record:
    """Return the record of a selection of anchors."""
    chosen, values, k, names = model.result_, _ranked(model), model.n_components_, data.row_names
    # No margin where a greedy method does not look at the samples that it left.
    best_other = float(values[k]) if len(values) > k else None
    error = quality.observed_relative_error(data.X, W, model.components_)
    anchors = [
        {
            "component": at,
            "row": int(row),
            "name": None if names is None else names[row],
            "value": float(values[at]),
            "margin": None if best_other is None else float(values[at]) - best_other,
            "mean_weight": float(W[:, at].mean()),
        }
        for at, row in enumerate(model.anchor_indices_)
    ]
    margins = [entry["margin"] for entry in anchors if entry["margin"] is not None]
    result = {
        "method": chosen.method,
        "n_anchors": k,
        "measure": "score" if chosen.row_maxima is None else "row maximum",
        "unknown_rank": model.n_components is None,
        "margin": min(margins, default=None),
        "lam": chosen.lam,
        "duality_gap": model.duality_gap_,
        "relative_error": error,
        "explained": 1.0 - error**2,
        **records.run_facts(model, chosen, seconds),
    }
    about = records.table_facts(data)
    together = "sum to one" if model.sum_to_one_ else "are nonnegative"
    return Record(
        "anchors",
        title,
        f"{wording.counted(k, 'sample')} explain{'s' * (k == 1)} "
        f"{wording.percent(max(1.0 - error**2, 0.0))} of the squared norm of the data.",
        f"{wording.samples(about)}. Anchors by {wording.method(chosen.method)}, weights that {together}. "
        f"The search took {wording.ending(result)}.",
        {"anchors": k, "relative error": error, "smallest margin": result["margin"], "time": seconds},
        about,
        result,
        details={"anchors": anchors, "values": values[: 2 * k + 10]},  # as many as the page draws
        shown={"W": W, "rows": names},
        **records.of_estimator(model),
    )


def _ranked(model: Any) -> FloatArray:
    """Return the measure of the anchors, then that of the best other samples."""
    chosen = model.result_
    if chosen.row_maxima is not None:
        maxima = np.asarray(chosen.row_maxima)
        others = np.sort(np.delete(maxima, chosen.anchors))[::-1]
        return np.concatenate([maxima[chosen.anchors], others])
    scores = np.asarray(chosen.scores)
    return scores if chosen.best_left is None else np.append(scores, chosen.best_left)


def table(record: Record) -> list[dict[str, Any]]:
    """Return the anchors, one per row."""
    headings = {
        "component": "component", "row": "row", "name": "sample", "value": record.result["measure"],
        "margin": "margin", "mean_weight": "mean weight",
    }  # fmt: skip
    if record.shown["rows"] is None:
        del headings["name"]
    return [
        {heading: entry[name] for name, heading in headings.items()}
        for entry in record.details["anchors"][:_N_LISTED]
    ]


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    result, measure = record.result, record.result["measure"]
    # A greedy method measures each sample when it is picked.
    order = "in the order they were picked" if measure == "score" else "largest first"
    bars = drawings.ranked_bars(record.details["values"], result["n_anchors"], (f"samples, {order}", measure))
    said = "The anchors are in color, the best of the other samples follow."
    if result["unknown_rank"]:
        said = "The number of anchors was not given; those that were chosen are in color."
    return [
        html.section(
            "The anchors",
            "Every other sample is a mixture of these. The margin is the difference between an anchor's "
            f"{measure} and that of the best sample that is not an anchor: a large margin means a clear "
            "choice.",
            table(record),
        ),
        html.section("How clearly the anchors stand out", html.figure(bars, said)),
        html.section(
            "The weights",
            html.legend("0 to the maximum of each component"),
            factor_map(
                record.shown["W"].T, "sample", record.shown["rows"],
                "How much of each anchor is in each sample",
            ),
        ),
    ]  # fmt: skip
