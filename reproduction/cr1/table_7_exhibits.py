"""Table VII: its tables, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.cr1.clustering_exhibits import (
    agreement,
    by_method,
    printed_rows,
    scores_table,
    start_counts,
)
from reproduction.cr1.clustering_methods import MEASURES
from reproduction.exhibits import Exhibit, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread
from reproduction.printed import printed_numbers

PAPER_SET, PAPER_RUNS = "tr11", 10

SHOWS = """
Liu & Tan (2017), Table VII. The 414 documents of tr11 (9 classes) are clustered by k-means, by spherical
k-means and by factorizations with K = 9: three algorithms from four starts. A document belongs to the
component with the largest coefficient. The paper says that factorizations from cr1-nmf agree best with the
classes.

The paper does not say how documents were prepared, how the scale of the components was fixed, or which Dice
coefficient is meant. The choices here are those of the authors' public programs and, for the preparation,
the one under which the deterministic rows come out:

- a count c becomes 1 + log c, times log(number of documents / documents with the word); documents have unit
  length;
- coefficients are compared after the basis vectors have been given unit length;
- nmi is the mutual information over the geometric mean of the entropies; Dice is the mean over the classes
  of the Dice coefficient with the cluster that fits best; purity is the share of documents in the largest
  class of their cluster;
- an algorithm ends when the error ||V - WH|| changed by less than 1e-4 over 10 iterations, after 2000
  (mult), 100 (nnlsb) and 1000 (hals) iterations at the latest; k-means and spkm start from 9 random
  documents and end when no document moves;
- cr1-nmf has a random first document, and the mean of its positive coefficients is added to all of them
  before mult and hals; spkm as a start has ten passes and random coefficients; rand is uniform on (0, 1);
  nndsvd keeps its zeros.

The paper averages over 10 runs, here there are 20 on tr11 and fewer on the other collections of CLUTO.
"""


def summarize(records: Sequence[Record]) -> list[Exhibit]:
    """Return the tables of all collections, and those that look into tr11."""
    printed = printed_rows(printed_numbers("cr1_nmf")["table_7_clustering_tr11"])
    panels = {panel: group for (panel,), group in grouped(records, "panel").items()}
    sets = {name: group for (name,), group in grouped(panels.get("table", []), "set").items()}
    exhibits: list[Exhibit] = []
    if PAPER_SET in sets:
        caption = "tr11: mean ± standard deviation over runs, beside the printed ones."
        exhibits.append(scores_table(caption, sets[PAPER_SET], printed))
        exhibits += agreement(sets[PAPER_SET], printed)
    if "first points" in panels:
        exhibits += _first_points(panels["first points"], printed)
    if "preparation" in panels:
        exhibits += _preparations(panels["preparation"], printed)
    if PAPER_SET in sets:
        exhibits.append(_readings(sets[PAPER_SET], printed))
    others = {name: group for name, group in sets.items() if name != PAPER_SET}
    exhibits += [
        scores_table(f"{name}: mean ± standard deviation over runs.", others[name]) for name in others
    ]
    exhibits.append(start_counts(sets))
    return exhibits


def _first_points(records: Sequence[Record], printed: Any) -> list[Exhibit]:
    """Say what cr1-nmf gives on average over first points, beyond the luck of ten runs."""
    groups = by_method(records)
    n_points = len({record["first"] for record in records})
    name = records[0]["set"]
    beside = printed if name == PAPER_SET else {}
    rows = []
    for method, group in groups.items():
        row: dict[str, Any] = {"method": method, "points": len(group)}
        for measure in MEASURES:
            mean, spread = mean_and_spread([record[measure] for record in group])
            target = beside.get(method, {})
            row[measure] = Measured(mean, spread, target.get(measure), target.get(f"{measure}_std"))
        rows.append(row)
    columns = {"method": "method", "points": "first points"} | {measure: measure for measure in MEASURES}
    caption = (
        f"{name}: cr1-nmf from {n_points} first documents, evenly spread over the collection. The clusters"
        " depend on the first document and on nothing else that is drawn, so that this is close to what "
        "the mean over runs tends to; ten runs scatter about it by a third of the standard deviation."
    )
    exhibits: list[Exhibit] = [Table(caption, columns, rows, digits=3)]
    if beside:
        exhibits.append(_luck(rows))
    return exhibits


def _luck(rows: Sequence[Any]) -> Verdict:
    """Say whether the printed means could be those of ten of these first points."""
    apart = {
        f"{row['method']} {measure}": abs(cell.value - cell.printed) / (cell.spread / PAPER_RUNS**0.5)
        for row in rows
        for measure in MEASURES
        if (cell := row[measure]).spread
    }
    largest = max(apart, key=lambda name: apart[name], default="")
    return Verdict(
        "the printed means of cr1-nmf lie within what ten random first points scatter (two standard errors)",
        apart[largest] <= 2 if apart else None,
        f"the largest difference is {apart[largest]:.2f} standard errors: {largest}" if apart else "",
    )


def _preparations(records: Sequence[Record], printed: Any) -> list[Exhibit]:
    name = records[0]["set"]
    rows = []
    for (weighting,), group in grouped(records, "weighting").items():
        row: dict[str, Any] = {"weighting": weighting}
        for method, members in by_method(group).items():
            row |= {f"{method} {measure}": members[0][measure] for measure in MEASURES}
        rows.append(row)
    methods = list(by_method(records))
    columns = {"weighting": "preparation"}
    columns |= {f"{method} {measure}": f"{method}: {measure}" for method in methods for measure in MEASURES}
    if name == PAPER_SET:
        top: dict[str, Any] = {"weighting": "printed"}
        top |= {f"{method} {measure}": printed[method][measure] for method in methods for measure in MEASURES}
        rows.insert(0, top)
    caption = (
        f"{name}: the deterministic rows under several preparations of the counts. log: 1 + log c for a "
        "count c; idf: log(n / documents with the word), smoothed where it says so; documents of unit "
        "length except where lengths are kept and for the counts themselves."
    )
    exhibits: list[Exhibit] = [Table(caption, columns, rows, digits=3)]
    if name == PAPER_SET:
        exhibits.append(_nearest(rows[0], rows[1:], [key for key in columns if key != "weighting"]))
    return exhibits


def _nearest(printed: Any, rows: Sequence[Any], keys: Sequence[str]) -> Verdict:
    distances = {row["weighting"]: max(abs(row[key] - printed[key]) for key in keys) for row in rows}
    nearest = min(distances, key=lambda weighting: distances[weighting])
    claim = "of these preparations log tf-idf with unit length is nearest to the printed rows"
    order = sorted(distances, key=lambda weighting: distances[weighting])
    detail = ", ".join(f"{weighting} {distances[weighting]:.3f}" for weighting in order[:3])
    return Verdict(claim, nearest == "log tf-idf", f"largest difference of a score: {detail}")


def _readings(records: Sequence[Record], printed: Any) -> Exhibit:
    """Show what the scale of the components and the choice of a Dice coefficient change."""
    rows = []
    for method, group in by_method(records).items():
        if "without lengths" not in group[0]:
            continue
        rows.append(
            {
                "method": method,
                "printed": printed[method]["nmi"],
                "nmi": mean_and_spread([record["nmi"] for record in group])[0],
                "raw": mean_and_spread([record["without lengths"]["nmi"] for record in group])[0],
                "printed dice": printed[method]["dice"],
                "dice": mean_and_spread([record["dice"] for record in group])[0],
                "pairs": mean_and_spread([record["pair dice"] for record in group])[0],
            }
        )
    columns = {
        "method": "method",
        "printed": "nmi (printed)",
        "nmi": "nmi",
        "raw": "nmi, coefficients as they come",
        "printed dice": "Dice (printed)",
        "dice": "Dice, best cluster of each class",
        "pairs": "Dice of pairs",
    }
    caption = (
        "tr11: what other readings would give. Coefficients as they come are those that the algorithm "
        "ended with, whatever the length of the basis vectors; the Dice coefficient of pairs is that of "
        "pairs of documents put together by the classes and by the clusters."
    )
    return Table(caption, columns, rows, digits=3) if rows else Paragraph("")
