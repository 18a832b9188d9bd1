"""`nonneg consensus FILE`: programs on which many restarts agree, for several numbers of programs."""

from __future__ import annotations

import argparse
from typing import Any

from nonneg.cli import arguments, tables, terminal

RESTARTS = """
--restarts N [100]: restarts for each number (default: 100)
--max-iter
--tol
--seed
--device
--n-jobs N: number of restarts to run at once (default: one per core)
--checkpoint DIR: folder for finished restarts; running the same command again resumes a killed run
""".strip()
"""What `consensus` and `signatures` share."""
OPTIONS = f"""
file FILE: .h5ad, 10x .h5 or folder, .npy .npz .csv .tsv (.gz) .mtx .mat .parquet; counts

[restarts]
-k/--ranks K [5:15]: a number, a range such as 5:15 (default), or a list such as 5,7,9
{RESTARTS}

[consensus]
--loss NAME [frobenius]: frobenius (default) or kullback-leibler
--genes N [2000]: factorize this many variable features (default: 2000; all, if there are fewer)
--density-threshold P [0.5]: leave out programs farther than this from their neighbors (default: 0.5; 2 keeps
    all)
--group-by COLUMN: show the usage per group: a column of a .csv or .tsv file, or of the cells of an .h5ad file

[data]
{tables.READING}

[output]
{tables.H5AD}
"""


def restart_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the estimator that both commands share."""
    return arguments.parameters(options, "max_iter", "tol", "device", "checkpoint", n_init="restarts")


def run(options: argparse.Namespace) -> None:
    """Read, factorize, write."""
    import numpy as np

    from nonneg import ConsensusNMF
    from nonneg._arrays import to_float64
    from nonneg.cli import files
    from nonneg.consensus.genes import variable_genes
    from nonneg.io.hdf5 import read_cell_column
    from nonneg.report import consensus, elements

    folder = arguments.output_folder(options, options.file, "consensus")
    tables.check_h5ad(options)
    text = options.file.suffix != ".h5ad"
    options.label_column = options.group_by if text else None
    table = tables.read_input(options)
    labels = table.labels
    if not text and options.group_by is not None:
        labels = read_cell_column(options.file, options.group_by)
    counts = table.X
    genes = counted = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel() > 0)
    if len(counted) < counts.shape[1]:
        empty = elements.counted(counts.shape[1] - len(counted), "feature")
        terminal.note(f"note: {empty} without counts left out")
    if options.genes < len(counted):
        genes = np.sort(variable_genes(counts, options.genes))
        terminal.note(f"factorizing the {len(genes)} most variable of {len(counted)} features")
    names = table.column_names or [str(at) for at in range(counts.shape[1])]
    samples = table.row_names or [str(at) for at in range(counts.shape[0])]
    known, factorized = ([names[int(at)] for at in some] for some in (counted, genes))
    said = arguments.chosen(options, "density_threshold", n_components="ranks", beta_loss="loss")
    model = ConsensusNMF(**said, **restart_parameters(options))
    W, seconds = terminal.timed(model.fit_transform, counts[:, genes])
    W = to_float64(W)
    if table.column_names is not None:
        # By which `nonneg transform` finds the genes in other data.
        model.feature_names_in_ = np.array(factorized, dtype=object)
    scores = model.gene_spectra(counts[:, counted], W)
    tpm = model.gene_spectra(counts[:, counted], W, units="tpm")
    programs = consensus.scored_programs(model, scores, known)
    groups = consensus.usage_by_group(W, labels, options.group_by or "")
    numbers = [f"program_{at}" for at in range(model.n_components_)]
    top = zip(*([name for name, _ in each["top"]] for each in programs), strict=True)
    spectra = to_float64(model.components_).T
    written = {
        "top_genes.tsv": (
            "the genes with the largest scores of each program",
            files.tsv_rows(("rank", *numbers), [[at + 1, *row] for at, row in enumerate(top)]),
        ),
        "gene_scores.tsv": (
            "scores of all genes: coefficients of z-scored TPM on the usages",
            files.tsv(("gene", *numbers), known, scores.T),
        ),
        "gene_tpm.tsv": (
            "what a program adds to each gene, in TPM",
            files.tsv(("gene", *numbers), known, tpm.T),
        ),
        "spectra.tsv": (
            "consensus spectra of the factorized features, in the unit of the data",
            files.tsv(("gene", *numbers), factorized, spectra),
        ),
        "usages.tsv": (
            "usage of each program in each sample",
            files.tsv(("sample", *numbers), samples, W),
        ),
    }
    if groups:
        rows = [[each["name"], each["n"], *each["usage"].tolist()] for each in groups["entries"]]
        heading = (options.group_by, "samples", *numbers)
        written["usage_by_group.tsv"] = (
            f"mean usage by {options.group_by}", files.tsv_rows(heading, rows)
        )  # fmt: skip
    record = consensus.describe(
        model,
        table,
        seconds,
        title=f"Consensus programs of {tables.table_name(table)}",
        programs=programs,
        groups=groups,
        n_genes=len(genes),
    )
    add_tables(record, model, written, "programs")
    copies = tables.write_h5ad(options, model, W, factorized)
    terminal.finish(folder, record, model.rank_reason_, others=copies)


def add_tables(record: Any, model: Any, written: dict[str, tuple[str, Any]], many: str) -> None:
    """Add tables to the files of a record, each a sentence and a writer, with ranks and restarts."""
    from nonneg.cli.files import tsv_rows

    ranks, restarts = [each.row() for each in model.ranks_], model.restarts_
    names = ("n_components", "number", "seed", "loss", "n_iter", "converged")
    columns = zip(*(getattr(restarts, name).tolist() for name in names), strict=True)
    heading = ["restart" if name == "number" else name for name in names]
    written = written | {
        "ranks.tsv": (
            f"stability and error of every number of {many}",
            tsv_rows(ranks[0], [row.values() for row in ranks]),
        ),
        "restarts.tsv": (
            "seed, loss and number of iterations of every restart",
            tsv_rows(heading, list(columns)),
        ),
    }
    record.details["tables"] = {name: sentence for name, (sentence, _) in written.items()}
    record.files = {name: write for name, (_, write) in written.items()}
