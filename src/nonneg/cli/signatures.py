"""`nonneg signatures FILE`: mutational signatures of a catalog of mutations."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.cli.consensus import RANKS, RESTARTS, add_restart_arguments, restart_parameters

SIGNATURES, EXPOSURES, INTERVALS = "signatures.tsv", "exposures.tsv", "exposure_intervals.tsv"
MATCHES = "matches.tsv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "file",
        type=Path,
        help=".csv or .tsv (.gz): 96 mutation types (named as A[C>A]A) x tumors, or transposed",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder (default: name of FILE + -signatures)",
    )
    add_restart_arguments(parser.add_argument_group("restarts"), default=arguments.candidates("2:15"))
    group = parser.add_argument_group("signatures")
    group.add_argument(
        "--reference", type=Path, metavar="FILE",
        help="table of known signatures to compare with, such as COSMIC's, which nonneg does not contain",
    )  # fmt: skip
    group.add_argument(
        "--threshold", type=arguments.positive_number, default=0.85, metavar="C",
        help="smallest cosine of a match (default: 0.85)",
    )  # fmt: skip
    group.add_argument(
        "--no-resample", action="store_true", help="do not resample the counts for every restart"
    )
    group.add_argument(
        "--n-bootstrap", type=arguments.count, default=100, metavar="N",
        help="draws for the intervals of the exposures (default: 100)",
    )  # fmt: skip
    parser.add_argument_group("output").add_argument(
        "-q", "--quiet", action="store_true", help="do not show progress"
    )


def run(options: argparse.Namespace) -> int:
    """Read, extract, write."""
    from dataclasses import asdict

    from nonneg.applications.signatures import CHANNELS, MutationalSignatures
    from nonneg.cli.consensus_results import consensus_record, signature_programs
    from nonneg.cli.results import say_results, write_results
    from nonneg.report.consensus_page import build_consensus_page, consensus_sentence
    from nonneg.report.folder import check_output_folder

    folder = options.output or Path(f"{options.file.name.split('.')[0]}-signatures")
    check_output_folder(folder)
    table, frame = _read(options.file)
    reference = None if options.reference is None else _read(options.reference)[1]
    model = MutationalSignatures(
        list(options.ranks),
        resample=None if options.no_resample else "poisson",
        **restart_parameters(options),
    )
    with terminal.warnings_as_notes():
        started = time.perf_counter()
        model.fit(frame)
        seconds = time.perf_counter() - started
        low, high = model.exposure_intervals(frame, n_bootstrap=max(options.n_bootstrap, 2))
    matches = None if reference is None else model.match(reference, threshold=options.threshold)
    programs = signature_programs(model, matches)
    tables = {
        SIGNATURES: "the signatures: shares of the 96 mutation types",
        EXPOSURES: "number of mutations of each tumor that each signature explains",
        INTERVALS: "95% bootstrap intervals of these numbers, for the uncertainty of "
        + ("the counts alone" if options.no_resample else "counts and signatures"),
        RANKS: "stability and error of every number of signatures",
        RESTARTS: "seed, loss and number of iterations of every restart",
    } | ({MATCHES: "the most similar known signatures"} if matches is not None else {})
    shown = {"n_signatures": list(options.ranks), "n_init": options.restarts, "resample": model.resample,
             "seed": options.seed, "tol": options.tol}  # fmt: skip
    record = consensus_record(
        "signatures", f"Mutational signatures of {options.file.name}", table, model.consensus_,
        seconds=seconds, programs=programs, groups=None, tables=tables, parameters=shown,
        result={"reason": model.rank_reason_},
    )  # fmt: skip

    def write_files(fresh: Path) -> None:
        from nonneg.cli.consensus_results import named_rows, write_ranks, write_tsv

        numbers = [f"signature_{at}" for at in range(model.n_signatures_)]
        write_tsv(fresh / SIGNATURES, ("type", *numbers), named_rows(CHANNELS, model.signatures_.T))
        write_tsv(fresh / EXPOSURES, ("sample", *numbers), named_rows(model.sample_names_, model.exposures_))
        rows = (
            [name, at, *(float(side[i, at]) for side in (model.exposures_, low, high))]
            for i, name in enumerate(model.sample_names_)
            for at in range(model.n_signatures_)
        )
        write_tsv(fresh / INTERVALS, ("sample", "signature", "exposure", "low", "high"), rows)
        write_ranks(fresh, model.consensus_)
        if matches is not None:
            found = [asdict(each) for each in matches]
            write_tsv(fresh / MATCHES, found[0], (each.values() for each in found))

    written = write_results(
        folder, record, write_files, lambda: build_consensus_page(record, CHANNELS), known=(*tables, MATCHES),
        model=model,
    )  # fmt: skip
    say_results(f"{consensus_sentence(record)} {model.rank_reason_}", _table(programs), written)
    return 0


def _read(path: Path) -> tuple[Any, Any]:
    """Read a table, and make a data frame of it, whose names are checked."""
    from nonneg._optional import import_optional
    from nonneg.exceptions import FileFormatError
    from nonneg.io import read_table

    pandas = import_optional("pandas", extra="report", purpose="Reading a catalog of mutations")
    table = read_table(path, header=True, index=True)
    if table.row_names is None or table.column_names is None:
        raise FileFormatError(f"{path}: expected a table with names of mutation types and of tumors.")
    return table, pandas.DataFrame(table.X, index=list(table.row_names), columns=list(table.column_names))


def _table(programs: list[dict[str, Any]]) -> str:
    from nonneg.report.tables import markdown_table

    rows = []
    for each in programs:
        match = each["match"]
        known = (
            "" if match is None else f"{match['name'] or 'none'} ({match['nearest']}: {match['cosine']:.3f})"
        )
        rows.append(
            {
                "signature": each["number"],
                "stability": f"{each['stability']:.2f}",
                "usage": f"{100 * each['usage']:.1f}%",
                "known": known,
            }
        )
    heading = {"signature": "signature", "stability": "stability", "usage": "mean exposure", "known": "match"}
    return markdown_table(rows, heading).rstrip("\n")
