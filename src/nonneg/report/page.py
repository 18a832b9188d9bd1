"""The report of a fit: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.images import data_address, picture_png
from nonneg.report import figures, wording
from nonneg.report.quality import component_strengths
from nonneg.report.rendering import drawing, render

N_PICTURES = 100
"""Maximum number of components shown as images: the strongest."""
N_LISTED = 60
"""Maximum number of components listed with their strongest features."""
_N_TOP = 8
_N_SORTED = 30


@dataclass(frozen=True)
class Fit:
    """All that the page shows."""

    record: Mapping[str, Any]  # the contents of result.json
    W: FloatArray  # the left factor
    H: FloatArray  # the right factor
    row_names: Sequence[str] | None = None  # names of samples and features
    column_names: Sequence[str] | None = None
    examples: FloatArray | None = None  # rows of the data to set beside what the components make of them


def build_page(fit: Fit) -> str:
    """Write the report of a fit."""
    record = fit.record
    scale = record["result"].get("column_scale")
    # Features compare with each other by their part of a column, not by its unit.
    relative = fit if scale is None else replace(fit, H=fit.H / np.asarray(scale))
    shares = component_strengths(fit.W, relative.H)
    history = record.get("history", {})
    losses = history.get("loss", [])
    context = {
        "title": record["title"],
        "answer": wording.answer(record),
        "outcome": wording.outcome(record),
        "tiles": wording.tiles(record),
        "hints": wording.hints(record),
        "labels": _labels(record),
        "curves": [
            drawing(figures.convergence(losses, history[key], label))
            for key, label in (("n_iter", "iteration"), ("seconds", "seconds"))
            if losses and key in history
        ],
        "pictures": _pictures(fit, shares),
        "examples": _examples(fit),
        "strengths": drawing(figures.strengths(shares)),
        "maps": [(text, drawing(svg)) for text, svg in _heat_maps(relative)],
        "top": _top_lists(relative, shares),
        "scaled": scale is not None,
        "certificate": [wording.statement(entry) for entry in record.get("certificate", [])],
        "comparison": record.get("comparison"),
        "facts": wording.facts(record),
        "versions": record.get("versions", {}),
    }
    return render("report.html", context)


def _labels(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Show the mean shares of the components next to the classes of the samples."""
    labels = record["result"].get("labels")
    if not labels:
        return None
    rows = [
        {
            "name": name,
            "count": count,
            "shares": [(wording.percent(one), round(100 * one)) for one in shares],
        }
        for name, count, shares in zip(labels["classes"], labels["counts"], labels["shares"], strict=True)
    ]
    return {
        "name": labels["name"],
        "sentence": wording.label_sentence(record),
        "components": range(len(labels["shares"][0])),
        "rows": rows,
    }


def _image_shape(record: Mapping[str, Any]) -> tuple[int, int] | None:
    shape = record.get("image_shape")
    return None if shape is None else (int(shape[0]), int(shape[1]))


def _pictures(fit: Fit, shares: FloatArray) -> list[dict[str, Any]]:
    """Show each component as an image, black where it is strongest."""
    shape = _image_shape(fit.record)
    if shape is None:
        return []
    shown = np.sort(np.argsort(-shares, kind="stable")[:N_PICTURES])
    return [
        {
            "source": data_address(picture_png(fit.H[at].reshape(shape))),
            "label": f"{at}",
            "share": wording.percent(float(shares[at])),
        }
        for at in shown.tolist()
    ]


def _examples(fit: Fit) -> list[dict[str, str]]:
    """Show rows of the data next to their reconstruction, in the same shades."""
    shape = _image_shape(fit.record)
    if shape is None or fit.examples is None:
        return []
    pairs = []
    for row, entries in zip(fit.record["examples"], fit.examples, strict=True):
        model = fit.W[row] @ fit.H
        entries = np.nan_to_num(entries)
        largest = float(max(entries.max(), model.max()))
        name = f"{row}" if fit.row_names is None else fit.row_names[row]
        pairs.append(
            {
                "name": name,
                "data": data_address(picture_png(entries.reshape(shape), largest)),
                "model": data_address(picture_png(model.reshape(shape), largest)),
            }
        )
    return pairs


def _heat_maps(fit: Fit) -> list[tuple[str, str]]:
    samples, names, order = _sorted_by_component(fit.W.T, fit.row_names)
    maps = [
        (
            f"W: how much of each component is in each sample{order}.",
            figures.heat_map(samples, "sample", names, ordered=bool(order)),
        )
    ]
    if _image_shape(fit.record) is None:
        features, names, order = fit.H, fit.column_names, ""
        if names is not None:  # without names the order may mean something: wavelengths, time
            features, names, order = _sorted_by_component(fit.H, names)
        maps.append(
            (
                f"H: how much of each feature is in each component{order}.",
                figures.heat_map(features, "feature", names, ordered=bool(order)),
            )
        )
    return maps


def _sorted_by_component(
    factor: FloatArray, names: Sequence[str] | None
) -> tuple[FloatArray, Sequence[str] | None, str]:
    """Put together what belongs to the same component, unless there is room for all names."""
    if factor.shape[1] <= _N_SORTED:
        return factor, names, ""
    scaled = figures.scaled_rows(factor)
    order = np.lexsort((-scaled.max(axis=0), scaled.argmax(axis=0)))
    return factor[:, order], None, ", sorted by the strongest component"


def _top_lists(fit: Fit, shares: FloatArray) -> dict[str, Any] | None:
    if fit.column_names is None and fit.row_names is None:
        return None
    shown = np.argsort(-shares, kind="stable")[:N_LISTED]
    return {
        "with_features": fit.column_names is not None,
        "with_samples": fit.row_names is not None,
        "rows": [
            {
                "component": at,
                "share": wording.percent(float(shares[at])),
                "features": _strongest(fit.H[at], fit.column_names),
                "samples": _strongest(fit.W[:, at], fit.row_names),
            }
            for at in shown.tolist()
        ],
    }


def _strongest(weights: FloatArray, names: Sequence[str] | None) -> list[tuple[str, int]]:
    """Name the largest entries, each with its size in percent of the largest."""
    if names is None or weights.max() <= 0:
        return []
    order = np.argsort(-weights, kind="stable")[:_N_TOP]
    return [
        (names[at], round(100 * float(weights[at] / weights[order[0]])))
        for at in order.tolist()
        if weights[at] > 0
    ]
