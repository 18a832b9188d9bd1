"""Blocks of a consensus and of mutational signatures: which number, do restarts agree, the programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nonneg._html import Raw
from nonneg._typing import FloatArray
from nonneg.applications.signatures import CHANNELS
from nonneg.applications.signatures.catalog import SUBSTITUTION_COLORS
from nonneg.consensus.certificate import are_stable
from nonneg.io import Table
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.fits import group_rows
from nonneg.report.records import Record

_WORDS = {"consensus": ("program", "programs"), "signatures": ("signature", "signatures")}
_N_TOP = 20  # genes that are named for a program
# Components in the clustergram of the record, and in its histogram of densities.
_N_SHOWN, _N_DENSITIES = 120, 5000


def describe(
    model: Any,
    data: Table,
    seconds: float | None,
    *,
    title: str,
    programs: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Any] | None = None,
    n_genes: int | None = None,
) -> Record:
    """Return the record of a consensus, or of mutational signatures."""
    consensus = getattr(model, "consensus_", model)
    command = "consensus" if consensus is model else "signatures"
    best = next(each for each in consensus.ranks_ if each.n_components == consensus.n_components_)
    shown, thin = (
        np.linspace(0, len(side) - 1, min(most, len(side))).round().astype(int)
        for side, most in ((best.distances, _N_SHOWN), (best.density, _N_DENSITIES))
    )
    one, many = _WORDS[command]
    about, k, restarts = records.table_facts(data), consensus.n_components_, consensus.restarts_
    n_stable = sum(entry["stable"] for entry in programs)
    result = {
        "n_components": k,
        "reason": model.rank_reason_,
        "stability": best.silhouette,
        "n_stable": n_stable,
        "n_outliers": best.n_outliers,
        "n_restarts": len(restarts),
        "error": best.error,
        "converged": float(np.mean(restarts.converged[restarts.of(k)])),
        "seconds": seconds,
        "n_genes": n_genes,
    }
    subject = wording.counted(k, one)
    if len(consensus.ranks_) > 1:
        subject += f" {'are' if k != 1 else 'is'} recommended"
    own = {"model": model, "parameters": records.shown_parameters(model.get_params())}
    return Record(
        command,
        title,
        f"{subject}, {'all' if n_stable == k else n_stable} of them stable.",
        _lead(command, about, result),
        {many: k, "mean stability": f"{best.silhouette:.2f}", "restarts": len(restarts)}
        | ({} if seconds is None else {"time": seconds}),
        about,
        result,
        details={
            "ranks": [each.row() for each in consensus.ranks_],
            "programs": list(programs),
            "clustergram": {
                "distances": np.round(best.distances[np.ix_(shown, shown)].astype(float), 3),
                "labels": best.distance_labels[shown],
            },
            "density": {
                "values": np.round(np.minimum(best.density[thin], 2.0), 4),
                "threshold": float(consensus.density_threshold),
            },
            "groups": groups,
            "tables": {},
        },
        **records.of_estimator(consensus) | own,
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
    return {
        "number": at,
        "stability": float(best.stability[at]),
        "stable": bool(are_stable(best)[at]),
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


def table(record: Record) -> list[dict[str, Any]]:
    """Return the programs, one per row."""
    one, _ = _WORDS[record.command]
    rows = []
    for entry in record.details["programs"]:
        match = entry.get("match")
        row = {
            one: entry["number"],
            "stability": f"{entry['stability']:.2f}",
            "restarts": f"{entry['recurrence']:.0%}",
            "usage": wording.percent(entry["usage"]),
        }
        if entry["top"]:
            row["top genes"] = ", ".join(name for name, _ in entry["top"][:8])
        if match:
            row["match"] = f"{match['name'] or 'none'} ({match['nearest']}: {match['cosine']:.3f})"
        rows.append(row)
    return rows


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    one, many = _WORDS[record.command]
    result, details = record.result, record.details
    ranks, groups, chosen = details["ranks"], details["groups"], result["n_components"]
    candidates = [row["n_components"] for row in ranks]
    curves = [
        drawings.curve(candidates, [row[name] for row in ranks], (many, what), mark=chosen)
        for name, what in (("stability", "mean stability"), ("error", "error"))
    ]
    near = details["clustergram"]
    alike = 1.0 - np.asarray(near["distances"], dtype=float) / np.sqrt(2.0)
    labels = [str(label) for label in near["labels"]]
    parts = [
        html.section(
            f"Which number of {many}",
            result["reason"],
            html.side_by_side(*curves) if len(ranks) > 1 else None,
            html.paragraph(
                f"The stability of a {one} is the mean silhouette of its cluster: 1 if all restarts agree on "
                "it, 0 or less if it cannot be distinguished from others. The error is that of the consensus "
                "with refitted usages.",
                note=True,
            ),
            [_rank_row(row, many, chosen) for row in ranks],
        ),
        html.section(
            "Do the restarts agree?",
            f"Each {one} of each restart is compared with all others. Dark squares are clusters of {many} "
            "that many restarts found. Those without near neighbors, to the right of the dashed line, are "
            "outliers and were left out.",
            html.side_by_side(
                drawings.heat_map(
                    alike, f"{many} of all restarts, by cluster", lines=labels, line="cluster", largest=1.0,
                    ordered=True, size=(5.2, 4.6),
                ),
                _density_plot(details["density"], result["n_outliers"]),
            ),
        ),
        html.section(f"The {many}", *(_program(entry, one) for entry in details["programs"])),
    ]  # fmt: skip
    if groups:
        entries = ((each["name"], each["n"], each["usage"]) for each in groups["entries"])
        rows = group_rows(groups["by"] or "group", entries, one)
        parts.append(html.section(f"Usage by {groups['by']}", f"The mean share of every {one}.", rows))
    if details["tables"]:
        intro = "These files are in the same folder as this page."
        parts.append(html.section("Tables", intro, html.downloads(details["tables"])))
    return parts


def _rank_row(row: Mapping[str, Any], many: str, chosen: int) -> dict[str, Any]:
    k = row["n_components"]
    return {
        many: f"{k}{' ←' * (k == chosen)}",
        "stability": f"{row['stability']:.3f}",
        "least stable": f"{row['least_stable']:.3f}",
        "error": row["error"],
        "cophenetic": wording.number(row["cophenetic"], digits=3),
        "restarts": row["n_restarts"],
        "outliers": row["n_outliers"],
    }


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
            html.Names((gene, 100 * max(value, 0.0) / most) for gene, value in entry["top"])
        )
    headline = [html.badge(f"stability {entry['stability']:.2f}", grade), html.element("h3", name)]
    return html.card(headline, html.paragraph(f"{note}.", note=True), content)


def _density_plot(density: Mapping[str, Any], n_outliers: int) -> Raw:
    """Draw how far components are from their neighbors, with the threshold that makes outliers."""
    values, threshold = np.asarray(density["values"], dtype=float), density["threshold"]
    top = max(1.0, min(1.42, threshold * 1.1))
    whole, (axes,) = drawings.panels(5.2, 4.6)
    axes.hist(np.clip(values, 0.0, top), bins=np.linspace(0.0, top, 51), color=drawings.ACCENT)
    if threshold <= top:
        axes.axvline(threshold, color=drawings.INK, linestyle="--", linewidth=1.2)
    share = 100 * n_outliers / max(len(values), 1)
    title = f"{n_outliers} of {len(values)} components ({share:.0f}%) are outliers"
    axes.set_title(title, color=drawings.INK, fontsize=11)
    drawings.label(axes, "mean distance to the nearest components", "components", grid=False)
    axes.set_yscale("symlog", linthresh=10)
    axes.yaxis.set_major_formatter("{x:.0f}")
    return drawings.drawing(whole, "Distances of components to their nearest neighbors")


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
