"""Record of a consensus and of mutational signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.signatures import CHANNELS
from nonneg.consensus.certificate import are_stable
from nonneg.io import Table
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked, table_facts
from nonneg.report.tables import group_means, group_rows

_N_TOP = 20  # genes that are named for a program
_N_SHOWN = 120  # components in the clustergram
_COLUMNS = {
    "stability": ("stability", "{:.2f}".format),
    "recurrence": ("restarts", "{:.0%}".format),
    "usage": ("usage", words.percent),
    "top": ("top genes", words.shaded),
    "match": (
        "match (nearest, cosine)",
        lambda one: f"{one['name'] or 'none'} ({one['nearest']}, cosine {one['cosine']:.3f})",
    ),
}


def describe(
    model: Any,
    data: Table,
    seconds: float | None,
    *,
    scores: FloatArray | None = None,
    names: Sequence[str] = (),
    matches: Sequence[Any] | None = None,
    groups: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of a consensus, with scores of genes, or of mutational signatures, with matches."""
    consensus, about = getattr(model, "consensus_", model), table_facts(data)
    command, one = ("consensus", "program") if consensus is model else ("signatures", "signature")
    best = next(each for each in consensus.ranks_ if each.n_components == consensus.n_components_)
    restarts, k, stable = consensus.restarts_, best.n_components, are_stable(best)
    programs = words.entries_of(
        number=range(k),
        stable=map(bool, stable),
        **{name: getattr(best, name).tolist() for name in ("stability", "recurrence", "usage")},
    )
    spectra = []
    for at, program in enumerate(programs):
        if scores is not None:
            top = np.argsort(-scores[at], kind="stable")[:_N_TOP].tolist()
            program["top"] = [(names[gene], float(scores[at, gene])) for gene in top]
        else:
            program["spectrum"] = model.signatures_[at]
            program["match"] = None if matches is None else asdict(matches[at])
            spectra.append(block("signature", shares=model.signatures_[at], title=f"Signature {at}"))
    n_stable = int(np.sum(stable))
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
    unclear = len(consensus.ranks_) == 1 or model.rank_reason_.startswith("No number stands out")
    recommended = "" if unclear else " is recommended" if k == 1 else " are recommended"
    rows, columns = about["shape"]
    size = words.samples(about)
    if command == "signatures":
        tumors = words.counted(columns if rows == len(CHANNELS) else rows, "tumor")
        size = f"{tumors} with 96 mutation types"
    of = {"consensus": "Consensus programs", "signatures": "Mutational signatures"}[command]
    tiles, ranks = ("mean_stability", "n_restarts", "seconds"), [each.row() for each in consensus.ranks_]
    sections = [
        _numbers(ranks, result, one),
        ["Do the restarts agree?", *_clustergram(best, result, one)],
        [f"The {one}s", block("table"), block("row", drawings=spectra)],
    ]
    if groups:
        entries = group_rows(groups["by"], [each.values() for each in groups["entries"]], one)
        sections.append([f"Usage by {groups['by']}", f"The mean share of every {one}.", entries])
    return Record(
        command,
        f"{of} of {about['source']}",
        f"{words.counted(k, one)}{recommended}, {'all' if n_stable == k else n_stable} of them stable.",
        words.lead(size, about, words.counted(len(restarts), "restart"), result),
        {f"{one}s": k} | {name: result[name] for name in tiles if name in result},
        about,
        result,
        details={"ranks": ranks, "programs": programs, "groups": groups},
        remarks=[model.rank_reason_],
        table=words.rows_of(programs, {"number": one} | _COLUMNS),
        sections=sections,
        **of_estimator(model),
    )


def usage_by_group(W: FloatArray, labels: Sequence[Any] | None, by: str) -> dict[str, Any] | None:
    """Return the mean shares of the programs in every group of samples."""
    if labels is None:
        return None
    names = ("name", "n", "usage")
    return {"by": by, "entries": [dict(zip(names, one, strict=True)) for one in group_means(W, labels)]}


def _numbers(ranks: Sequence[Mapping[str, Any]], result: Mapping[str, Any], one: str) -> list[Any]:
    """Return the section that compares the numbers of components."""
    measures = {"mean stability": "stability", "error": "error"}
    curves = drawings.curves(
        [row["n_components"] for row in ranks],
        {what: [row[name] for row in ranks] for what, name in measures.items()},
        f"{one}s", result["n_components"],
    )  # fmt: skip
    compared = [
        {name.removeprefix("n_").replace("_", " "): value for name, value in row.items()} for row in ranks
    ]
    told = (
        f"The stability of a {one} is the mean silhouette of its cluster: 1 if all restarts agree on it, 0 "
        "or less if it cannot be distinguished from others. The error is that of the consensus with refitted "
        "usages."
    )
    note = block("note", text=told)
    return [f"Which number of {one}s", result["reason"], curves if len(ranks) > 1 else None, compared, note]


def _clustergram(best: Any, result: Mapping[str, Any], one: str) -> list[Any]:
    """Return the distances of some components of all restarts, sorted by cluster."""
    shown = np.linspace(0, len(best.distances) - 1, min(_N_SHOWN, len(best.distances))).round().astype(int)
    near = 1.0 - best.distances[np.ix_(shown, shown)].astype(float) / np.sqrt(2.0)
    told = (
        f"All {words.counted(result['n_found'], one)} of all restarts are compared. Squares along the "
        "diagonal are clusters that many restarts found."
    )
    if outliers := result["n_outliers"]:
        told += f" {words.counted(outliers, one)} unlike those of other restarts left out as outliers."
    caption = f"{one}s of all restarts, by cluster"
    return [told, block("pictures", pictures=[(drawings.shades(near, 1.0), caption, None)], kind="huge")]
