"""`nonneg anchors FILE`: find the samples of which all others are mixtures."""

from __future__ import annotations

import argparse
import time
from typing import Any

from nonneg.cli import arguments, tables, terminal

OPTIONS = f"""
file FILE: .npy .npz .csv .tsv (.gz) .mtx .mat .parquet .h5ad .h5, or a 10x folder
-k/--anchors K [auto]: number of anchors, or 'auto' (default): where the curve of the residual bends most
-o/--output DIR: output folder (default: name of FILE + -anchors)

[search]
--method NAME: auto (default), merit, merit-exact, fast-gradient, spa, snpa, xray, fast-anchor,
    smoothed-spa or vca
--lam L: weight of the row sparsity
--mu X: smoothing of the row sparsity
--max-iter
--tol X: stop at this duality gap (of merit-exact: relative to the objective)
--init NAME: method that finds the initial anchors, such as spa
--[no-]sum-to-one: whether the weights of a sample sum to one (default: if its features do)
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

[output]
--quiet
"""
"""The options, as the help shows them."""
KINDS: dict[str, Any] = {"anchors": arguments.components, "lam": arguments.number_or_name}


def run(options: argparse.Namespace) -> int:
    """Read, search, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg import SeparableNMF
    from nonneg.cli import files
    from nonneg.report import anchors

    folder = arguments.output_folder(options, options.file, "anchors")
    table = tables.read_input(options, signed=True)
    with terminal.warnings_as_notes():
        model = SeparableNMF(**_parameters(options))
        started = time.perf_counter()
        W = model.fit_transform(table.X)
        seconds = time.perf_counter() - started
    record = anchors.describe(model, W, table, seconds, title=f"Anchors of {tables.table_name(table)}")
    entries = record.details["anchors"]
    record.files = {
        "W.npy": files.array_file(W),
        "H.npy": files.array_file(model.components_),
        "anchors.csv": files.table_file(entries[0], [entry.values() for entry in entries]),
    } | files.names_file(table.row_names, table.column_names)
    terminal.finish(folder, record)
    return 0


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    parameters = arguments.chosen(
        options, "method", "max_iter", "tol", "init", "sum_to_one", "energy", "normalize", "reduce", "merge",
        "n_jobs", "checkpoint", random_state="seed",
    )  # fmt: skip
    parameters["n_components"] = None if options.anchors == "auto" else options.anchors
    if inner := arguments.chosen(options, "lam", "mu"):
        parameters["method_params"] = inner
    if (options.method or "auto") in ("auto", "merit", "merit-exact", "fast-gradient") and not options.quiet:
        parameters["verbose"] = 1  # greedy methods have no iterations to show
    return parameters
