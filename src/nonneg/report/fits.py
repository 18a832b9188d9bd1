"""Record and page of a factorization: components, classes, factors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._arrays import to_numpy
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix
from nonneg.data.door import Request, wrap
from nonneg.estimators.scaled_columns import column_scale, dominant_columns, scaled_columns
from nonneg.io import Table
from nonneg.losses.beta import objective
from nonneg.metrics import normalized_mutual_information, purity
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked, run_facts, table_facts
from nonneg.solvers.registry import beta_of

FAR = 4.0  # uncertainties beyond which an entry is not fitted: EPA PMF 5.0
_N_PICTURES = 100  # maximum number of components shown as images: the strongest
_N_LISTED = 60  # maximum number of components listed with their strongest features
_N_TOP = 8
_SQUARED = ("frobenius", "huber")
_LOSSES = {
    "frobenius": "squared error",
    "kullback-leibler": "Kullback-Leibler divergence",
    "itakura-saito": "Itakura-Saito divergence",
    "huber": "Huber loss",
}


def describe(
    model: Any,
    data: Table,
    seconds: float,
    *,
    W: Any = None,
    image_shape: tuple[int, int] | None = None,
    uncertainty: Any = None,
) -> Record:
    """Return the record of a factorization."""
    W, fitted, about = to_numpy(model.transform(data.X) if W is None else W), model.result_, table_facts(data)
    H, scale, beta_loss = (
        model.components_,
        getattr(model, "column_scale_", None),
        _parameter(model, "beta_loss"),
    )
    # Of the scaled columns, which is what the loss measures: features compare with each other that way, not
    # by their units.
    relative = H if scale is None else H / scale
    error, squared = observed_relative_error(data.X, W, relative, scale), fitted.loss_name in _SQUARED
    labels = None if data.labels is None else _classes(W, relative, data.labels, data.label_name)
    residuals = None if uncertainty is None else _scaled_residuals(data.X, uncertainty, W, H)
    result = {
        "n_components": H.shape[0],
        "rank_reason": getattr(getattr(model, "rank_estimate_", None), "reason", None),
        **picked(fitted, "solver", "loss_name", "loss"),
        "reconstruction_err": model.reconstruction_err_,
        "relative_error": error,
        "explained": 1.0 - error**2 if squared else _explained_divergence(data.X, model, beta_loss),
        "scale": _parameter(model, "scale"),
        "column_scale": scale,
        "dominance": dominant(data.X, beta_loss, data.column_names, scale),
        "labels": labels,
        "residuals": residuals,
        **run_facts(model, fitted, seconds),
    }
    loss = _LOSSES.get(fitted.loss_name, f"beta divergence ({fitted.loss_name})")
    norms = np.linalg.norm(W.astype(np.float64), axis=0) * np.linalg.norm(relative.astype(np.float64), axis=1)
    shares = norms / max(float(norms.sum()), np.finfo(float).tiny)
    table, by_class = _components(data, W, relative, shares), [] if labels is None else _by_class(labels)
    return Record(
        "fit",
        f"Factorization of {about['source']}",
        _answer(about, result, loss),
        f"{words.samples(about)}, factorized by minimizing the {loss}. The run took {words.ending(result)}.",
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
        remarks=[*by_class[1::2], *([_residual_sentence(residuals)] if residuals else ())],
        table=table,
        sections=[
            *([_pictures(H, shares, image_shape)] if image_shape else []),
            *([_made_of(scale)] if table else []),
            *([by_class] if by_class else []),
            [
                "The factors",
                block("legend", words="0 to the maximum of each component"),
                drawings.factor_map(
                    W.T, "sample", data.row_names, "W: how much of each component is in each sample"
                ),
                # Without names the order may mean something: wavelengths, time.
                image_shape is None
                and drawings.factor_map(
                    relative, "feature", data.column_names,
                    "H: how much of each feature is in each component", sort=data.column_names is not None,
                ),
            ],
        ],
        **of_estimator(model),
    )  # fmt: skip


def _parameter(model: Any, name: str) -> Any:
    return model.get_params().get(name, "frobenius" if name == "beta_loss" else None)


def _components(data: Table, W: FloatArray, H: FloatArray, shares: FloatArray) -> list[dict[str, Any]]:
    """Return the components with their strongest features and samples, if these have names."""
    sides = (("features", H, data.column_names), ("samples", W.T, data.row_names))
    named = [(what, weights, names) for what, weights, names in sides if names is not None]
    return [
        {"component": at, "share": words.percent(float(shares[at]))}
        | {what: words.strongest(weights[at], names, _N_TOP) for what, weights, names in named}
        for at in np.argsort(-shares, kind="stable")[:_N_LISTED].tolist()
        if named
    ]


def _made_of(scale: Any) -> list[Any]:
    unit = "" if scale is None else ", relative to the scale of each column"
    told = (
        "The share of a component is the norm of its part of W H. Strongest components first; features "
        f"and samples are shaded by weight{unit}."
    )
    return ["What the components are made of", told, block("table")]


def _pictures(H: FloatArray, shares: FloatArray, shape: Sequence[int]) -> list[Any]:
    pictures = [
        (
            drawings.shades(H[at].reshape(shape), H[at].max()),
            f"{at} ({words.percent(float(shares[at]))})",
            None,
        )
        for at in np.sort(np.argsort(-shares, kind="stable")[:_N_PICTURES]).tolist()
    ]
    told = (
        "Every sample is approximately a sum of these parts with nonnegative weights. Below each: its "
        "number, as in the files, and its share, the norm of its part of W H."
    )
    return ["The components", told, block("pictures", pictures=pictures)]


def _answer(data: Mapping[str, Any], result: Mapping[str, Any], loss: str) -> str:
    k, explained, dominance = result["n_components"], result["explained"], result["dominance"]
    if explained is None or explained < 0:
        article = "an" if loss[0] in "AEIOU" else "a"
        return f"{words.counted(k, 'component')} with {article} {loss} of {words.number(result['loss'])}."
    entries = "the observed entries" if data.get("n_missing") else "the data"
    entries += ", columns scaled" if result["scale"] else ""
    whole = f"the {loss} of {entries} from their column means"
    if result["loss_name"] in _SQUARED:
        whole = f"the squared norm of {entries}"
    told = f"{words.counted(k, 'component')} explain{'s' * (k == 1)} {words.percent(explained)} of {whole}"
    if dominance:
        names = dominance["columns"]
        which = f"one column, {names[0]}, accounts" if len(names) == 1 else f"{words.listed(names)} account"
        told += f"; {which} for {words.percent(dominance['share'])} of it"
    return f"{told}."


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


def _residual_sentence(q: Mapping[str, float]) -> str:
    """Say how large the residuals are beside the uncertainties, as users of PMF expect it."""
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
        f"{words.listed(names)} outweigh{'s' * (len(names) == 1)} the other {others} columns, which may "
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
        | {f"{what} {at}": [(words.percent(one), 100 * one)] for at, one in enumerate(shares)}
        for group, count, shares in groups
    ]


def _classes(W: FloatArray, H: FloatArray, labels: Sequence[str], name: str | None) -> dict[str, Any]:
    """Compare the components with known classes: mean shares per class, purity and mutual information."""
    parts = W.astype(np.float64) * np.linalg.norm(H.astype(np.float64), axis=1)
    classes, counts, shares = zip(*group_means(parts, labels), strict=True)
    codes, strongest = np.array([classes.index(label) for label in labels]), parts.argmax(axis=1)
    agreement = {"purity": purity(codes, strongest), "nmi": normalized_mutual_information(codes, strongest)}
    return {"name": name, "classes": classes, "counts": counts, "shares": shares} | agreement


def _by_class(labels: Mapping[str, Any]) -> list[Any]:
    groups = zip(labels["classes"], labels["counts"], labels["shares"], strict=True)
    told = (
        f"The strongest component of a sample against its {labels['name']}: purity "
        f"{labels['purity']:.3f}, normalized mutual information {labels['nmi']:.3f}."
    )
    table = "The table shows the mean share of every component in each class."
    rows = group_rows(str(labels["name"]), groups, "component")
    return [f"Components by {labels['name']}", told, table, rows]
