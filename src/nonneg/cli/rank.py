"""`nonneg rank FILE`: estimate the number of components."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.cli.table_inputs import add_data_arguments, add_memory_argument, read_input, table_name

RANKS, FIGURE = "rank.csv", "rank.svg"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "file", type=Path, help=".npy .npz .csv .tsv (.gz) .mtx .mat .parquet .h5ad .h5, or a 10x folder"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder (default: name of FILE + -rank)",
    )
    _add_search_arguments(parser.add_argument_group("search"))
    data = parser.add_argument_group("data")
    add_data_arguments(data)
    add_memory_argument(data)
    parser.add_argument_group("output").add_argument(
        "-q", "--quiet", action="store_true", help="do not show progress"
    )


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--method",
        action="append",
        metavar="NAME",
        help="singular-value-ratio, cross-validation or stability; may be repeated (default: all)",
    )
    group.add_argument("--k-min", type=arguments.count, metavar="K", help="smallest candidate (default: 2)")
    group.add_argument(
        "--k-max",
        type=arguments.count,
        metavar="K",
        help="largest candidate (default: half of the smaller side, at most 64)",
    )
    group.add_argument("--candidates", type=arguments.counts, metavar="K,K,...", help="list of candidates")
    group.add_argument("--normalize", choices=["l1", "l2"], help="scale samples to norm one first")
    group.add_argument(
        "--n-folds", type=arguments.count, metavar="N", help="folds of the cross-validation (default: 5)"
    )
    group.add_argument(
        "--n-init", type=arguments.count, metavar="N", help="restarts of the stability method (default: 10)"
    )
    group.add_argument(
        "--max-samples",
        type=arguments.count,
        metavar="N",
        help="maximum number of samples to fit (default: 1000)",
    )
    group.add_argument("--missing", choices=["error", "mask"], help="mask: ignore NaN and empty cells")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")
    group.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save progress there, and resume an interrupted run"
    )


def run(options: argparse.Namespace) -> int:
    """Read, estimate, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg import compare_ranks
    from nonneg.cli.results import say_results, write_csv, write_results
    from nonneg.exceptions import MissingDependencyError
    from nonneg.report.folder import check_output_folder
    from nonneg.report.rank_page import build_rank_page, rank_figure, rank_sentence
    from nonneg.report.records import run_record, table_facts

    folder = options.output or Path(f"{options.file.name.split('.')[0]}-rank")
    check_output_folder(folder)
    table = read_input(options)
    parameters = _parameters(options)
    with terminal.warnings_as_notes():
        started = time.perf_counter()
        found = compare_ranks(table.X, **parameters)
        seconds = time.perf_counter() - started
    shown = parameters | parameters.pop("method_params", {})
    shown = {name: value for name, value in shown.items() if name not in ("verbose", "checkpoint")}
    record = run_record(
        "rank",
        f"Number of components of {table_name(table)}",
        data=table_facts(table),
        parameters=shown,
        result={**found.as_dict(), "seconds": seconds},
    )

    def write_files(fresh: Path) -> None:
        rows = record["result"]["table"]
        write_csv(fresh / RANKS, rows[0] if rows else ["k"], (row.values() for row in rows))
        with contextlib.suppress(MissingDependencyError):
            if drawing := rank_figure(record):
                (fresh / FIGURE).write_text(drawing, encoding="utf-8")

    written = write_results(
        folder, record, write_files, lambda: build_rank_page(record), known=(RANKS, FIGURE)
    )
    for name, why in found.left_out.items():
        terminal.note(f"note: {name} was left out. {why}")
    table_text = _table(record) if record["result"]["table"] else ""
    say_results(f"{rank_sentence(record)} {_capital(found.reason)}", table_text, written)
    return 0


def _table(record: dict[str, Any]) -> str:
    from nonneg.report.rank_page import HEADINGS, rank_rows
    from nonneg.report.tables import markdown_table

    rows = rank_rows(record)
    columns = {"k": "k"}
    columns |= {name: text for name, text in HEADINGS.items() if any(name in row for row in rows)}
    columns["chosen"] = "chosen by"
    return markdown_table(rows, columns).rstrip("\n")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `compare_ranks`."""
    said = {
        "methods": options.method,
        "k_min": options.k_min,
        "k_max": options.k_max,
        "candidates": options.candidates,
        "normalize": options.normalize,
        "max_samples": options.max_samples,
        "missing": options.missing,
        "rng": options.seed,
        "n_jobs": options.n_jobs,
        "checkpoint": options.checkpoint,
        "verbose": 0 if options.quiet else 1,
        "method_params": _given(options, "n_folds", "n_init") or None,
    }
    return {name: value for name, value in said.items() if value is not None}
