"""`nonneg consensus FILE`: programs on which many restarts agree, for several numbers of programs."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.cli.table_inputs import (
    add_data_arguments,
    add_h5ad_argument,
    check_h5ad,
    read_input,
    table_name,
    write_h5ad,
)

RANKS, RESTARTS, SPECTRA, USAGES = "ranks.tsv", "restarts.tsv", "spectra.tsv", "usages.tsv"
SCORES, TPM, TOP, GROUPS = "gene_scores.tsv", "gene_tpm.tsv", "top_genes.tsv", "usage_by_group.tsv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "file",
        type=Path,
        help=".h5ad, 10x .h5 or folder, .npy .npz .csv .tsv (.gz) .mtx .mat .parquet; counts",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder (default: name of FILE + -consensus)",
    )
    add_restart_arguments(parser.add_argument_group("restarts"), default=arguments.candidates("5:15"))
    group = parser.add_argument_group("consensus")
    group.add_argument(
        "--loss", default="frobenius", metavar="NAME", help="frobenius (default) or kullback-leibler"
    )
    group.add_argument(
        "--genes", type=arguments.count, default=2000, metavar="N",
        help="factorize this many variable features (default: 2000; all, if there are fewer)",
    )  # fmt: skip
    group.add_argument(
        "--resample", choices=["bootstrap", "poisson"], help="give every restart resampled data (default: no)"
    )
    group.add_argument(
        "--clustering", choices=["kmeans", "matched"], default="kmeans",
        help="matched: at most one program of a restart in a cluster (default: kmeans)",
    )  # fmt: skip
    group.add_argument(
        "--density-threshold", type=arguments.positive_number, default=0.5, metavar="D",
        help="leave out programs farther than this from their neighbors (default: 0.5; 2 keeps all)",
    )  # fmt: skip
    group.add_argument(
        "--group-by", metavar="COLUMN",
        help="show the usage per group: a column of a .csv or .tsv file, or of the cells of an .h5ad file",
    )  # fmt: skip
    add_data_arguments(parser.add_argument_group("data"))
    output = parser.add_argument_group("output")
    add_h5ad_argument(output)
    output.add_argument("-q", "--quiet", action="store_true", help="do not show progress")


def add_restart_arguments(group: Any, default: Any) -> None:
    """Declare what `consensus` and `signatures` share."""
    first, last = default[0], default[-1]
    group.add_argument(
        "-k", dest="ranks", type=arguments.candidates, default=default, metavar="K",
        help=f"a number, a range such as 5:15, or a list such as 5,7,9 (default: {first}:{last})",
    )  # fmt: skip
    group.add_argument(
        "--restarts",
        type=arguments.count,
        default=100,
        metavar="N",
        help="restarts for each number (default: 100)",
    )
    group.add_argument("--max-iter", type=arguments.count, default=1000, metavar="N", help="default: 1000")
    group.add_argument(
        "--tol", type=arguments.positive_number, default=1e-4, metavar="T", help="default: 1e-4"
    )
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    arguments.add_device(group)
    group.add_argument(
        "--n-jobs", type=int, metavar="N", help="number of restarts to run at once (default: one per core)"
    )
    group.add_argument(
        "--checkpoint", type=Path, metavar="DIR",
        help="folder for finished restarts; running the same command again resumes a killed run",
    )  # fmt: skip


def restart_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the estimator that both commands share."""
    return {
        "n_init": options.restarts,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "random_state": options.seed,
        "device": options.device,
        "n_jobs": options.n_jobs,
        "verbose": 0 if options.quiet else 1,
        "checkpoint": options.checkpoint,
    }


def run(options: argparse.Namespace) -> int:
    """Read, factorize, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    import numpy as np

    from nonneg import ConsensusNMF
    from nonneg._arrays import to_float64
    from nonneg.cli.consensus_results import consensus_record, scored_programs, usage_by_group
    from nonneg.cli.results import say_results, write_results
    from nonneg.consensus.genes import variable_genes
    from nonneg.report.consensus_page import build_consensus_page, consensus_sentence
    from nonneg.report.folder import check_output_folder

    folder = options.output or Path(f"{options.file.name.split('.')[0]}-consensus")
    check_output_folder(folder)
    check_h5ad(options)
    text = options.file.suffix != ".h5ad"
    options.label_column = options.group_by if text else None
    table = read_input(options)
    labels = table.labels if text or options.group_by is None else _cell_labels(options)
    counts = table.X
    found = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel() > 0)
    if len(found) < counts.shape[1]:
        terminal.note(f"note: {counts.shape[1] - len(found)} features without counts were left out")
    genes = found
    if options.genes < len(found):
        genes = np.sort(variable_genes(counts, options.genes))
        terminal.note(f"factorizing the {len(genes)} most variable of {len(found)} features")
    names = [str(at) for at in range(counts.shape[1])] if table.column_names is None else table.column_names
    samples = [str(at) for at in range(counts.shape[0])] if table.row_names is None else table.row_names
    parameters = {
        "n_components": list(options.ranks), "beta_loss": options.loss, "resample": options.resample,
        "clustering": options.clustering, "density_threshold": options.density_threshold,
    }  # fmt: skip
    model = ConsensusNMF(**parameters, **restart_parameters(options))
    with terminal.warnings_as_notes():
        started = time.perf_counter()
        W = to_float64(model.fit_transform(counts[:, genes]))
        seconds = time.perf_counter() - started
        if table.column_names is not None:
            # By which `nonneg transform` finds the genes in other data.
            model.feature_names_in_ = np.array([names[at] for at in genes], dtype=object)
        scores = model.gene_spectra(counts[:, found], W)
        tpm = model.gene_spectra(counts[:, found], W, units="tpm")
    known = [names[at] for at in found]
    programs = scored_programs(model, scores, known)
    groups = usage_by_group(W, labels, options.group_by or "")
    tables = {
        TOP: "the genes with the largest scores of each program",
        SCORES: "scores of all genes: coefficients of z-scored TPM on the usages",
        TPM: "what a program adds to each gene, in TPM",
        SPECTRA: "consensus spectra of the factorized features, in the unit of the data",
        USAGES: "usage of each program in each sample",
        RANKS: "stability and error of every number of programs",
        RESTARTS: "seed, loss and number of iterations of every restart",
    } | ({GROUPS: f"mean usage by {options.group_by}"} if groups else {})
    shown = parameters | {"n_init": options.restarts, "seed": options.seed, "tol": options.tol}
    record = consensus_record(
        "consensus", f"Consensus programs of {table_name(table)}", table, model, seconds=seconds,
        programs=programs, groups=groups, tables=tables, parameters=shown, result={"n_genes": len(genes)},
    )  # fmt: skip

    def write_files(fresh: Path) -> None:
        from nonneg.cli.consensus_results import named_rows, write_ranks, write_tsv

        numbers = [f"program_{at}" for at in range(model.n_components_)]
        write_tsv(
            fresh / TOP,
            ("rank", *numbers),
            _columns([[name for name, _ in each["top"]] for each in programs]),
        )
        for name, spectra, features in (
            (SCORES, scores, known),
            (TPM, tpm, known),
            (SPECTRA, to_float64(model.components_), [names[at] for at in genes]),
        ):
            write_tsv(fresh / name, ("gene", *numbers), named_rows(features, spectra.T))
        write_tsv(fresh / USAGES, ("sample", *numbers), named_rows(samples, W))
        write_ranks(fresh, model)
        if groups:
            rows = ([each["name"], each["n"], *each["usage"].tolist()] for each in groups["entries"])
            write_tsv(fresh / GROUPS, (options.group_by, "samples", *numbers), rows)

    written = write_results(
        folder,
        record,
        write_files,
        lambda: build_consensus_page(record),
        known=(*tables, GROUPS),
        model=model,
    )
    written += write_h5ad(options, model, W, [names[at] for at in genes])
    say_results(f"{consensus_sentence(record)} {model.rank_reason_}", _top_table(programs), written)
    return 0


def _columns(lists: list[list[str]]) -> list[list[Any]]:
    return [[at + 1, *row] for at, row in enumerate(zip(*lists, strict=True))]


def _top_table(programs: list[dict[str, Any]]) -> str:
    from nonneg.report.tables import markdown_table

    rows = [
        {
            "program": each["number"],
            "stability": f"{each['stability']:.2f}",
            "usage": f"{100 * each['usage']:.1f}%",
            "top": ", ".join(name for name, _ in each["top"][:8]),
        }
        for each in programs
    ]
    heading = {"program": "program", "stability": "stability", "usage": "usage", "top": "top genes"}
    return markdown_table(rows, heading).rstrip("\n")


def _cell_labels(options: argparse.Namespace) -> tuple[str, ...]:
    from nonneg.io.h5ad import read_cell_column

    return read_cell_column(options.file, options.group_by)
