"""Sections of a factorization: components, examples, classes, convergence, factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._html import Raw
from nonneg._typing import FloatArray
from nonneg.applications.images import data_address, picture_png
from nonneg.data import DataMatrix
from nonneg.exceptions import FileFormatError
from nonneg.io import Table, read_table
from nonneg.report import drawings, quality, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_N_EXAMPLES = 8
_N_PICTURES = 100  # maximum number of components shown as images: the strongest
_N_LISTED = 60  # maximum number of components listed with their strongest features
_N_TOP = 8
_N_SORTED = 30
_LOSS_WORDS = {
    "frobenius": "squared error",
    "kullback-leibler": "Kullback-Leibler divergence",
    "itakura-saito": "Itakura-Saito divergence",
}


def describe(
    model: Any,
    W: FloatArray,
    data: Table,
    seconds: float,
    *,
    title: str,
    image_shape: tuple[int, int] | None = None,
    comparison: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of a factorization."""
    fitted, H = model.result_, model.components_
    scale = getattr(model, "column_scale_", None)
    # Of the scaled columns, which is what the loss measures.
    relative = H if scale is None else H / scale
    error = _relative_error(model, data.X, W, relative, scale)
    beta_loss = model.get_params().get("beta_loss", fitted.loss_name)
    explained: float | None = 1.0 - error**2
    if fitted.loss_name != "frobenius":
        divergence = 0.5 * model.reconstruction_err_**2
        explained = quality.explained_divergence(data.X, divergence, beta_loss, scale)
    labels = None
    if data.labels is not None:
        labels = quality.label_summary(W, relative, data.labels, data.label_name)
    examples = None
    if image_shape is not None:
        examples = np.unique(np.linspace(0, W.shape[0] - 1, _N_EXAMPLES).astype(int)).tolist()
    result = {
        "n_components": H.shape[0],
        "rank_reason": getattr(getattr(model, "rank_estimate_", None), "reason", None),
        "solver": fitted.solver,
        "loss_name": fitted.loss_name,
        "loss": fitted.loss,
        "reconstruction_err": model.reconstruction_err_,
        "relative_error": error,
        "explained": explained,
        "scale": model.get_params().get("scale"),
        "column_scale": scale,
        "dominance": quality.dominance(data.X, beta_loss, data.column_names, scale),
        "labels": labels,
        "n_iter": model.n_iter_,
        "stop_reason": records.stop_facts(fitted),
        "seconds": seconds,
    }
    hints = []
    if dominance := result["dominance"]:
        hints = [f"{quality.outweighed(dominance)} --scale max balances them; --drop leaves some out."]
    about = records.table_facts(data)
    shown = {
        "W": W,
        "H": H,
        "rows": data.row_names,
        "columns": data.column_names,
        "examples": _rows(data.X, examples),
    }
    divergence_words = _LOSS_WORDS.get(fitted.loss_name, f"beta divergence ({fitted.loss_name})")
    measure = {"relative error": error} if fitted.loss_name == "frobenius" else {"divergence": fitted.loss}
    return Record(
        "fit",
        title,
        _answer(about, result, divergence_words),
        f"{wording.samples(about)}, factorized by minimizing the {divergence_words}. The run took "
        f"{wording.ending(result)}.",
        {"components": H.shape[0]} | measure | {"iterations": model.n_iter_, "time": seconds},
        about,
        result,
        details={"image_shape": image_shape, "examples": examples, "comparison": comparison},
        hints=hints,
        shown=shown,
        **records.of_estimator(model),
    )


def restore(record: Record, folder: Path) -> None:
    """Read the factors back."""
    W, H = (read_table(folder / name).X for name in ("W.npy", "H.npy"))
    expected = record.data["shape"]
    if [W.shape[0], H.shape[1]] != expected or W.shape[1] != H.shape[0]:
        raise FileFormatError(
            f"{folder}: W.npy {W.shape} and H.npy {H.shape} do not belong to the data of {records.RESULT} "
            f"({expected}). Run `nonneg {record.command}` again."
        )
    rows, columns = records.read_names(folder, (W.shape[0], H.shape[1]))
    examples = read_table(folder / "examples.npy").X if record.details.get("examples") else None
    record.shown = {"W": W, "H": H, "rows": rows, "columns": columns, "examples": examples}


def _rows(X: Any, at: Sequence[int] | None) -> FloatArray | None:
    if at is None:
        return None
    rows = X.take_rows(at) if isinstance(X, DataMatrix) else X[at]
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def _relative_error(model: Any, X: Any, W: FloatArray, H: FloatArray, scale: Any) -> float:
    if isinstance(X, DataMatrix) and model.result_.loss_name == "frobenius":
        norm = float(np.sqrt(X.squared_norm()))  # known, unlike what another pass over the file would find
        return float(model.reconstruction_err_) / norm if norm > 0 else 0.0
    return quality.observed_relative_error(quality.divided(X, scale), W, H)


def _answer(data: Mapping[str, Any], result: Mapping[str, Any], measure: str) -> str:
    k, explained = result["n_components"], result["explained"]
    entries = "the observed entries" if data.get("n_missing") else "the data"
    if result["scale"]:
        entries = f"{entries}, columns scaled"
    if explained is None or explained < 0:
        article = "an" if measure[0] in "AEIOU" else "a"
        return (
            f"{wording.counted(k, 'component')} with {article} {measure} of {wording.number(result['loss'])}."
        )
    whole = f"the squared norm of {entries}"
    if result["loss_name"] != "frobenius":
        whole = f"the {measure} of {entries} from their column means"
    said = (
        f"{wording.counted(k, 'component')} explain{'s' * (k == 1)} {wording.percent(explained)} of {whole}"
    )
    if dominance := result["dominance"]:
        names = dominance["columns"]
        holds = (
            f"one column, {names[0]}, accounts for"
            if len(names) == 1
            else f"{wording.listed(names)} account for"
        )
        said += f"; {holds} {wording.percent(dominance['share'])} of it"
    return f"{said}."


def label_sentence(record: Record) -> str:
    """Say how well the strongest components agree with the classes."""
    labels = record.result.get("labels")
    if not labels:
        return ""
    return (
        f"The strongest component of a sample against its {labels['name']}: purity "
        f"{labels['purity']:.3f}, normalized mutual information {labels['nmi']:.3f}."
    )


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    W, H = record.shown["W"], record.shown["H"]
    scale = record.result.get("column_scale")
    # Features compare with each other by their part of a column, not by its unit.
    relative = H if scale is None else H / np.asarray(scale)
    shares = quality.component_strengths(W, relative)
    return [
        _pictures(record, shares),
        _examples(record),
        _strongest_section(record, relative, shares),
        _labels(record),
        _comparison(record.details.get("comparison")),
        html.section("Share of each component", html.figure(drawings.strengths(shares))),
        html.section(
            "The factors", html.legend("0 to the maximum of each component"), _heat_maps(record, relative)
        ),
    ]


def _pictures(record: Record, shares: FloatArray) -> Raw | None:
    shape = record.details["image_shape"]
    if shape is None:
        return None
    strongest = np.sort(np.argsort(-shares, kind="stable")[:_N_PICTURES]).tolist()
    images = [
        html.picture(
            data_address(picture_png(record.shown["H"][at].reshape(shape))),
            f"component {at}",
            [html.element("b", at), " ", wording.percent(float(shares[at]))],
        )
        for at in strongest
    ]
    intro = (
        "Every sample is approximately a sum of these parts with nonnegative weights. Below each: its "
        "number, as in the files, and its share."
    )
    return html.section(
        "The components", html.paragraph(intro), html.element("div", images, class_="pictures")
    )


def _examples(record: Record) -> Raw | None:
    shape, rows = record.details["image_shape"], record.details["examples"]
    if shape is None or record.shown["examples"] is None:
        return None
    names, pairs = record.shown["rows"], []
    for row, entries in zip(rows, np.nan_to_num(record.shown["examples"]), strict=True):
        model = record.shown["W"][row] @ record.shown["H"]
        largest = float(max(entries.max(), model.max()))  # the same shades for both
        name = f"{row}" if names is None else names[row]
        images = [
            html.element("img", src=data_address(picture_png(one.reshape(shape), largest)), alt=alt)
            for one, alt in ((entries, f"sample {name}"), (model, "its reconstruction"))
        ]
        pairs.append(html.element("figure", images, html.element("figcaption", name)))
    return html.section(
        "The data and their reconstruction",
        html.element("div", pairs, class_="pairs"),
        html.paragraph("Top: a sample. Bottom: its reconstruction from the components.", note=True),
    )


def _strongest_section(record: Record, H: FloatArray, shares: FloatArray) -> Raw | None:
    rows, columns = record.shown["rows"], record.shown["columns"]
    if rows is None and columns is None:
        return None
    named = [name for name, known in (("*features", columns), ("*samples", rows)) if known is not None]
    headings = ["component", ">share", *named]
    lines = []
    for at in np.argsort(-shares, kind="stable")[:_N_LISTED].tolist():
        sides = ((H[at], columns), (record.shown["W"][:, at], rows))
        cells = [
            html.chips(strongest(weights, names, _N_TOP)) for weights, names in sides if names is not None
        ]
        lines.append([at, wording.percent(float(shares[at])), *cells])
    unit = " relative to the scale of each column" if record.result.get("column_scale") is not None else ""
    intro = (
        f"The strongest features and samples of each component, shaded by weight{unit}; strongest "
        "components first."
    )
    return html.section("What the components are made of", html.paragraph(intro), html.table(headings, lines))


def strongest(weights: Any, names: Sequence[str], count: int) -> list[tuple[str, int]]:
    """Name the largest entries, each with its size in percent of the largest."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:count]
    top = float(weights[order[0]])
    return [
        (names[at], round(100 * float(weights[at]) / top)) for at in order.tolist() if weights[at] > 0 < top
    ]


def _labels(record: Record) -> Raw | None:
    labels = record.result.get("labels")
    if not labels:
        return None
    components = (f">component {at}" for at in range(len(labels["shares"][0])))
    headings = [str(labels["name"]), ">samples", *components]
    rows = [
        [name, int(count), *(html.chips([(wording.percent(one), round(100 * one))]) for one in shares)]
        for name, count, shares in zip(labels["classes"], labels["counts"], labels["shares"], strict=True)
    ]
    said = f"{label_sentence(record)} The table shows the mean share of every component in each class."
    return html.section(f"Components by {labels['name']}", html.paragraph(said), html.table(headings, rows))


def _comparison(comparison: Mapping[str, Any] | None) -> Raw | None:
    if comparison is None:
        return None
    headings = ["library", ">seconds", ">relative error", ">iterations"]
    rows = [
        [row["name"], f"{row['seconds']:.3f}", f"{row['relative_error']:.5f}", row["n_iter"]]
        for row in comparison["rows"]
    ]
    return html.section(
        "Side by side", html.table(headings, rows), html.paragraph(comparison["note"], note=True)
    )


def _heat_maps(record: Record, H: FloatArray) -> list[Raw]:
    rows, columns = record.shown["rows"], record.shown["columns"]
    maps = [
        factor_map(record.shown["W"].T, "sample", rows, "W: how much of each component is in each sample")
    ]
    if record.details["image_shape"] is None:
        said = "H: how much of each feature is in each component"
        # Without names the order may mean something: wavelengths, time.
        maps.append(factor_map(H, "feature", columns, said, sort=columns is not None))
    return maps


def factor_map(
    factor: FloatArray, what: str, names: Sequence[str] | None, caption: str, *, sort: bool = True
) -> Raw:
    """Draw a factor; what belongs to the same component stands together, unless there is room for names."""
    ordered = sort and factor.shape[1] > _N_SORTED
    if ordered:
        scaled = drawings.scaled_rows(factor)
        order = np.lexsort((-scaled.max(axis=0), scaled.argmax(axis=0)))
        factor, names = factor[:, order], None
        caption += ", sorted by the strongest component"
    return html.figure(drawings.heat_map(factor, what, names, ordered=ordered), f"{caption}.")
