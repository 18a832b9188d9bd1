"""Record and page of a search for anchors."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.io import Table
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.fits import factor_map, observed_relative_error, restore
from nonneg.report.record import Record, of_estimator, picked, run_facts, table_facts

__all__ = ["describe", "restore", "sections", "table"]

_N_LISTED = 200  # maximum number of anchors listed


def describe(model: Any, W: FloatArray, data: Table, seconds: float, *, title: str) -> Record:
    """Return the record of a selection of anchors."""
    chosen, k, names = model.result_, model.n_components_, data.row_names
    if chosen.row_maxima is None:
        measure, values = "score", np.asarray(chosen.scores)
        values = values if chosen.best_left is None else np.append(values, chosen.best_left)
    else:
        measure, maxima = "row maximum", np.asarray(chosen.row_maxima)
        others = np.sort(np.delete(maxima, chosen.anchors))[::-1]
        values = np.concatenate([maxima[chosen.anchors], others])
    # No margin where a greedy method does not look at the samples that it left.
    margins = (values[:k] - values[k]).tolist() if len(values) > k else [None] * k
    error = observed_relative_error(data.X, W, model.components_)
    anchors = [
        {
            "component": at,
            "row": int(row),
            "name": None if names is None else names[row],
            "value": float(values[at]),
            "margin": margins[at],
            "mean_weight": float(W[:, at].mean()),
        }
        for at, row in enumerate(model.anchor_indices_)
    ]
    result = {
        **picked(chosen, "method", "lam"),
        "n_anchors": k,
        "measure": measure,
        "unknown_rank": model.n_components is None,
        "margin": None if None in margins else min(margins),
        "duality_gap": model.duality_gap_,
        "relative_error": error,
        "explained": 1.0 - error**2,
        **run_facts(model, chosen, seconds),
    }
    about = table_facts(data)
    together = "sum to one" if model.sum_to_one_ else "are nonnegative"
    return Record(
        "anchors",
        title,
        f"{html.counted(k, 'sample')} explain{'s' * (k == 1)} "
        f"{html.percent(max(1.0 - error**2, 0.0))} of the squared norm of the data.",
        f"{html.samples(about)}. Anchors by {chosen.method}, weights that {together}. "
        f"The search took {html.ending(result)}.",
        {"anchors": k, "relative error": error, "smallest margin": result["margin"], "time": seconds},
        about,
        result,
        details={"anchors": anchors, "values": values[: 2 * k + 10]},  # as many as the page draws
        shown={"W": W, "rows": names},
        **of_estimator(model),
    )


def table(record: Record) -> list[dict[str, Any]]:
    """Return the anchors, one per row."""
    columns = {"component": "component", "row": "row", "name": "sample", "value": record.result["measure"]}
    columns |= {"margin": "margin", "mean_weight": "mean weight"}
    return html.rows_of(record.details["anchors"][:_N_LISTED], columns)


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    measure, values = record.result["measure"], record.details["values"]
    # A greedy method measures each sample when it is picked.
    order = "in the order they were picked" if measure == "score" else "largest first"
    ranked = drawings.curve(
        range(1, len(values) + 1), values, (f"samples, {order}", measure), mark=record.result["n_anchors"]
    )
    return [
        html.section(
            "The anchors",
            "Every other sample is a mixture of these. The margin is the difference between an anchor's "
            f"{measure} and that of the best sample that is not an anchor: a large margin means a clear "
            "choice. The last anchor is marked in the curve.",
            table(record),
            html.side_by_side([ranked]),
        ),
        html.section(
            "The weights",
            html.legend("0 to the maximum of each component"),
            factor_map(
                record.shown["W"].T, "sample", record.shown["rows"],
                "How much of each anchor is in each sample",
            ),
        ),
    ]  # fmt: skip
