"""The report of `nonneg consensus` and `nonneg signatures`: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nonneg.report import consensus_figures as figures
from nonneg.report import wording
from nonneg.report.rendering import drawing, render

WORDS = {"consensus": ("program", "programs"), "signatures": ("signature", "signatures")}


def consensus_sentence(record: Mapping[str, Any]) -> str:
    """Say in one sentence what was found."""
    one, _ = WORDS[record["command"]]
    k, stable = record["result"]["n_components"], record["result"]["n_stable"]
    if len(record["ranks"]) > 1:
        subject = f"{wording.counted(k, one)} {'are' if k != 1 else 'is'} recommended"
    else:
        subject = f"{wording.counted(k, one)}"
    return f"{subject}, {'all' if stable == k else stable} of them stable."


def build_consensus_page(record: Mapping[str, Any], channels: Sequence[str] = ()) -> str:
    """Draw the report."""
    command, result = record["command"], record["result"]
    one, many = WORDS[command]
    rows = record["ranks"]
    groups = record["groups"]
    context = {
        "title": record["title"],
        "answer": consensus_sentence(record),
        "outcome": _outcome(record),
        "tiles": [
            (many, wording.number(result["n_components"])),
            ("mean stability", f"{result['stability']:.2f}"),
            ("restarts", wording.number(result["n_restarts"])),
            *([] if result["seconds"] is None else [("time", wording.seconds(result["seconds"]))]),
        ],
        "words": {"one": one, "many": many, "One": one.capitalize()},
        "reason": result["reason"],
        "rank_plots": [
            drawing(figures.rank_plot(rows, result["n_components"], many, narrow=narrow))
            for narrow in (False, True)
        ],
        "ranks": [_row(row, result["n_components"]) for row in rows],
        "clustergram": drawing(
            figures.clustergram(record["clustergram"]["distances"], record["clustergram"]["labels"])
        ),
        "density_plot": drawing(
            figures.density_plot(
                record["density"]["values"], record["density"]["threshold"], result["n_outliers"]
            )
        ),
        "programs": [_program(entry, channels) for entry in record["programs"]],
        "usage_plot": drawing(figures.usage_bars(groups["entries"], one)) if groups else None,
        "usage_heading": f"Usage by {groups['by']}" if groups else None,
        "certificate": [wording.statement(entry) for entry in record["certificate"]],
        "tables": list(record["tables"].items()),
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("consensus.html", context)


def _row(row: Mapping[str, Any], chosen: int) -> dict[str, Any]:
    return {
        "n_components": row["n_components"],
        "chosen": row["n_components"] == chosen,
        "stability": f"{row['stability']:.3f}",
        "least_stable": f"{row['least_stable']:.3f}",
        "error": wording.number(row["error"]),
        "cophenetic": f"{row['cophenetic']:.3f}",
        "n_restarts": wording.number(row["n_restarts"]),
        "n_outliers": wording.number(row["n_outliers"]),
    }


def _program(entry: Mapping[str, Any], channels: Sequence[str]) -> dict[str, Any]:
    note = f"{wording.percent(entry['usage'])} of the usage; "
    note += f"{wording.percent(entry['recurrence'])} of the restarts"
    match = entry.get("match")
    if match:
        note += f"; nearest known signature {match['nearest']} (cosine {match['cosine']:.3f}, next "
        note += f"{match['second']} {match['second_cosine']:.3f}, by chance {match['chance']:.3f})"
    spectrum = entry.get("spectrum")
    strongest = max((value for _, value in entry["top"]), default=1.0) or 1.0
    return {
        "number": entry["number"],
        "stability": f"{entry['stability']:.2f}",
        "stable": entry["stable"],
        "note": f"{note}.",
        "match": match["name"] if match else None,
        "top": [(name, round(100 * max(value, 0.0) / strongest)) for name, value in entry["top"]],
        "drawings": None
        if spectrum is None
        else [
            drawing(figures.signature_bars(spectrum, channels, f"Signature {entry['number']}", narrow=narrow))
            for narrow in (False, True)
        ],
    }


def _outcome(record: Mapping[str, Any]) -> str:
    data, result = record["data"], record["result"]
    rows, columns = data["shape"]
    restarts = wording.counted(result["n_restarts"], "restart")
    if result["seconds"] is not None:
        restarts += f" took {wording.seconds(result['seconds'])}"
    if record["command"] == "signatures":
        tumors = columns if rows == 96 else rows
        return f"{wording.counted(tumors, 'tumor')} with 96 mutation types from {data['source']}; {restarts}."
    used = ""
    if result.get("n_genes") not in (None, columns):
        used = f" ({wording.number(result['n_genes'])} of them, the most variable, were factorized)"
    return (
        f"{wording.counted(rows, 'sample')} with {wording.counted(columns, 'feature')}{used} from "
        f"{data['source']}; {restarts}."
    )


def _facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    data, result = record["data"], record["result"]
    rows, columns = data["shape"]
    about = [
        ("source", data["source"]),
        ("shape", f"{wording.number(rows)} \N{MULTIPLICATION SIGN} {wording.number(columns)}"),
        ("entries", data["dtype"]),
    ]
    found = [
        ("error", wording.number(result["error"])),
        ("outliers", wording.number(result["n_outliers"])),
        ("restarts that reached tol", wording.percent(result["converged"])),
    ]
    parameters = [(name, wording.number(value)) for name, value in record["parameters"].items()]
    return [("Data", about), ("Result", found), ("Parameters", parameters)]
