"""Record of a consensus and of mutational signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.consensus.certificate import are_stable
from nonneg.io import Table
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked, table_facts
from nonneg.report.tables import by_group

_N_TOP = 20  # genes that are named for a program
_N_SHOWN = 120  # components in the clustergram
_NUMBERS = (
    "The stability is the mean silhouette of clusters of components: 1 if all restarts agree, 0 or less if "
    "components cannot be distinguished. The error is that of the consensus with refitted usages."
)


def describe(
    model: Any,
    data: Table,
    seconds: float | None,
    *,
    scores: FloatArray | None = None,
    names: Sequence[str] = (),
    matches: Sequence[Any] | None = None,
    groups: Sequence[Mapping[str, Any]] = (),
    by: str | None = "group",
) -> Record:
    """Return the record of a consensus, with scores of genes, or of mutational signatures, with matches."""
    consensus, about = getattr(model, "consensus_", model), table_facts(data)
    command, one, of = "consensus", "program", "Consensus programs"
    if consensus is not model:
        command, one, of = "signatures", "signature", "Mutational signatures"
    best = next(each for each in consensus.ranks_ if each.n_components == consensus.n_components_)
    restarts, k, stable, reason = consensus.restarts_, best.n_components, are_stable(best), model.rank_reason_
    measures = {name: getattr(best, name).tolist() for name in ("stability", "recurrence", "usage")}
    programs = words.entries_of(number=range(k), stable=map(bool, stable), **measures)
    for at, program in enumerate(programs):
        if scores is not None:
            program["top_genes"] = words.strongest(scores[at], names, _N_TOP)
        else:
            program["spectrum"] = model.signatures_[at]
            program |= {} if matches is None else asdict(matches[at])
    n_stable, ranks = int(np.sum(stable)), [each.row() for each in consensus.ranks_]
    result = {
        "n_components": k,
        **picked(best, "error", "n_outliers"),
        "mean_stability": best.silhouette,
        "reason": reason,
        "n_stable": n_stable,
        "n_found": len(best.density),
        "n_restarts": len(restarts),
        "converged": float(np.mean(restarts.converged[restarts.of(k)])),
        **({} if seconds is None else {"seconds": seconds}),
    }
    unclear = len(ranks) == 1 or reason.startswith("No number stands out")
    recommended = "" if unclear else " is recommended" if k == 1 else " are recommended"
    curves = drawings.curves(
        [row["n_components"] for row in ranks],
        {name: [row[name] for row in ranks] for name in ("stability", "error")}, f"{one}s", k,
    )  # fmt: skip
    shown = ("number", *measures, "top_genes", "name", "nearest", "cosine")
    table = words.rows_of(programs, *shown)
    spectra = [
        block("signature", shares=program["spectrum"], title=f"Signature {at}")
        for at, program in enumerate(programs)
        if scores is None
    ]
    return Record(
        command,
        f"{of} of {about['source']}",
        f"{words.counted(k, one)}{recommended}, {'all' if n_stable == k else n_stable} of them stable.",
        ["n_components", "mean_stability", "n_restarts"],
        about,
        result,
        details={"ranks": ranks, "programs": programs, "groups": groups},
        remarks=[reason],
        table=table,
        sections=[
            [
                f"Which number of {one}s",
                reason,
                len(ranks) > 1 and curves,
                words.rows_of(ranks, *ranks[0]),
                _NUMBERS,
            ],
            ["Do the restarts agree?", *_clustergram(best, one)],
            [f"The {one}s", table, spectra and block("row", drawings=spectra)],
            by_group(by, groups, one),
        ],
        **of_estimator(model),
    )


def _clustergram(best: Any, one: str) -> list[Any]:
    """Return the similarities of some components of all restarts, sorted by cluster."""
    shown = np.linspace(0, len(best.distances) - 1, min(_N_SHOWN, len(best.distances))).round().astype(int)
    near = 1.0 - best.distances[np.ix_(shown, shown)].astype(float) / np.sqrt(2.0)
    told = (
        f"The {words.counted(len(best.density), one)} of all restarts are compared, but for "
        f"{words.counted(best.n_outliers, 'outlier')} unlike those of other restarts. Squares along the "
        "diagonal are clusters that many restarts found."
    )
    picture = (drawings.shades(near, 1.0), f"{one}s of all restarts, by cluster", None)
    return [told, block("pictures", pictures=[picture], kind="huge")]
