"""`nonneg rank FILE`: estimate the number of components."""

from __future__ import annotations

import argparse
from dataclasses import replace

from nonneg.cli import arguments, tables, terminal

OPTIONS = f"""
file FILE: .npy .npz .csv .tsv .txt (.gz) .mtx .mat .parquet .h5ad .h5, or a 10x folder

[search]
--method NAME+: singular-value-ratio or cross-validation; may be repeated (default: both)
-k/--candidates RANGE: a range such as 2:20, or a list such as 5,7,9 (default: from 2 to half of the smaller
    side, at most 64)
--normalize l1|l2: scale samples to norm one first
--scale max|std|sum: divide every column by its maximum, standard deviation or sum first
--missing
--seed
--n-jobs
--checkpoint

[data]
{tables.READING}
{tables.LABEL}
{tables.MEMORY}
"""


def run(options: argparse.Namespace) -> None:
    """Read, estimate, write."""
    from nonneg import compare_ranks
    from nonneg.cli import files
    from nonneg.report.tables import describe_ranks, scaled

    folder = arguments.output_folder(options, options.file, "rank")
    table = tables.read_input(options)
    if options.scale is not None:
        table = replace(table, X=scaled(table.X, options.scale))
    names = ("candidates", "normalize", "missing", "n_jobs")
    shown = arguments.chosen(options, *names, methods="method", rng="seed")
    others = arguments.chosen(options, "checkpoint") | {"verbose": int(not options.quiet)}
    comparison, seconds = terminal.timed(compare_ranks, table.X, **shown, **others)
    shown |= arguments.chosen(options, "scale")
    record = describe_ranks(comparison, table, seconds, shown)
    for name, why in comparison.left_out.items():
        terminal.note(f"note: {name} was left out. {why}")
    record.files["rank.csv"] = files.entries_file(record.result["table"])
    terminal.finish(folder, record)
