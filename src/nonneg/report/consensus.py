"""Sections of a consensus and of mutational signatures: which number, do restarts agree, the programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nonneg._html import Raw
from nonneg._typing import FloatArray
from nonneg.applications.signatures import CHANNELS
from nonneg.applications.signatures.catalog import SUBSTITUTION_COLORS
from nonneg.io import Table
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_WORDS = {"consensus": ("program", "programs"), "signatures": ("signature", "signatures")}
_N_TOP = 20  # genes that are named for a program
# Components in the clustergram of the record, and in its histogram of densities.
_N_SHOWN, _N_DENSITIES = 120, 5000
_ERROR = "#d55e00"


def describe(
    model: Any,
    data: Table,
    seconds: float | None,
    *,
    title: str,
    programs: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any],
    command: str = "consensus",
    groups: Mapping[str, Any] | None = None,
    n_genes: int | None = None,
    reason: str | None = None,
    saved: Any = None,
) -> Record:
    """Return the record of a consensus."""
    best = next(each for each in model.ranks_ if each.n_components == model.n_components_)
    shown, thin = (
        np.linspace(0, len(side) - 1, min(most, len(side))).round().astype(int)
        for side, most in ((best.distances, _N_SHOWN), (best.density, _N_DENSITIES))
    )
    one, many = _WORDS[command]
    about, k = records.table_facts(data), model.n_components_
    n_stable = sum(entry["stable"] for entry in programs)
    result = {
        "n_components": k,
        "reason": reason or model.rank_reason_,
        "stability": best.silhouette,
        "n_stable": n_stable,
        "n_outliers": best.n_outliers,
        "n_restarts": len(model.restarts_),
        "error": best.error,
        "converged": float(np.mean(model.restarts_.converged[model.restarts_.of(k)])),
        "seconds": seconds,
        "n_genes": n_genes,
    }
    subject = wording.counted(k, one)
    if len(model.ranks_) > 1:
        subject += f" {'are' if k != 1 else 'is'} recommended"
    common = records.of_estimator(model) | {"parameters": records.shown_parameters(parameters)}
    return Record(
        command,
        title,
        f"{subject}, {'all' if n_stable == k else n_stable} of them stable.",
        _lead(command, about, result),
        {many: k, "mean stability": f"{best.silhouette:.2f}", "restarts": len(model.restarts_)}
        | ({} if seconds is None else {"time": seconds}),
        about,
        result,
        details={
            "ranks": [each.row() for each in model.ranks_],
            "programs": list(programs),
            "clustergram": {
                "distances": np.round(best.distances[np.ix_(shown, shown)].astype(float), 3),
                "labels": best.distance_labels[shown],
            },
            "density": {
                "values": np.round(np.minimum(best.density[thin], 2.0), 4),
                "threshold": float(model.density_threshold),
            },
            "groups": groups,
            "tables": {},
        },
        **common | {"model": model if saved is None else saved},
    )


def scored_programs(model: Any, scores: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Describe all programs, each with the genes that have its largest scores."""
    top = np.argsort(-scores, axis=1, kind="stable")[:, :_N_TOP]
    return [
        {**_program_facts(model, at), "top": [(names[gene], float(scores[at, gene])) for gene in genes]}
        for at, genes in enumerate(top)
    ]


def signature_programs(model: Any, matches: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Describe all signatures, with the known ones that they match."""
    return [
        {
            **_program_facts(model.consensus_, at),
            "spectrum": model.signatures_[at],
            "top": [],
            "match": None if matches is None else asdict(matches[at]),
        }
        for at in range(model.n_signatures_)
    ]


def _program_facts(model: Any, at: int) -> dict[str, Any]:
    best = next(each for each in model.ranks_ if each.n_components == model.n_components_)
    name = f"stability-{at}"
    return {
        "number": at,
        "stability": float(best.stability[at]),
        "stable": name in model.certificate_ and str(model.certificate_[name].verdict) == "holds",
        "recurrence": float(best.recurrence[at]),
        "usage": float(best.usage[at]),
    }


def usage_by_group(W: FloatArray, labels: Sequence[Any] | None, by: str) -> dict[str, Any] | None:
    """Return the mean shares of the programs in every group of samples."""
    if labels is None:
        return None
    sums = W.sum(axis=1, keepdims=True)
    shares = W / np.where(sums > 0, sums, 1.0)
    names, places = np.unique(np.asarray([str(name) for name in labels]), return_inverse=True)
    entries = [
        {"name": str(name), "n": int(np.sum(places == at)), "usage": shares[places == at].mean(axis=0)}
        for at, name in enumerate(names)
    ]
    return {"by": by, "entries": entries}


def _lead(command: str, data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    rows, columns = data["shape"]
    restarts = wording.counted(result["n_restarts"], "restart")
    if result["seconds"] is not None:
        restarts += f" took {wording.seconds(result['seconds'])}"
    if command == "signatures":
        tumors = columns if rows == len(CHANNELS) else rows
        return f"{wording.counted(tumors, 'tumor')} with 96 mutation types from {data['source']}; {restarts}."
    used = ""
    if result["n_genes"] not in (None, columns):
        used = f"; the {wording.number(result['n_genes'])} most variable features were factorized"
    return f"{wording.samples(data)}{used}; {restarts}."


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    one, many = _WORDS[record.command]
    result, details = record.result, record.details
    ranks, density, groups = details["ranks"], details["density"], details["groups"]
    near = details["clustergram"]
    headings = [f">{many}", ">stability", ">least stable", ">error", ">cophenetic", ">restarts", ">outliers"]
    parts = [
        html.section(
            f"Which number of {many}",
            html.paragraph(result["reason"]),
            html.figure(_rank_plot(ranks, result["n_components"], many)),
            html.paragraph(
                f"The stability of a {one} is the mean silhouette of its cluster: 1 if all restarts agree on "
                "it, 0 or less if it cannot be distinguished from others. The error is that of the consensus "
                "with refitted usages.",
                note=True,
            ),
            html.table(headings, [_rank_row(row, result["n_components"]) for row in ranks]),
        ),
        html.section(
            "Do the restarts agree?",
            html.paragraph(
                f"Each {one} of each restart is compared with all others. Dark squares are clusters of "
                f"{many} that many restarts found. Those without near neighbors, to the right of the dashed "
                "line, are outliers and were left out."
            ),
            html.side_by_side(
                html.figure(_clustergram(near["distances"], near["labels"]), wide=False),
                html.figure(
                    _density_plot(density["values"], density["threshold"], result["n_outliers"]), wide=False
                ),
            ),
        ),
        html.section(f"The {many}", [_program(entry, one) for entry in details["programs"]]),
    ]
    if groups:
        parts.append(
            html.section(f"Usage by {groups['by']}", html.figure(_usage_bars(groups["entries"], one)))
        )
    if details["tables"]:
        listed = [
            html.element("li", html.element("a", name, href=name, download=""), f": {what}")
            for name, what in details["tables"].items()
        ]
        intro = html.paragraph("These files are in the same folder as this page.")
        parts.append(html.section("Tables", intro, html.element("ul", listed)))
    return parts


def _rank_row(row: Mapping[str, Any], chosen: int) -> list[str]:
    k = row["n_components"]
    return [
        f"{k}{' ←' * (k == chosen)}",
        f"{row['stability']:.3f}",
        f"{row['least_stable']:.3f}",
        wording.number(row["error"]),
        wording.number(row["cophenetic"], digits=3),
        wording.number(row["n_restarts"]),
        wording.number(row["n_outliers"]),
    ]


def _program(entry: Mapping[str, Any], one: str) -> Raw:
    note = f"{wording.percent(entry['usage'])} of the usage; "
    note += f"{wording.percent(entry['recurrence'])} of the restarts"
    match = entry.get("match")
    name = f"{one.capitalize()} {entry['number']}"
    if match:
        note += f"; nearest known signature {match['nearest']} (cosine {match['cosine']:.3f}, next "
        note += f"{match['second']} {match['second_cosine']:.3f}, by chance {match['chance']:.3f})"
        name += f": {match['name']}" if match["name"] else ""
    grade = "good" if entry["stable"] else "caution"
    if (spectrum := entry.get("spectrum")) is not None:
        content = html.figure(_signature_bars(spectrum, f"Signature {entry['number']}"))
    else:
        most = max((value for _, value in entry["top"]), default=1.0) or 1.0
        content = html.paragraph(
            html.chips((gene, round(100 * max(value, 0.0) / most)) for gene, value in entry["top"])
        )
    headline = [html.badge(f"stability {entry['stability']:.2f}", grade), html.element("h3", name)]
    heading = html.element("div", headline, class_="headline")
    body = [heading, html.paragraph(f"{note}.", note=True), content]
    return html.element("article", body, class_="statement")


def _rank_plot(rows: Sequence[Mapping[str, Any]], chosen: int, what: str) -> Raw:
    """Draw stability and error by rank, as Alexandrov et al. (2013) do."""
    ranks = [row["n_components"] for row in rows]
    whole, (axes,) = drawings.panels(10.4, 3.4)
    axes.axvline(chosen, color=drawings.FAINT, linewidth=6, zorder=0)
    (mean,) = axes.plot(
        ranks, [row["stability"] for row in rows], "o-", color=drawings.ACCENT, label="mean stability"
    )
    worst = [row["least_stable"] for row in rows]
    (least,) = axes.plot(ranks, worst, "o--", color=drawings.ACCENT, alpha=0.6, label="least stable")
    axes.set_ylim(min(0.0, *worst) - 0.03, 1.05)
    drawings.label(axes, what, "stability (silhouette)", grid=False)
    drawings.whole_numbers(axes)
    other = axes.twinx()
    (error,) = other.plot(ranks, [row["error"] for row in rows], "s-", color=_ERROR, label="error")
    other.set_ylabel("error", color=_ERROR)
    other.tick_params(colors=_ERROR, labelsize=10)
    other.spines[["top", "left", "bottom"]].set_visible(False)
    other.spines["right"].set_color(drawings.FAINT)
    drawings.plain_legend(
        axes, handles=[mean, least, error], loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=3
    )
    return drawings.drawing(whole, f"Stability and error by number of {what}")


def _density_plot(density: Sequence[float], threshold: float, n_outliers: int) -> Raw:
    """Draw how far components are from their neighbors, with the threshold that makes outliers."""
    values = np.asarray(density, dtype=float)
    top = max(1.0, min(1.42, threshold * 1.1))
    whole, (axes,) = drawings.panels(5.2, 3.2)
    axes.hist(np.clip(values, 0.0, top), bins=np.linspace(0.0, top, 51), color=drawings.ACCENT)
    if threshold <= top:
        axes.axvline(threshold, color=drawings.INK, linestyle="--", linewidth=1.2)
    share = 100 * n_outliers / max(len(values), 1)
    title = f"{n_outliers} of {len(values)} components ({share:.0f}%) are outliers"
    axes.set_title(title, color=drawings.INK, fontsize=11)
    drawings.label(axes, "mean distance to the nearest components", "components", grid=False)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:.0f}")
    return drawings.drawing(whole, "Distances of components to their nearest neighbors")


def _clustergram(distances: Any, labels: Sequence[int]) -> Raw:
    """Draw the distances between components, in the order of their clusters."""
    D, marks = np.asarray(distances, dtype=float), np.asarray(labels)
    n = len(D)
    whole, (axes,) = drawings.panels(5.2, 4.6)
    picture = axes.imshow(
        D, cmap="Blues_r", vmin=0.0, vmax=1.4142, interpolation="none", extent=(0, n, n, 0), aspect="equal"
    )
    edges = np.flatnonzero(np.diff(marks)) + 1
    middles = [part.mean() for part in np.split(np.arange(n) + 0.5, edges)]
    names = [str(marks[int(middle)]) for middle in middles]
    axes.set_xticks(middles, names)
    axes.set_yticks(middles, names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    drawings.label(axes, "components of all restarts, by cluster", grid=False)
    bar = whole.colorbar(picture, ax=axes, shrink=0.8)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=drawings.INK, labelsize=9)
    bar.set_label("distance", color=drawings.INK)
    return drawings.drawing(whole, "Distances between the components of all restarts")


def _usage_bars(groups: Sequence[Mapping[str, Any]], what: str) -> Raw:
    """Draw the mean share of each program, one bar per group."""
    shares = np.array([group["usage"] for group in groups], dtype=float)
    whole, (axes,) = drawings.panels(10.4, 0.9 + 0.32 * len(groups))
    left, colors = np.zeros(len(groups)), drawings.COLORS
    for at in range(shares.shape[1]):
        axes.barh(
            np.arange(len(groups)), 100 * shares[:, at], left=100 * left, color=colors[at % len(colors)],
            height=0.72, edgecolor="white", linewidth=0.6, alpha=1.0 if at < len(colors) else 0.55,
            label=str(at),
        )  # fmt: skip
        left += shares[:, at]
    names = [str(group["name"])[:24] for group in groups]
    axes.set_yticks(np.arange(len(groups)), names, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    drawings.label(axes, "share of usage, %", grid=False)
    columns = 1 + shares.shape[1] // 12
    drawings.plain_legend(
        axes, title=what, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, ncols=columns
    )
    return drawings.drawing(whole, f"Mean usage of each {what}")


def _signature_bars(signature: Sequence[float], title: str) -> Raw:
    """Draw the 96 channels of a signature in the usual six colors."""
    values = 100 * np.asarray(signature, dtype=float)
    top = max(float(values.max()), 1e-9) * 1.3
    whole, (axes,) = drawings.panels(10.4, 2.3)
    kinds = [name[2:5] for name in CHANNELS]
    axes.bar(np.arange(96), values, width=0.75, color=[SUBSTITUTION_COLORS[kind] for kind in kinds])
    for place, kind in enumerate(dict.fromkeys(kinds)):
        span = (16 * place - 0.4, 16 * place + 15.4)
        axes.fill_between(span, 0.91 * top, 0.97 * top, color=SUBSTITUTION_COLORS[kind], linewidth=0)
        axes.text(16 * place + 7.5, top, kind, ha="center", va="bottom", fontsize=10, color=drawings.INK)
    axes.set_ylim(0, top)
    axes.set_xlim(-0.8, 95.8)
    axes.set_xticks([])
    drawings.label(axes, y="mutations, %", grid=False)
    return drawings.drawing(whole, title)
