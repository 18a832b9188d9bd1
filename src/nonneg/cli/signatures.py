"""`nonneg signatures FILE`: mutational signatures of a catalog of mutations."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, consensus, terminal
from nonneg.cli.consensus import RESTARTS, add_tables, restart_parameters
from nonneg.exceptions import FileFormatError, InvalidParameterError

OPTIONS = f"""
file FILE: .csv or .tsv (.gz): 96 mutation types (named as A[C>A]A) x tumors, or transposed

[restarts]
-k/--ranks RANGE: a number, a range such as 2:15, or a list such as 5,7,9 (default: 1:25, or to the number of
    tumors)
{RESTARTS}

[signatures]
--reference FILE: table of known signatures to compare with, such as COSMIC's, which nonneg does not contain
--assign: extract no signatures, but find those of --reference that are active in each tumor
--n-bootstrap N [100]: draws for the intervals of the exposures (default: 100)
"""
KINDS = consensus.KINDS


def run(options: argparse.Namespace) -> None:
    """Read, extract, write."""
    from dataclasses import asdict

    from nonneg.applications.signatures import CHANNELS, MutationalSignatures
    from nonneg.cli import files
    from nonneg.report.tables import describe_consensus

    folder = arguments.output_folder(options, options.file, "signatures")
    table, frame = _read(options.file)
    reference = None if options.reference is None else _read(options.reference)[1]
    if options.assign:
        _assign(options, folder, table, frame, reference)
        return
    model = MutationalSignatures(options.ranks, **restart_parameters(options))
    _, seconds = terminal.timed(model.fit, frame)
    low, high = model.exposure_intervals(frame, n_bootstrap=options.n_bootstrap)
    matches = None if reference is None else model.match(reference)
    samples = model.sample_names_
    numbers = [f"signature_{at}" for at in range(model.n_signatures_)]
    intervals = [
        [name, at, *(float(side[i, at]) for side in (model.exposures_, low, high))]
        for i, name in enumerate(samples)
        for at in range(model.n_signatures_)
    ]
    heading = ("sample", "signature", "exposure", "low", "high")
    written: dict[str, Any] = {
        "signatures.tsv": (("type", *numbers), files.named_rows(CHANNELS, model.signatures_.T)),
        "exposures.tsv": (("sample", *numbers), files.named_rows(samples, model.exposures_)),
        "exposure_intervals.tsv": (heading, intervals),
    }
    if matches is not None:
        rows = [asdict(match) for match in matches]
        written["matches.tsv"] = rows[0], [row.values() for row in rows]
    record = describe_consensus(model, table, seconds, matches=matches)
    add_tables(record, model.consensus_, written)
    terminal.finish(folder, record)


def _assign(options: argparse.Namespace, folder: Path, table: Any, frame: Any, reference: Any) -> None:
    """Assign known signatures, and write the exposures."""
    from nonneg.applications.signatures import assign_signatures
    from nonneg.cli import files
    from nonneg.report.record import Record, table_facts
    from nonneg.report.words import counted

    if reference is None:
        raise InvalidParameterError("--assign needs --reference FILE, a table of known signatures.")
    if options.ranks is not None:
        raise InvalidParameterError("--assign takes the signatures of --reference. Leave out -k.")
    result, seconds = terminal.timed(
        assign_signatures, frame, reference, n_bootstrap=options.n_bootstrap, rng=options.seed
    )
    used = [at for at, share in enumerate(result.prevalence) if share > 0]
    sides = (result.exposures, result.low, result.high, result.evidence)
    intervals = [
        [tumor, result.names[at], *(float(side[i, at]) for side in sides)]
        for i, tumor in enumerate(result.sample_names)
        for at in used
        if result.exposures[i, at] > 0
    ]
    n_tumors = len(result.sample_names)
    record = Record(
        "assign",
        f"Known signatures of {options.file.name}",
        f"{len(used)} of {len(result.names)} known signatures are active in {counted(n_tumors, 'tumor')}.",
        (),
        table_facts(table),
        {"prevalence": {result.names[at]: float(result.prevalence[at]) for at in used}, "seconds": seconds},
        {"reference": options.reference.name, "n_bootstrap": options.n_bootstrap, "seed": options.seed},
    )
    names = ("sample", *(result.names[at] for at in used))
    heading = ("sample", "signature", "exposure", "low", "high", "evidence")
    record.files = {
        "exposures.tsv": files.tsv(names, files.named_rows(result.sample_names, result.exposures[:, used])),
        "exposure_intervals.tsv": files.tsv(heading, intervals),
    }
    record.table = [
        {
            "signature": result.names[at],
            "tumors": f"{100 * result.prevalence[at]:.0f}%",
            "mutations": f"{result.exposures[:, at].sum():,.0f}",
        }
        for at in sorted(used, key=lambda at: -result.prevalence[at])
    ]
    terminal.finish(folder, record, page=False)


def _read(path: Path) -> tuple[Any, Any]:
    """Read a table as a data frame, whose names are checked where it is used."""
    from nonneg._optional import import_optional
    from nonneg.io import text
    from nonneg.io.table import ReadOptions

    pandas = import_optional("pandas", extra="formats", purpose="Reading a catalog of mutations")
    try:
        # COSMIC and SigProfiler write tables that are separated by tabs, also as .txt and .all.
        table = replace(text.read(path, ReadOptions(header=True, index=True)), source=str(path), kind="tsv")
    except (OSError, FileFormatError) as error:
        problem = f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error).partition(". ")[0]
        raise FileFormatError(f"{problem}. Expected a table of mutation types and tumors.") from error
    return table, pandas.DataFrame(table.X, table.row_names, table.column_names)
