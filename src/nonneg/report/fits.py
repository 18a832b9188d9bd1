"""Blocks of a factorization: components, classes, factors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._html import Raw
from nonneg._typing import FloatArray
from nonneg.applications.images import data_address, picture_png
from nonneg.data import DataMatrix
from nonneg.exceptions import FileFormatError
from nonneg.io import Table, read_table
from nonneg.report import drawings, quality, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_N_PICTURES = 100  # maximum number of components shown as images: the strongest
_N_LISTED = 60  # maximum number of components listed with their strongest features
_N_TOP = 8
_N_SORTED = 30
_LOSS_WORDS = {
    "frobenius": "squared error",
    "kullback-leibler": "Kullback-Leibler divergence",
    "itakura-saito": "Itakura-Saito divergence",
    "huber": "Huber loss",
}


def describe(
    model: Any,
    W: FloatArray,
    data: Table,
    seconds: float,
    *,
    title: str,
    image_shape: tuple[int, int] | None = None,
    uncertainty: Any = None,
) -> Record:
    """Return the record of a factorization."""
    fitted, H = model.result_, model.components_
    scale = getattr(model, "column_scale_", None)
    # Of the scaled columns, which is what the loss measures.
    relative = H if scale is None else H / scale
    error = _relative_error(model, data.X, W, relative, scale)
    beta_loss = model.get_params().get("beta_loss", fitted.loss_name)
    explained: float | None = 1.0 - error**2
    squared = fitted.loss_name in ("frobenius", "huber")
    if not squared:
        divergence = 0.5 * model.reconstruction_err_**2
        explained = quality.explained_divergence(data.X, divergence, beta_loss, scale)
    labels = None
    if data.labels is not None:
        labels = quality.label_summary(W, relative, data.labels, data.label_name)
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
        "residuals": None if uncertainty is None else quality.scaled_residuals(data.X, uncertainty, W, H),
        **records.run_facts(model, fitted, seconds),
    }
    hints = []
    if dominance := result["dominance"]:
        hints = [f"{quality.outweighed(dominance)} --scale max balances them; --drop leaves some out."]
    about = records.table_facts(data)
    shown = {"W": W, "H": H, "rows": data.row_names, "columns": data.column_names}
    divergence_words = _LOSS_WORDS.get(fitted.loss_name, f"beta divergence ({fitted.loss_name})")
    measure = {"relative error": error} if squared else {"divergence": fitted.loss}
    return Record(
        "fit",
        title,
        _answer(about, result, divergence_words),
        f"{wording.samples(about)}, factorized by minimizing the {divergence_words}. The run took "
        f"{wording.ending(result)}.",
        {"components": H.shape[0]} | measure | {"iterations": model.n_iter_, "time": seconds},
        about,
        result,
        details={"image_shape": image_shape},
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
    record.shown = {"W": W, "H": H, "rows": rows, "columns": columns}


def _relative_error(model: Any, X: Any, W: FloatArray, H: FloatArray, scale: Any) -> float:
    if isinstance(X, DataMatrix) and model.result_.loss_name == "frobenius":
        norm = float(np.sqrt(X.squared_norm()))  # known, unlike what another pass over the file would find
        return float(model.reconstruction_err_) / norm if norm > 0 else 0.0
    return quality.observed_relative_error(X, W, H, scale)


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
    if result["loss_name"] not in ("frobenius", "huber"):
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


def residual_sentence(record: Record) -> str:
    """Say how large the residuals are beside the uncertainties, as users of PMF expect it."""
    found = record.result.get("residuals")
    if found is None:
        return ""
    far = "1 entry" if found["n_far"] == 1 else f"{found['n_far']} entries"
    return (
        f"Q(true) {found['q_true']:.1f}, Q(robust) {found['q_robust']:.1f}, "
        f"Q/expected {found['q_ratio']:.3g}; {far} more than {quality.FAR:g} uncertainties from the model."
    )


def label_sentence(record: Record) -> str:
    """Say how well the strongest components agree with the classes."""
    labels = record.result.get("labels")
    if not labels:
        return ""
    return (
        f"The strongest component of a sample against its {labels['name']}: purity "
        f"{labels['purity']:.3f}, normalized mutual information {labels['nmi']:.3f}."
    )


def label_rows(record: Record) -> list[dict[str, Any]]:
    """Return the mean share of every component in every class."""
    labels = record.result.get("labels")
    if not labels:
        return []
    groups = zip(labels["classes"], labels["counts"], labels["shares"], strict=True)
    return group_rows(str(labels["name"]), groups, "component")


def group_rows(
    name: str, groups: Iterable[tuple[str, int, Sequence[float]]], what: str
) -> list[dict[str, Any]]:
    """Return a row per group of samples: its size, and the mean share of every component."""
    return [
        {name: group, "samples": int(count)}
        | {f"{what} {at}": html.Names([(wording.percent(one), 100 * one)]) for at, one in enumerate(shares)}
        for group, count, shares in groups
    ]


def table(record: Record) -> list[dict[str, Any]]:
    """Return the components with their strongest features and samples, if these have names."""
    named = record.shown["rows"] is not None or record.shown["columns"] is not None
    return _components(record) if named else []


def _components(record: Record) -> list[dict[str, Any]]:
    W, H, names = record.shown["W"], _relative(record), (record.shown["columns"], record.shown["rows"])
    shares = quality.component_strengths(W, H)
    rows = []
    for at in np.argsort(-shares, kind="stable")[:_N_LISTED].tolist():
        row: dict[str, Any] = {"component": at, "share": wording.percent(float(shares[at]))}
        for what, weights, known in zip(("features", "samples"), (H[at], W[:, at]), names, strict=True):
            if known is not None:
                row[what] = strongest(weights, known, _N_TOP)
        rows.append(row)
    return rows


def _relative(record: Record) -> FloatArray:
    """Return H by its part of each column: features compare with each other that way, not by their units."""
    scale = record.result.get("column_scale")
    H: FloatArray = record.shown["H"]
    return H if scale is None else H / np.asarray(scale)


def strongest(weights: Any, names: Sequence[str], count: int) -> html.Names:
    """Name the largest entries, each with its size in percent of the largest."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:count]
    top = float(weights[order[0]])
    return html.Names(
        (names[at], 100 * float(weights[at]) / top) for at in order.tolist() if weights[at] > 0 < top
    )


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    labels, shape = record.result.get("labels"), record.details["image_shape"]
    unit = " relative to the scale of each column" if record.result.get("column_scale") is not None else ""
    said = "The share of a component is the norm of its part of W H. Strongest components first."
    if table(record):
        said += f" Features and samples are shaded by weight{unit}."
    parts = [
        None if shape is None else _pictures(record, shape),
        html.section("What the components are made of", said, _components(record)),
    ]
    if labels:
        told = f"{label_sentence(record)} The table shows the mean share of every component in each class."
        parts.append(html.section(f"Components by {labels['name']}", told, label_rows(record)))
    rows, columns = record.shown["rows"], record.shown["columns"]
    maps = [
        factor_map(record.shown["W"].T, "sample", rows, "W: how much of each component is in each sample")
    ]
    if shape is None:
        # Without names the order may mean something: wavelengths, time.
        words = "H: how much of each feature is in each component"
        maps.append(factor_map(_relative(record), "feature", columns, words, sort=columns is not None))
    legend = html.legend("0 to the maximum of each component")
    return [*parts, html.section("The factors", legend, *maps)]


def _pictures(record: Record, shape: Sequence[int]) -> Raw:
    shares = quality.component_strengths(record.shown["W"], _relative(record))
    order = np.sort(np.argsort(-shares, kind="stable")[:_N_PICTURES]).tolist()
    images = [
        (
            data_address(picture_png(record.shown["H"][at].reshape(shape))),
            f"component {at}",
            [html.element("b", at), " ", wording.percent(float(shares[at]))],
        )
        for at in order
    ]
    intro = (
        "Every sample is approximately a sum of these parts with nonnegative weights. Below each: its "
        "number, as in the files, and its share."
    )
    return html.section("The components", intro, html.pictures(images))


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
