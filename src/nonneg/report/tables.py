"""Records of tables: factorizations, searches for anchors, estimates of the rank."""

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
_N_ANCHORS = 200  # maximum number of anchors listed
_SQUARED = ("frobenius", "huber")
_LOSSES = {
    "frobenius": "squared error",
    "kullback-leibler": "Kullback-Leibler divergence",
    "itakura-saito": "Itakura-Saito divergence",
    "huber": "Huber loss",
}
_METHODS = {"singular-value-ratio": "singular-value ratio", "held_out_error": "held-out error"}
_CANDIDATES = (
    "Mean and spread over repeats. The held-out error is the unexplained fraction of the squared norm of "
    "held-out entries: smaller is better. Of the ratios, larger is better."
)


def describe_fit(
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
    H, scale, parameters = model.components_, getattr(model, "column_scale_", None), model.get_params()
    beta_loss = parameters.get("beta_loss", "frobenius")
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
        "scale": parameters.get("scale"),
        "column_scale": scale,
        "dominance": _dominant(data, beta_loss, scale),
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
        words.lead(words.samples(about), about, f"minimizing the {loss}", result),
        {
            "components": H.shape[0],
            **({"relative error": error} if squared else {"divergence": fitted.loss}),
            "iterations": model.n_iter_,
            "time": seconds,
        },
        about,
        result,
        details={"image_shape": image_shape},
        hints=_outweighed(result["dominance"]),
        remarks=[*by_class[1::2], *([_residual_sentence(residuals)] if residuals else ())],
        table=table,
        sections=[
            *([_pictures(H, shares, image_shape)] if image_shape else []),
            *([_made_of(scale)] if table else []),
            *([by_class] if by_class else []),
            [
                "The factors",
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
    shown = np.sort(np.argsort(-shares, kind="stable")[:_N_PICTURES]).tolist()
    named = [(f"{at} ({words.percent(float(shares[at]))})", H[at]) for at in shown]
    pictures = [(drawings.shades(row.reshape(shape), row.max()), name, None) for name, row in named]
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
    if isinstance(X, DataMatrix):
        return None  # two more passes over a file that does not fit in memory
    scale = getattr(model, "column_scale_", None)
    data, means = _data(X, scale), X.mean(axis=0) if sparse.issparse(X) else np.nanmean(X, axis=0)
    means = data.to_device(np.asarray(means if scale is None else means / scale, dtype=data.dtype)[:, None])
    total = objective(data, data.to_sample_array(np.ones((data.shape[0], 1))), means, beta=beta_of(beta_loss))
    return 1.0 - 0.5 * model.reconstruction_err_**2 / total if total > 0 and math.isfinite(total) else None


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


def _dominant(data: Table, loss: str | float, scale: Any = None) -> dict[str, Any] | None:
    """Name the columns that account for nearly all of the loss, if there are any."""
    dominant = dominant_columns(_data(data.X, scale), beta_of(loss))
    if dominant is None:
        return None
    columns = [str(at) if data.column_names is None else data.column_names[at] for at in dominant[0]]
    return {"columns": columns, "share": dominant[1], "n_columns": data.X.shape[1]}


def _outweighed(dominance: Mapping[str, Any] | None) -> list[str]:
    """Say which columns hide the others, and what to do about it."""
    if dominance is None:
        return []
    names, others = dominance["columns"], dominance["n_columns"] - len(dominance["columns"])
    return [
        f"{words.listed(names)} outweigh{'s' * (len(names) == 1)} the other {others} columns, which may "
        "hardly count. --scale max balances them; --drop leaves some out."
    ]


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


def describe_anchors(model: Any, data: Table, seconds: float, *, W: Any = None) -> Record:
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
        words.lead(words.samples(about), about, f"{chosen.method}, weights that {together}", result),
        {"anchors": k, "relative error": error, "smallest margin": result["margin"], "time": seconds},
        about,
        result,
        details={"anchors": anchors},
        table=words.rows_of(anchors[:_N_ANCHORS], columns),
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
                drawings.factor_map(W.T, "sample", names, "How much of each anchor is in each sample"),
            ],
        ],
        **of_estimator(model),
    )


def describe_ranks(comparison: Any, data: Table, seconds: float, parameters: Mapping[str, Any]) -> Record:
    """Return the record of an estimate."""
    about, result = table_facts(data), comparison.as_dict() | {"seconds": seconds}
    k, estimates = result["rank"], result["estimates"]
    chosen = {_METHODS.get(name, name): one["rank"] for name, one in estimates.items()}
    table, reason = [_row(entry, k, chosen) for entry in result["table"]], _sentence(result["reason"])
    skipped = [f"{_sentence(name)} was left out. {why}" for name, why in result["left_out"].items()]
    return Record(
        "rank",
        f"Number of components of {about['source']}",
        f"{words.counted(k, 'component')} {'are' if k != 1 else 'is'} recommended.",
        words.lead(words.samples(about), about, words.listed([*chosen]), result),
        chosen | {"time": seconds},
        about,
        result,
        parameters=dict(parameters),
        hints=_outweighed(_dominant(data, "frobenius")),
        remarks=[reason],
        table=table,
        sections=[
            ["Why", reason, *skipped],
            *([["The candidates", _CANDIDATES, block("table")]] if table else []),
            *(_estimate(_METHODS.get(name, name), estimate) for name, estimate in estimates.items()),
        ],
    )


def _row(entry: Mapping[str, Any], k: int, chosen: Mapping[str, int]) -> dict[str, Any]:
    """Return a candidate with the spread beside each mean, and who chose it."""
    row: dict[str, Any] = {"k": entry["k"]}
    for column in ("ratio", "held_out_error"):
        if entry.get(column) is not None:
            spread = entry.get(f"{column}_spread")
            beside = "" if spread is None else f" ± {words.number(float(spread), digits=2)}"
            row[_METHODS.get(column, column)] = words.number(float(entry[column])) + beside
    by = [name for name, rank in {"recommended": k, **chosen}.items() if rank == entry["k"]]
    return row | {"chosen by": ", ".join(by)}


def _estimate(name: str, estimate: Mapping[str, Any]) -> list[Any]:
    """Return the section of a method."""
    curves = [
        drawings.curves(
            one["candidates"], {one["name"]: one["mean"]}, "components", estimate["rank"],
            {one["name"]: one["spread"]},
        )
        for one in estimate["curves"]
    ]  # fmt: skip
    checked = [entry["sentence"] for entry in estimate["certificate"]]
    return [f"{_sentence(name)}: {estimate['rank']}", _sentence(estimate["reason"]), *curves, *checked]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
