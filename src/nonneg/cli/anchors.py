"""`nonneg anchors FILE`: find the samples of which all others are mixtures."""

from __future__ import annotations

import argparse

from nonneg.cli import arguments, tables, terminal

OPTIONS = f"""
file FILE: .npy .npz .csv .tsv .txt (.gz) .mtx .mat .parquet .h5ad .h5, or a 10x folder
-k/--anchors K [auto]: number of anchors, or 'auto' (default): where the curve of the residual bends most

[search]
--method NAME: auto (default), merit, merit-exact, fast-gradient, spa, snpa, xray, fast-anchor,
    smoothed-spa or vca
--max-iter
--tol
--seed
--n-jobs
--checkpoint

[preprocessing]
--energy X: keep the samples with the largest norms that account for this fraction of the squared norm
--normalize l1|l2: divide every sample by this norm first
--reduce N: project onto this number of leading directions
--merge X: merge samples whose distance is below X times the largest norm

[data]
{tables.READING}
{tables.LABEL}
"""


def run(options: argparse.Namespace) -> None:
    """Read, search, write."""
    from nonneg import SeparableNMF
    from nonneg.cli import files
    from nonneg.report.tables import describe_anchors

    folder = arguments.output_folder(options, options.file, "anchors")
    table = tables.read_input(options, signed=True)
    names = ("method", "max_iter", "tol", "energy", "normalize", "reduce", "merge", "checkpoint")
    params = arguments.parameters(options, *names)
    if options.method not in (None, "auto", "merit", "merit-exact", "fast-gradient"):
        params["verbose"] = 0  # greedy methods have no iterations to show
    model = SeparableNMF(None if options.anchors == "auto" else options.anchors, **params)
    W, seconds = terminal.timed(model.fit_transform, table.X)
    record = describe_anchors(model, table, seconds, W)
    record.files = {
        "W.npy": files.array_file(W),
        "H.npy": files.array_file(model.components_),
        "anchors.csv": files.entries_file(record.details["anchors"]),
    }
    tables.name_features(model, table.column_names)
    terminal.finish(folder, record)
