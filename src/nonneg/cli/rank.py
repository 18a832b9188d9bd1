"""`nonneg rank FILE`: estimate the number of components."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

from nonneg.cli import arguments, tables, terminal

OPTIONS = f"""
file FILE: .npy .npz .csv .tsv (.gz) .mtx .mat .parquet .h5ad .h5, or a 10x folder
-o/--output DIR: output folder (default: name of FILE + -rank)

[search]
--method NAME+: singular-value-ratio or cross-validation; may be repeated (default: both)
--k-min K: smallest candidate (default: 2)
--k-max K: largest candidate (default: half of the smaller side, at most 64)
--candidates K,K,...: candidates: a list, or a range such as 2:20
--normalize l1|l2: scale samples to norm one first
--scale max|std|sum: divide every column by its maximum, standard deviation or sum first
--n-folds N: folds of the cross-validation (default: 5)
--max-samples N: maximum number of samples to fit (default: 1000)
--missing
--seed
--n-jobs
--checkpoint

[data]
{tables.READING}
{tables.LABEL}
{tables.MEMORY}

[output]
--quiet
"""
"""The options, as the help shows them."""
KINDS: dict[str, Any] = {"candidates": arguments.candidates}


def run(options: argparse.Namespace) -> int:
    """Read, estimate, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg import compare_ranks
    from nonneg.cli import files
    from nonneg.report import fits, ranks

    folder = arguments.output_folder(options, options.file, "rank")
    table = tables.read_input(options)
    if options.scale is not None:
        table = replace(table, X=fits.scaled(table.X, options.scale))
    inner = arguments.chosen(options, "n_folds")
    parameters = arguments.chosen(
        options, "k_min", "k_max", "candidates", "normalize", "max_samples", "missing", "n_jobs",
        "checkpoint", methods="method", rng="seed",
    )  # fmt: skip
    if inner:
        parameters["method_params"] = inner
    with terminal.warnings_as_notes():
        started = time.perf_counter()
        comparison = compare_ranks(table.X, **parameters, verbose=0 if options.quiet else 1)
        seconds = time.perf_counter() - started
    shown = {name: value for name, value in parameters.items() if name not in ("checkpoint", "method_params")}
    title = f"Number of components of {tables.table_name(table)}"
    parameters = shown | inner | arguments.chosen(options, "scale")
    record = ranks.describe(comparison, table, seconds, title=title, parameters=parameters)
    if dominance := fits.dominant(table.X, "frobenius", table.column_names):
        record.hints = [fits.outweighed(dominance)]
    for name, why in comparison.left_out.items():
        terminal.note(f"note: {name} was left out. {why}")
    reason = comparison.reason[:1].upper() + comparison.reason[1:]
    candidates = record.result["table"]
    heading = candidates[0] if candidates else ["k"]
    record.files["rank.csv"] = files.table_file(heading, [row.values() for row in candidates])
    terminal.finish(folder, record, reason)
    return 0
