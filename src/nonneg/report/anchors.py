"""Record of a search for anchors."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg.io import Table
from nonneg.report import drawings, words
from nonneg.report.fits import observed_relative_error
from nonneg.report.record import Record, block, of_estimator, picked, run_facts, table_facts

_N_LISTED = 200  # maximum number of anchors listed


def describe(model: Any, data: Table, seconds: float, *, W: Any = None) -> Record:
    """Return the record of a selection of anchors."""
    W, about = to_numpy(model.transform(data.X) if W is None else W), table_facts(data)
    chosen, k, names = model.result_, model.n_components_, data.row_names
    if chosen.row_maxima is None:
        # A greedy method measures each sample when it is picked.
        measure, order, values = "score", "in the order they were picked", np.asarray(chosen.scores)
        values = values if chosen.best_left is None else np.append(values, chosen.best_left)
    else:
        measure, order, maxima = "row maximum", "largest first", np.asarray(chosen.row_maxima)
        others = np.sort(np.delete(maxima, chosen.anchors))[::-1]
        values = np.concatenate([maxima[chosen.anchors], others])
    # No margin where a greedy method does not look at the samples that it left.
    margins = (values[:k] - values[k]).tolist() if len(values) > k else [None] * k
    error, rows = observed_relative_error(data.X, W, model.components_), model.anchor_indices_.tolist()
    anchors = words.entries_of(
        component=range(k),
        row=rows,
        name=[None if names is None else names[row] for row in rows],
        value=values[:k].tolist(),
        margin=margins,
        mean_weight=W.mean(axis=0).tolist(),
    )
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
    columns = {"component": "component", "row": "row", "name": "sample", "value": measure}
    columns |= {"margin": "margin", "mean_weight": "mean weight"}
    together, ranked = "sum to one" if model.sum_to_one_ else "are nonnegative", values[: 2 * k + 10]
    return Record(
        "anchors",
        f"Anchors of {about['source']}",
        f"{words.counted(k, 'sample')} explain{'s' * (k == 1)} "
        f"{words.percent(max(1.0 - error**2, 0.0))} of the squared norm of the data.",
        f"{words.samples(about)}. Anchors by {chosen.method}, weights that {together}. "
        f"The search took {words.ending(result)}.",
        {"anchors": k, "relative error": error, "smallest margin": result["margin"], "time": seconds},
        about,
        result,
        details={"anchors": anchors},
        table=words.rows_of(anchors[:_N_LISTED], columns),
        sections=[
            [
                "The anchors",
                "Every other sample is a mixture of these. The margin is the difference between an anchor's "
                f"{measure} and that of the best sample that is not an anchor: a large margin means a clear "
                "choice. The last anchor is marked in the curve.",
                block("table"),
                drawings.curves(range(1, len(ranked) + 1), {measure: ranked}, f"samples, {order}", k),
            ],
            [
                "The weights",
                block("legend", words="0 to the maximum of each component"),
                drawings.factor_map(W.T, "sample", names, "How much of each anchor is in each sample"),
            ],
        ],
        **of_estimator(model),
    )
