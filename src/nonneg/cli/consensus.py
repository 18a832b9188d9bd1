"""`nonneg consensus FILE`: programs on which many restarts agree, for several numbers of programs."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from nonneg.cli import arguments, tables, terminal
from nonneg.exceptions import InvalidParameterError

RESTARTS = """
--restarts N [100]: restarts for each number (default: 100)
--max-iter
--tol
--seed
--device
--n-jobs N: number of restarts to run at once (default: one per core)
--checkpoint DIR: folder for finished restarts; running the same command again resumes a killed run
""".strip()
"""Options that `consensus` and `signatures` share."""
OPTIONS = f"""
file FILE: .h5ad, 10x .h5 or folder, .npy .npz .csv .tsv .txt (.gz) .mtx .mat .parquet; counts

[restarts]
-k/--ranks RANGE [5:15]: a number, a range such as 5:15 (default), or a list such as 5,7,9
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
KINDS: dict[str, Any] = {name: partial(arguments.count, least=2) for name in ("restarts", "n_bootstrap")}


def restart_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the estimator that both commands share."""
    return arguments.parameters(options, "max_iter", "tol", "device", "checkpoint", n_init="restarts")


def run(options: argparse.Namespace) -> None:
    """Read, factorize, write."""
    import numpy as np
    import scipy.sparse

    from nonneg import ConsensusNMF
    from nonneg._arrays import to_float64
    from nonneg.cli import files
    from nonneg.consensus.genes import variable_genes
    from nonneg.io.hdf5 import open_checked, read_cell_column
    from nonneg.report import words
    from nonneg.report.tables import describe_consensus, group_means

    folder = arguments.output_folder(options, options.file, "consensus")
    tables.check_h5ad(options)
    if options.transpose and options.group_by is not None:
        raise InvalidParameterError("--group-by needs samples in rows. Leave it or --transpose out.")
    text = options.file.suffix != ".h5ad"
    options.label_column = options.group_by if text else None
    table = tables.read_input(options)
    labels = table.labels
    if not text and options.group_by is not None:
        labels = read_cell_column(options.file, options.group_by)
    counts = table.X
    values = counts.data if scipy.sparse.issparse(counts) else counts
    whole = bool(np.all(values == np.rint(values)))
    if not whole:
        place = "the counts"
        if not text and options.layer is None and options.variable is None:
            with open_checked(options.file, "Reading a .h5ad file") as file:
                layers = [f"--layer {name}" for name in file.get("layers", {}) if "count" in name.lower()]
                place = next(iter(layers), "--variable raw/X" if "raw" in file else place)
        terminal.note(
            "note: the data have entries that are not whole numbers, as after log-normalization. Programs "
            f"add up in counts, not in logarithms: pass {place}. No table of transcripts per million is "
            "written."
        )
    genes = counted = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel() > 0)
    if len(counted) < counts.shape[1]:
        empty = words.counted(counts.shape[1] - len(counted), "gene")
        terminal.note(f"note: {empty} without counts left out")
    if options.genes < len(counted):
        genes = np.sort(variable_genes(counts, options.genes))
        terminal.note(f"factorizing the {len(genes):,} most variable of {len(counted):,} genes")
    names = table.column_names or [str(at) for at in range(counts.shape[1])]
    samples = table.row_names or [str(at) for at in range(counts.shape[0])]
    known, factorized = ([names[int(at)] for at in columns] for columns in (counted, genes))
    params = arguments.chosen(options, "density_threshold", n_components="ranks", beta_loss="loss")
    model = ConsensusNMF(**params, **restart_parameters(options))
    W, seconds = terminal.timed(model.fit_transform, counts[:, genes])
    W = to_float64(W)
    tables.name_features(model, None if table.column_names is None else factorized)
    counts = counts[:, counted]
    scores = model.gene_spectra(counts, W, units="z-score")
    groups = () if labels is None else group_means(W, labels)
    numbers = [f"program_{at}" for at in range(model.n_components_)]
    gene = ("gene", *numbers)
    written: dict[str, Any] = {
        "gene_scores.tsv": (gene, files.named_rows(known, scores.T)),
        "spectra.tsv": (gene, files.named_rows(factorized, to_float64(model.components_).T)),
        "usages.tsv": (("sample", *numbers), files.named_rows(samples, W)),
    }
    if whole:
        tpm = model.gene_spectra(counts, W, units="tpm")
        written["gene_tpm.tsv"] = (gene, files.named_rows(known, tpm.T))
    if groups:
        rows = [[group["group"], group["n_samples"], *group["shares"].tolist()] for group in groups]
        written["usage_by_group.tsv"] = (options.group_by, "samples", *numbers), rows
    record = describe_consensus(
        model, table, seconds, scores=scores, names=known, groups=groups, by=options.group_by
    )
    top = [[known[at] for at in row] for row in np.argsort(-scores, axis=1, kind="stable")[:, :20].T]
    written["top_genes.tsv"] = ("rank", *numbers), [[at + 1, *row] for at, row in enumerate(top)]
    add_tables(record, model, written)
    copies = tables.write_h5ad(options, model, W, factorized)
    terminal.finish(folder, record, others=copies)


def add_tables(record: Any, model: Any, written: dict[str, Any]) -> None:
    """Add tables to the files of a record, each a heading and rows, with those of ranks and restarts."""
    from nonneg.cli.files import tsv

    ranks, restarts = [rank.row() for rank in model.ranks_], model.restarts_
    names = ("n_components", "number", "seed", "loss", "n_iter", "converged")
    columns = zip(*(getattr(restarts, name).tolist() for name in names), strict=True)
    written["ranks.tsv"] = ranks[0], [row.values() for row in ranks]
    written["restarts.tsv"] = ["restart" if name == "number" else name for name in names], list(columns)
    record.files = {name: tsv(*table) for name, table in written.items()}
