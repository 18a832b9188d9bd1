"""Records of tables: factorizations, anchors, estimates of the rank, a consensus, mutational signatures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._arrays import to_numpy
from nonneg._typing import FloatArray
from nonneg.consensus.certificate import are_stable
from nonneg.data import DataMatrix
from nonneg.data.door import Request, wrap
from nonneg.estimators.scaled_columns import column_scale, divided_columns, dominant_columns
from nonneg.io import Table
from nonneg.losses.beta import objective
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked, run_facts, table_facts
from nonneg.solvers.registry import beta_of

FAR = 4.0  # uncertainties beyond which an entry is not fitted: EPA PMF 5.0
_N_TOP, _N_GENES = 8, 20  # features of a component and genes of a program that are named
_N_LISTED = 100  # maximum number of components and anchors listed: the strongest
_N_COMPARED = 120  # maximum number of components in the clustergram
_COMPONENTS = (
    "Every sample is approximately a sum of components with nonnegative weights. The share of a component is "
    "the norm of its part of W H. The darker a feature, the larger its weight."
)
_FACTORS = (
    "W says how much of each component is in each sample, H how much of each feature is in each component. "
    "Every row is relative to its maximum."
)
_STABILITY = (
    "The stability is the mean silhouette of clusters of components: 1 if all restarts agree, 0 or less if "
    "components cannot be distinguished. The error is that of the consensus with refitted usages. The "
    "cophenetic correlation is 1 if two samples are in one cluster always or never."
)
_CANDIDATES = (
    "The ratio is that of singular values k and k + 1: larger is better. The held-out error is the "
    "unexplained part of the squared norm of held-out entries, averaged over folds: smaller is better."
)


def describe_fit(
    model: Any,
    data: Table,
    seconds: float,
    W: Any,
    *,
    image_shape: tuple[int, int] | None = None,
    residuals: FloatArray | None = None,
) -> Record:
    """Return the record of a factorization; residuals are relative to the uncertainties."""
    W, H, fitted, about = to_numpy(W), model.components_, model.result_, table_facts(data)
    k, scale = len(H), getattr(model, "column_scale_", None)
    # Of the scaled columns, which is what the loss measures: features compare with each other that way, not
    # by their units.
    relative = H if scale is None else H / scale
    parts = W.astype(np.float64) * np.linalg.norm(relative.astype(np.float64), axis=1)
    norms = np.linalg.norm(parts, axis=0)
    norms /= max(float(norms.sum()), np.finfo(float).tiny)
    listed = np.argsort(-norms, kind="stable")[:_N_LISTED].tolist()
    error = observed_relative_error(data.X, W, relative, scale)
    q = None if residuals is None else _residual_sums(residuals, k)
    groups = [] if data.labels is None else group_means(parts, data.labels)
    result = {
        "n_components": k,
        "rank_reason": getattr(getattr(model, "rank_estimate_", None), "reason", None),
        **picked(fitted, "solver", "loss_name", "loss"),
        "relative_error": error,
        "explained": 1.0 - error**2,
        "groups": groups,
        "residuals": q,
        **run_facts(model, fitted, seconds),
    }
    sides = {"features": (relative, data.column_names), "samples": (W.T, data.row_names)}
    named: dict[str, Any] = {what: side for what, side in sides.items() if side[1] is not None}
    table = [
        {"component": at, "share": words.percent(norms[at])}
        | {what: words.strongest(own[at], names, _N_TOP) for what, (own, names) in named.items()}
        for at in listed
        if named
    ]
    pictures = [
        (drawings.shades(row.reshape(image_shape), row.max()), f"{at} ({words.percent(norms[at])})", None)
        for at, row in zip(listed, H[listed], strict=True)
        if image_shape
    ]
    by_class = by_group(data.label_name, groups, "component")
    answer = f"{words.counted(k, 'component')}; the {fitted.loss_name.title()} loss is {fitted.loss:.4g}."
    if fitted.loss_name in ("frobenius", "huber") and error <= 1:
        entries = "the observed entries" if about["n_missing"] else "the data"
        entries += "" if scale is None else ", columns scaled"
        answer = words.explained(k, "component", error, entries)
    return Record(
        "fit",
        f"Factorization of {about['source']}",
        answer,
        ["n_components", "relative_error", "n_iter", "seconds"],
        about,
        result,
        hints=_outweighed(data, model.beta_loss, scale) if residuals is None else (),
        remarks=[by_class and by_class[2], q and q["sentence"]],
        table=table,
        sections=[
            (pictures or table)
            and [
                "The components",
                _COMPONENTS if scale is None else f"{_COMPONENTS} Columns are relative to their scale.",
                pictures and block("pictures", pictures=pictures),
                table,
            ],
            by_class,
            [
                "The factors",
                _FACTORS,
                drawings.factor_map(W.T, "component", "samples"),
                # Without names the order may mean something: wavelengths, time.
                drawings.factor_map(relative, "component", "features", sort=data.column_names is not None),
            ],
        ],
        **of_estimator(model),
    )


def _data(X: Any, scale: Any) -> DataMatrix:
    return divided_columns(wrap(X, Request(missing="mask", signed=True)), scale)


def observed_relative_error(X: Any, W: FloatArray, H: FloatArray, scale: Any = None) -> float:
    """Measure the Frobenius norm of X - W H over that of X, on the entries that are not NaN."""
    data = _data(X, scale)
    weights, columns = data.to_sample_array(W), data.to_device(np.ascontiguousarray(H.T))
    square, norm = 2.0 * objective(data, weights, columns, beta=2.0), data.squared_norm()
    return math.sqrt(square / norm) if norm > 0 else 0.0 if square == 0.0 else math.inf


def _residual_sums(residuals: FloatArray, n_components: int) -> dict[str, Any]:
    """Return the sums of squares that source apportionment calls Q, and a sentence with them."""
    squares = np.square(residuals[np.isfinite(residuals)])
    near, expected = squares <= FAR**2, squares.size - n_components * sum(residuals.shape)
    true, robust = float(squares.sum()), float(squares[near].sum())
    ratio = f"Q/expected {true / expected:.3g}" if expected > 0 else "no more entries than parameters"
    far = f"entries more than {FAR:g} uncertainties from the model: {np.count_nonzero(~near)}"
    note = f"Q(true) {true:.1f}, Q(robust) {robust:.1f}, {ratio}; {far}."
    return {"q_true": true, "q_robust": robust, "q_expected": expected, "sentence": note}


def _outweighed(data: Table, loss: str | float = "frobenius", scale: Any = None) -> list[str]:
    """Name columns that account for nearly all of the loss, and say what to do about it."""
    columns, share = dominant_columns(_data(data.X, scale), beta_of(loss)) or ([], 0.0)
    names = [str(at) if data.column_names is None else data.column_names[at] for at in columns]
    hint = (
        f"{' and '.join(names)} outweigh{'s' * (len(names) == 1)} the other {data.X.shape[1] - len(names)} "
        f"columns: {words.percent(share)} of what the loss measures. --scale max balances them."
    )
    return [hint] if names else []


def scaled(X: Any, kind: str) -> Any:
    """Return the data with every column divided by its maximum, standard deviation or sum."""
    scale = column_scale(_data(X, None), kind)
    return sparse.csr_array(X @ sparse.diags_array(1.0 / scale)) if sparse.issparse(X) else X / scale


def group_means(parts: FloatArray, labels: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every group of samples with its size and the mean share of each component."""
    codes = np.array([str(label) for label in labels])
    usage = parts / np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    # Numbers in their order, not in that of the alphabet.
    names = sorted(set(codes.tolist()), key=lambda name: (len(name) * name.isdecimal(), name))
    return [
        {"group": name, "n_samples": int(np.sum(codes == name)), "shares": usage[codes == name].mean(axis=0)}
        for name in names
    ]


def by_group(by: Any, groups: Iterable[Mapping[str, Any]], what: str) -> list[Any] | None:
    """Return the section of the mean shares of components in groups of samples, if there are any."""
    rows = [
        {str(by): one["group"], "samples": one["n_samples"]}
        | {f"{what} {at}": words.percent(share) for at, share in enumerate(one["shares"])}
        for one in groups
    ]
    return [f"{what}s by {by}".capitalize(), f"The mean share of every {what}.", rows] if rows else None


def describe_anchors(model: Any, data: Table, seconds: float, W: Any) -> Record:
    """Return the record of a selection of anchors."""
    W, about, chosen, k = to_numpy(W), table_facts(data), model.result_, model.n_components_
    if chosen.row_maxima is None:
        # A greedy method measures each sample when it is picked.
        measure = "score"
        values = np.append(chosen.scores, [] if chosen.best_left is None else chosen.best_left)
    else:
        measure, maxima = "row maximum", np.asarray(chosen.row_maxima)
        values = np.append(maxima[chosen.anchors], np.sort(np.delete(maxima, chosen.anchors))[::-1])
    error, rows = observed_relative_error(data.X, W, model.components_), model.anchor_indices_.tolist()
    anchors = words.entries_of(
        component=range(k),
        row=rows,
        name=[None if data.row_names is None else data.row_names[row] for row in rows],
        **({} if data.labels is None else {"class": [data.labels[row] for row in rows]}),
        value=values[:k].tolist(),
        mean_weight=W.mean(axis=0).tolist(),
    )
    result = {
        **picked(chosen, "method", "lam"),
        "n_anchors": k,
        "measure": measure,
        "duality_gap": model.duality_gap_,
        "relative_error": error,
        **run_facts(model, chosen, seconds),
    }
    ranked, table = values[: 2 * k + 10], words.rows_of(anchors[:_N_LISTED], *anchors[0])
    return Record(
        "anchors",
        f"Anchors of {about['source']}",
        words.explained(k, "sample", error, "the data"),
        ["n_anchors", "relative_error", "seconds"],
        about,
        result,
        details={"anchors": anchors},
        table=table,
        sections=[
            [
                "The anchors",
                f"Mixtures of these approximate all other samples. The value is the {measure} of an anchor. "
                "The last anchor is marked in the curve: a large step after it means a clear choice.",
                table,
                drawings.curves(range(1, len(ranked) + 1), {measure: ranked}, "samples", k),
            ],
            ["How much of each anchor is in each sample", drawings.factor_map(W.T, "component", "samples")],
            by_group(data.label_name, [] if data.labels is None else group_means(W, data.labels), "anchor"),
        ],
        **of_estimator(model),
    )


def describe_ranks(comparison: Any, data: Table, seconds: float, parameters: Mapping[str, Any]) -> Record:
    """Return the record of an estimate."""
    about, result = table_facts(data), comparison.as_dict() | {"seconds": seconds}
    k = result["rank"]
    estimates = {name.replace("-ratio", " ratio"): one for name, one in result["estimates"].items()}
    chosen = {"recommended": k, **{name: one["rank"] for name, one in estimates.items()}}
    table = [
        {words.heading(key): value for key, value in entry.items() if not key.endswith("_spread")}
        | {"chosen by": ", ".join(name for name, rank in chosen.items() if rank == entry["k"])}
        for entry in result["table"]
    ]
    methods: list[list[Any]] = []
    for name, one in estimates.items():
        curves = [
            drawings.curves(c["candidates"], {c["name"]: c["mean"]}, "components", one["rank"], c["spread"])
            for c in one["curves"]
        ]
        title = f"{_sentence(name)}: {words.counted(one['rank'], 'component')}"
        methods.append([title, _sentence(one["reason"]), *curves])
    reason = _sentence(result["reason"])
    skipped = [f"{_sentence(name)} was left out. {why}" for name, why in result["left_out"].items()]
    return Record(
        "rank",
        f"Number of components of {about['source']}",
        f"{words.counted(k, 'component')} {'are' if k != 1 else 'is'} recommended.",
        ["rank", "seconds"],
        about,
        result,
        parameters=dict(parameters),
        hints=_outweighed(data),
        remarks=[reason],
        table=table,
        sections=[
            ["Why", reason, *skipped],
            ["The candidates", _CANDIDATES, table] if table else None,
            *methods,
        ],
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def describe_consensus(
    model: Any,
    data: Table,
    seconds: float | None,
    *,
    scores: FloatArray | None = None,
    names: Sequence[str] = (),
    matches: Sequence[Any] | None = None,
    groups: Sequence[Mapping[str, Any]] = (),
    by: str | None = None,
) -> Record:
    """Return the record of a consensus, with scores of genes, or of mutational signatures, with matches."""
    consensus, about = getattr(model, "consensus_", model), table_facts(data)
    command, one, of = "consensus", "program", "Consensus programs"
    if consensus is not model:
        command, one, of = "signatures", "signature", "Mutational signatures"
    best = next(rank for rank in consensus.ranks_ if rank.n_components == consensus.n_components_)
    restarts, k, stable, reason = consensus.restarts_, best.n_components, are_stable(best), model.rank_reason_
    measures = {name: getattr(best, name).tolist() for name in ("stability", "recurrence", "usage")}
    programs = words.entries_of(number=range(k), stable=map(bool, stable), **measures)
    for at, program in enumerate(programs):
        if scores is not None:
            program["top_genes"] = words.strongest(scores[at], names, _N_GENES)
        else:
            program["spectrum"] = model.signatures_[at]
            program |= {} if matches is None else asdict(matches[at])
    n_stable, ranks = int(np.sum(stable)), [rank.row() for rank in consensus.ranks_]
    result = {
        "n_components": k,
        **picked(best, "error", "n_outliers"),
        "mean_stability": best.silhouette,
        "reason": reason,
        "n_stable": n_stable,
        "n_restarts": len(restarts),
        **({} if seconds is None else {"seconds": seconds}),
    }
    unclear = len(ranks) == 1 or reason.startswith("No number stands out")
    answer = words.counted(k, one) + ("" if unclear else f" {'is' if k == 1 else 'are'} recommended")
    numbers, *compared = ([row[name] for row in ranks] for name in ("n_components", "stability", "error"))
    curves = drawings.curves(numbers, dict(zip(("stability", "error"), compared, strict=True)), f"{one}s", k)
    rows = words.rows_of(programs, "number", *measures, "top_genes", "name", "nearest", "cosine")
    table = [{one: row.pop("number"), **row} for row in rows]
    spectra = [
        {"spectrum": program["spectrum"], "title": f"Signature {at}"}
        for at, program in enumerate(programs)
        if scores is None
    ]
    return Record(
        command,
        f"{of} of {about['source']}",
        f"{answer}, {'all' if n_stable == k else n_stable or 'none'} of them stable.",
        ["n_components", "mean_stability", "n_restarts"],
        about,
        result,
        details={"ranks": ranks, "programs": programs, "groups": groups},
        remarks=[reason],
        table=table,
        sections=[
            [f"Which number of {one}s", reason, curves, _STABILITY, words.rows_of(ranks, *ranks[0])],
            ["Do the restarts agree?", *_clustergram(best, one)],
            [f"The {one}s", table, spectra and block("row", kind="signature", drawings=spectra)],
            by_group(by, groups, one),
        ],
        **of_estimator(model),
    )


def _clustergram(best: Any, one: str) -> list[Any]:
    """Return the similarities of some components of all restarts, sorted by cluster."""
    shown = np.linspace(0, len(best.distances) - 1, min(_N_COMPARED, len(best.distances))).round().astype(int)
    near = 1.0 - best.distances[np.ix_(shown, shown)].astype(float) / np.sqrt(2.0)
    outliers = f"; {words.counted(best.n_outliers, 'outlier')} unlike all others left out"
    note = (
        f"The {words.counted(len(best.density), one)} of all restarts are compared"
        f"{outliers * (best.n_outliers > 0)}. Squares along the diagonal are clusters that many found."
    )
    picture = (drawings.shades(near, 1.0), f"{one}s of all restarts, by cluster", None)
    return [note, block("pictures", pictures=[picture], kind="huge")]
