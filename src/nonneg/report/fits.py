"""Record and page of a factorization: components, classes, factors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._html import Raw, element
from nonneg._typing import FloatArray
from nonneg.applications.images import data_address, picture_png
from nonneg.data import DataMatrix
from nonneg.data.door import Request, wrap
from nonneg.estimators.scaled_columns import column_scale, dominant_columns, scaled_columns
from nonneg.exceptions import FileFormatError
from nonneg.io import Table, read_table
from nonneg.losses.beta import objective
from nonneg.metrics import normalized_mutual_information, purity
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.record import RESULT, Record, of_estimator, picked, read_names, run_facts, table_facts
from nonneg.solvers.registry import beta_of

FAR = 4.0  # uncertainties beyond which an entry is not fitted: EPA PMF 5.0
_N_PICTURES = 100  # maximum number of components shown as images: the strongest
_N_LISTED = 60  # maximum number of components listed with their strongest features
_N_TOP = 8
_N_SORTED = 30  # samples or features beyond which a heat map has no room for names
_SQUARED = ("frobenius", "huber")
_LOSSES = {
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
    fitted, H, about = model.result_, model.components_, table_facts(data)
    scale, beta_loss = getattr(model, "column_scale_", None), model.get_params().get("beta_loss", "frobenius")
    # Of the scaled columns, which is what the loss measures.
    relative = H if scale is None else H / scale
    error, squared = observed_relative_error(data.X, W, relative, scale), fitted.loss_name in _SQUARED
    result = {
        "n_components": H.shape[0],
        "rank_reason": getattr(getattr(model, "rank_estimate_", None), "reason", None),
        **picked(fitted, "solver", "loss_name", "loss"),
        "reconstruction_err": model.reconstruction_err_,
        "relative_error": error,
        "explained": 1.0 - error**2 if squared else _explained_divergence(data.X, model, beta_loss),
        "scale": model.get_params().get("scale"),
        "column_scale": scale,
        "dominance": dominant(data.X, beta_loss, data.column_names, scale),
        "labels": None if data.labels is None else _classes(W, relative, data.labels, data.label_name),
        "residuals": None if uncertainty is None else _scaled_residuals(data.X, uncertainty, W, H),
        **run_facts(model, fitted, seconds),
    }
    loss = _LOSSES.get(fitted.loss_name, f"beta divergence ({fitted.loss_name})")
    return Record(
        "fit",
        title,
        _answer(about, result, loss),
        f"{html.samples(about)}, factorized by minimizing the {loss}. The run took {html.ending(result)}.",
        {
            "components": H.shape[0],
            **({"relative error": error} if squared else {"divergence": fitted.loss}),
            "iterations": model.n_iter_,
            "time": seconds,
        },
        about,
        result,
        details={"image_shape": image_shape},
        hints=[outweighed(result["dominance"])] if result["dominance"] else [],
        shown={"W": W, "H": H, "rows": data.row_names, "columns": data.column_names},
        **of_estimator(model),
    )


def _answer(data: Mapping[str, Any], result: Mapping[str, Any], loss: str) -> str:
    k, explained, dominance = result["n_components"], result["explained"], result["dominance"]
    if explained is None or explained < 0:
        article = "an" if loss[0] in "AEIOU" else "a"
        return f"{html.counted(k, 'component')} with {article} {loss} of {html.number(result['loss'])}."
    entries = "the observed entries" if data.get("n_missing") else "the data"
    entries += ", columns scaled" if result["scale"] else ""
    whole = f"the {loss} of {entries} from their column means"
    if result["loss_name"] in _SQUARED:
        whole = f"the squared norm of {entries}"
    told = f"{html.counted(k, 'component')} explain{'s' * (k == 1)} {html.percent(explained)} of {whole}"
    if dominance:
        names = dominance["columns"]
        which = f"one column, {names[0]}, accounts" if len(names) == 1 else f"{html.listed(names)} account"
        told += f"; {which} for {html.percent(dominance['share'])} of it"
    return f"{told}."


def restore(record: Record, folder: Path) -> None:
    """Read the factors back."""
    W, H = (read_table(folder / name).X for name in ("W.npy", "H.npy"))
    expected = record.data["shape"]
    if [W.shape[0], H.shape[1]] != expected or W.shape[1] != H.shape[0]:
        raise FileFormatError(
            f"{folder}: W.npy {W.shape} and H.npy {H.shape} do not belong to the data of {RESULT} "
            f"({expected}). Run `nonneg {record.command}` again."
        )
    rows, columns = read_names(folder, (W.shape[0], H.shape[1]))
    record.shown = {"W": W, "H": H, "rows": rows, "columns": columns}


def _data(X: Any, scale: Any) -> DataMatrix:
    return scaled_columns(wrap(X, Request(missing="mask", signed=True)), scale)


def observed_relative_error(X: Any, W: FloatArray, H: FloatArray, scale: Any = None) -> float:
    """Measure the Frobenius norm of X - W H over that of X, on the entries that are not NaN."""
    data = _data(X, scale)
    weights, columns = data.to_sample_array(W), data.to_device(np.ascontiguousarray(H.T))
    square, norm = 2.0 * objective(data, weights, columns, beta=2.0), data.squared_norm()
    return math.sqrt(square / norm) if norm > 0 else 0.0 if square == 0.0 else math.inf


def _explained_divergence(X: Any, model: Any, beta_loss: Any) -> float | None:
    """Return the share of the divergence of the data from their column means that a model explains."""
    data = _data(X, getattr(model, "column_scale_", None))
    _, (sums, counts) = data.map_reduce_rows(_column_sums, n_out=0)
    means = data.to_device((sums / np.maximum(counts, 1))[:, None])
    ones = data.to_sample_array(np.ones((data.shape[0], 1)))
    total = objective(data, ones, means, beta=beta_of(beta_loss))
    return 1.0 - 0.5 * model.reconstruction_err_**2 / total if total > 0 and math.isfinite(total) else None


def _column_sums(block: Any) -> tuple[tuple[()], tuple[Any, Any]]:
    ones = np.ones((block.shape[0], 1), dtype=block.dtype)
    counts: Any = np.full(block.shape[1], float(block.shape[0]))
    if block.observed is not None:
        parts = (block.observed.dense_rows(start, stop) for start, stop in block.row_blocks(1 << 20))
        counts = sum(np.sum(part, axis=0, dtype=np.float64) for part in parts)
    return (), (block.transposed_times(ones)[:, 0].astype(np.float64), counts)


def _scaled_residuals(X: Any, uncertainty: Any, W: FloatArray, H: FloatArray) -> dict[str, float]:
    """Return the sums of squares of (X - W H) / uncertainty that source apportionment calls Q."""
    residuals = (X - W @ H) / uncertainty
    squares = residuals[np.isfinite(residuals) & np.isfinite(uncertainty)] ** 2
    near = squares <= FAR**2
    expected = squares.size - H.shape[0] * sum(X.shape)
    return {
        "q_true": float(squares.sum()),
        "q_robust": float(squares[near].sum()),  # without the entries that the model does not fit
        "q_expected": expected,
        "q_ratio": float(squares.sum()) / max(expected, 1),
        "n_far": int(np.count_nonzero(~near)),
    }


def residual_sentence(record: Record) -> str:
    """Say how large the residuals are beside the uncertainties, as users of PMF expect it."""
    if (q := record.result.get("residuals")) is None:
        return ""
    far = "1 entry" if q["n_far"] == 1 else f"{q['n_far']} entries"
    return (
        f"Q(true) {q['q_true']:.1f}, Q(robust) {q['q_robust']:.1f}, Q/expected {q['q_ratio']:.3g}; {far} "
        f"more than {FAR:g} uncertainties from the model."
    )


def dominant(
    X: Any, loss: str | float, names: Sequence[str] | None, scale: Any = None
) -> dict[str, Any] | None:
    """Name the columns that account for nearly all of the loss, if there are any."""
    found = dominant_columns(_data(X, scale), beta_of(loss))
    if found is None:
        return None
    columns = [str(at) if names is None else names[at] for at in found[0]]
    return {"columns": columns, "share": found[1], "n_columns": X.shape[1]}


def outweighed(dominance: Mapping[str, Any]) -> str:
    """Say which columns hide the others, and what to do about it."""
    names, others = dominance["columns"], dominance["n_columns"] - len(dominance["columns"])
    return (
        f"{html.listed(names)} outweigh{'s' * (len(names) == 1)} the other {others} columns, which may "
        "hardly count. --scale max balances them; --drop leaves some out."
    )


def scaled(X: Any, kind: str) -> Any:
    """Return the data with every column divided by its maximum, standard deviation or sum."""
    scale = column_scale(_data(X, None), kind)
    return sparse.csr_array(X @ sparse.diags_array(1.0 / scale)) if sparse.issparse(X) else X / scale


def group_means(parts: FloatArray, labels: Sequence[Any]) -> list[tuple[str, int, FloatArray]]:
    """Return every group of samples with its size and the mean share of each component."""
    codes, names = np.array([str(label) for label in labels]), {str(label) for label in labels}
    try:
        ordered = sorted(names, key=float)
    except ValueError:
        ordered = sorted(names)
    shares = parts / np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return [(name, int(np.sum(codes == name)), shares[codes == name].mean(axis=0)) for name in ordered]


def group_rows(name: str, groups: Iterable[Iterable[Any]], what: str) -> list[dict[str, Any]]:
    """Return a row per group of samples: its size, and the mean share of every component."""
    return [
        {name: group, "samples": count}
        | {f"{what} {at}": html.Names([(html.percent(one), 100 * one)]) for at, one in enumerate(shares)}
        for group, count, shares in groups
    ]


def _classes(W: FloatArray, H: FloatArray, labels: Sequence[str], name: str | None) -> dict[str, Any]:
    """Compare the components with known classes: mean shares per class, purity and mutual information."""
    parts = W.astype(np.float64) * np.linalg.norm(H.astype(np.float64), axis=1)
    classes, counts, shares = zip(*group_means(parts, labels), strict=True)
    codes, strongest = np.array([classes.index(label) for label in labels]), parts.argmax(axis=1)
    agreement = {"purity": purity(codes, strongest), "nmi": normalized_mutual_information(codes, strongest)}
    return {"name": name, "classes": classes, "counts": counts, "shares": shares} | agreement


def label_sentence(record: Record) -> str:
    """Say how well the strongest components agree with the classes."""
    if not (labels := record.result.get("labels")):
        return ""
    return (
        f"The strongest component of a sample against its {labels['name']}: purity "
        f"{labels['purity']:.3f}, normalized mutual information {labels['nmi']:.3f}."
    )


def label_rows(record: Record) -> list[dict[str, Any]]:
    """Return the mean share of every component in every class."""
    if not (labels := record.result.get("labels")):
        return []
    groups = zip(labels["classes"], labels["counts"], labels["shares"], strict=True)
    return group_rows(str(labels["name"]), groups, "component")


def _strengths(record: Record) -> FloatArray:
    """Return the share of each component: the norm of its rank-one part over the sum of these norms."""
    W, H = record.shown["W"].astype(np.float64), _relative(record).astype(np.float64)
    norms = np.linalg.norm(W, axis=0) * np.linalg.norm(H, axis=1)
    return norms / max(float(norms.sum()), np.finfo(float).tiny)


def _relative(record: Record) -> FloatArray:
    """Return H by its part of each column: features compare with each other that way, not by their units."""
    scale = record.result.get("column_scale")
    H: FloatArray = record.shown["H"]
    return H if scale is None else H / np.asarray(scale)


def table(record: Record) -> list[dict[str, Any]]:
    """Return the components with their strongest features and samples, if these have names."""
    W, H, shares = record.shown["W"], _relative(record), _strengths(record)
    sides = (("features", H, record.shown["columns"]), ("samples", W.T, record.shown["rows"]))
    named = [(what, weights, names) for what, weights, names in sides if names is not None]
    return [
        {"component": at, "share": html.percent(float(shares[at]))}
        | {what: html.Names.strongest(weights[at], names, _N_TOP) for what, weights, names in named}
        for at in np.argsort(-shares, kind="stable")[:_N_LISTED].tolist()
        if named
    ]


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    labels, shape, parts = record.result.get("labels"), record.details["image_shape"], []
    if shape is not None:
        parts.append(_pictures(record, shape))
    if rows := table(record):
        unit = (
            ", relative to the scale of each column" if record.result.get("column_scale") is not None else ""
        )
        told = (
            "The share of a component is the norm of its part of W H. Strongest components first; features "
            f"and samples are shaded by weight{unit}."
        )
        parts.append(html.section("What the components are made of", told, rows))
    if labels:
        told = f"{label_sentence(record)} The table shows the mean share of every component in each class."
        parts.append(html.section(f"Components by {labels['name']}", told, label_rows(record)))
    W, samples, features = record.shown["W"], record.shown["rows"], record.shown["columns"]
    maps = [factor_map(W.T, "sample", samples, "W: how much of each component is in each sample")]
    if shape is None:
        # Without names the order may mean something: wavelengths, time.
        words = "H: how much of each feature is in each component"
        maps.append(factor_map(_relative(record), "feature", features, words, sort=features is not None))
    legend = html.legend("0 to the maximum of each component")
    return [*parts, html.section("The factors", legend, *maps)]


def _pictures(record: Record, shape: Sequence[int]) -> Raw:
    shares = _strengths(record)
    images = [
        (
            data_address(picture_png(record.shown["H"][at].reshape(shape))),
            f"component {at}",
            [element("b", at), " ", html.percent(float(shares[at]))],
        )
        for at in np.sort(np.argsort(-shares, kind="stable")[:_N_PICTURES]).tolist()
    ]
    intro = (
        "Every sample is approximately a sum of these parts with nonnegative weights. Below each: its "
        "number, as in the files, and its share, the norm of its part of W H."
    )
    return html.section("The components", intro, html.pictures(images))


def factor_map(
    factor: FloatArray, what: str, names: Sequence[str] | None, caption: str, *, sort: bool = True
) -> Raw:
    """Draw a factor; what belongs to the same component stands together, unless there is room for names."""
    ordered = sort and factor.shape[1] > _N_SORTED
    if ordered:
        shades = drawings.scaled_rows(factor)
        order = np.lexsort((-shades.max(axis=0), shades.argmax(axis=0)))
        factor, names = factor[:, order], None
        caption += ", sorted by the strongest component"
    return html.figure(drawings.heat_map(factor, what, names, ordered=ordered), f"{caption}.")
