"""Record and page of a consensus and of mutational signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nonneg._html import Raw, element
from nonneg._typing import FloatArray
from nonneg.applications.signatures import CHANNELS
from nonneg.applications.signatures.catalog import SUBSTITUTION_COLORS
from nonneg.consensus.certificate import are_stable
from nonneg.io import Table
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.fits import group_means, group_rows
from nonneg.report.record import Record, of_estimator, picked, table_facts

_N_TOP = 20  # genes that are named for a program
_N_SHOWN = 120  # components in the clustergram
_COLUMNS = {
    "stability": ("stability", "{:.2f}".format),
    "recurrence": ("restarts", "{:.0%}".format),
    "usage": ("usage", html.percent),
    "top": ("top genes", lambda top: ", ".join(name for name, _ in top[:8])),
    "match": ("match", lambda one: f"{one['name'] or 'none'} ({one['nearest']}: {one['cosine']:.3f})"),
}


def describe(
    model: Any,
    data: Table,
    seconds: float | None,
    *,
    title: str,
    programs: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of a consensus, or of mutational signatures."""
    consensus, best, about = getattr(model, "consensus_", model), _best(model), table_facts(data)
    command, one = ("consensus", "program") if consensus is model else ("signatures", "signature")
    restarts, k, n_stable = consensus.restarts_, best.n_components, sum(each["stable"] for each in programs)
    shown = np.linspace(0, len(best.distances) - 1, min(_N_SHOWN, len(best.distances))).round().astype(int)
    result = {
        "n_components": k,
        **picked(best, "error", "n_outliers"),
        "mean_stability": best.silhouette,
        "reason": model.rank_reason_,
        "n_stable": n_stable,
        "n_found": len(best.density),
        "n_restarts": len(restarts),
        "converged": float(np.mean(restarts.converged[restarts.of(k)])),
    } | ({} if seconds is None else {"seconds": seconds})
    recommended = "" if len(consensus.ranks_) == 1 else " is recommended" if k == 1 else " are recommended"
    rows, columns = about["shape"]
    lead, took = html.samples(about), "" if seconds is None else f" took {html.seconds(seconds)}"
    if command == "signatures":
        tumors = html.counted(columns if rows == len(CHANNELS) else rows, "tumor")
        lead = f"{tumors} with 96 mutation types from {about['source']}"
    tiles = ("mean_stability", "n_restarts", "seconds")
    return Record(
        command,
        title,
        f"{html.counted(k, one)}{recommended}, {'all' if n_stable == k else n_stable} of them stable.",
        f"{lead}; {html.counted(len(restarts), 'restart')}{took}.",
        {f"{one}s": k} | {name: result[name] for name in tiles if name in result},
        about,
        result,
        details={
            "ranks": [each.row() for each in consensus.ranks_],
            "programs": list(programs),
            "clustergram": {
                "distances": np.round(best.distances[np.ix_(shown, shown)].astype(float), 3),
                "labels": best.distance_labels[shown],
            },
            "groups": groups,
            "tables": {},
        },
        **of_estimator(model),
    )


def scored_programs(model: Any, scores: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Describe all programs, each with the genes that have its largest scores."""
    top = np.argsort(-scores, axis=1, kind="stable")[:, :_N_TOP]
    return [
        each | {"top": [(names[gene], float(scores[at, gene])) for gene in top[at]]}
        for at, each in enumerate(_components(model))
    ]


def signature_programs(model: Any, matches: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Describe all signatures, with the known ones that they match."""
    known = [None] * model.n_signatures_ if matches is None else [asdict(each) for each in matches]
    return [
        each | {"spectrum": spectrum, "match": match}
        for each, spectrum, match in zip(_components(model), model.signatures_, known, strict=True)
    ]


def _best(model: Any) -> Any:
    consensus = getattr(model, "consensus_", model)
    return next(each for each in consensus.ranks_ if each.n_components == consensus.n_components_)


def _components(model: Any) -> list[dict[str, Any]]:
    best, names = _best(model), ("stability", "recurrence", "usage")
    return [
        {"number": at, "stable": bool(stable)} | {name: float(getattr(best, name)[at]) for name in names}
        for at, stable in enumerate(are_stable(best))
    ]


def usage_by_group(W: FloatArray, labels: Sequence[Any] | None, by: str) -> dict[str, Any] | None:
    """Return the mean shares of the programs in every group of samples."""
    if labels is None:
        return None
    names = ("name", "n", "usage")
    return {"by": by, "entries": [dict(zip(names, one, strict=True)) for one in group_means(W, labels)]}


def table(record: Record) -> list[dict[str, Any]]:
    """Return the programs, one per row."""
    return html.rows_of(record.details["programs"], {"number": _noun(record)} | _COLUMNS)


def _noun(record: Record) -> str:
    return "program" if record.command == "consensus" else "signature"


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    one, result, details = _noun(record), record.result, record.details
    ranks, groups, near, k = (
        details["ranks"],
        details["groups"],
        details["clustergram"],
        result["n_components"],
    )
    measures = {"mean stability": "stability", "error": "error"}
    curves = drawings.curves(
        [row["n_components"] for row in ranks],
        {what: [row[name] for row in ranks] for what, name in measures.items()}, f"{one}s", k,
    )  # fmt: skip
    compared = [
        {name.removeprefix("n_").replace("_", " "): value for name, value in row.items()} for row in ranks
    ]
    clustergram = drawings.heat_map(
        1.0 - np.asarray(near["distances"], dtype=float) / np.sqrt(2.0),
        f"{one}s of all restarts, by cluster",
        lines=[str(label) for label in near["labels"]], line="cluster", largest=1.0, ordered=True,
        size=(5.2, 4.6),
    )  # fmt: skip
    outliers = (result["n_outliers"], one, "unlike those of other restarts left out as outliers")
    parts = [
        html.section(
            f"Which number of {one}s",
            result["reason"],
            curves if len(ranks) > 1 else None,
            compared,
            html.note(
                f"The stability of a {one} is the mean silhouette of its cluster: 1 if all restarts agree on "
                "it, 0 or less if it cannot be distinguished from others. The error is that of the consensus "
                "with refitted usages."
            ),
        ),
        html.section(
            "Do the restarts agree?",
            f"All {html.counted(result['n_found'], one)} of all restarts are compared. Squares along the "
            f"diagonal are clusters that many restarts found.{html.noted(outliers)}",
            html.side_by_side([clustergram]),
        ),
        html.section(f"The {one}s", html.cards(_program(entry, one) for entry in details["programs"])),
    ]
    if groups:
        rows = group_rows(groups["by"], [each.values() for each in groups["entries"]], one)
        parts.append(html.section(f"Usage by {groups['by']}", f"The mean share of every {one}.", rows))
    if details["tables"]:
        files = [
            {"file": element("a", name, href=name, download=""), "contents": what}
            for name, what in details["tables"].items()
        ]
        parts.append(html.section("Tables", "These files are in the same folder as this page.", files))
    return parts


def _program(entry: Mapping[str, Any], one: str) -> list[Any]:
    """Return the card of a program or signature."""
    name, match = f"{one.capitalize()} {entry['number']}", entry.get("match")
    said = f"{html.percent(entry['usage'])} of the usage; {entry['recurrence']:.0%} of the restarts"
    if match:
        name += f": {match['name']}" if match["name"] else ""
        said += (
            f"; nearest known signature {match['nearest']} (cosine {match['cosine']:.3f}, next "
            f"{match['second']} {match['second_cosine']:.3f}, by chance {match['chance']:.3f})"
        )
    if (spectrum := entry.get("spectrum")) is not None:
        content = _signature_bars(spectrum, f"Signature {entry['number']}")
    else:
        genes, scores = zip(*entry["top"], strict=True)
        content = element("p", html.Names.strongest(scores, genes, _N_TOP))
    badge = html.badge(f"stability {entry['stability']:.2f}", "good" if entry["stable"] else "caution")
    return [[element("h3", name), badge], content, html.note(f"{said}.")]


def _signature_bars(signature: Sequence[float], title: str) -> Raw:
    """Draw the 96 channels of a signature in the usual six colors."""
    figure, axes = drawings.panel(5.2, 1.9)
    colors = [SUBSTITUTION_COLORS[name[2:5]] for name in CHANNELS]
    axes.bar(np.arange(96), 100 * np.asarray(signature, dtype=float), width=0.75, color=colors)
    axes.set_xticks(np.arange(6) * 16 + 7.5, list(SUBSTITUTION_COLORS))
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-1, 96)
    drawings.label(axes, y="mutations, %", grid=False)
    return drawings.drawing(figure, title)
