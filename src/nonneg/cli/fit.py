"""`nonneg fit FILE`: factorize a file."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nonneg.cli import arguments, tables, terminal
from nonneg.exceptions import ShapeError

if TYPE_CHECKING:
    from nonneg.io import Table

OPTIONS = f"""
file FILE: .npy .npz .csv .tsv .txt (.gz) .mtx .mat .parquet .h5ad .h5 .zarr, or a 10x folder
-k/--components K [auto]: number of components, or 'auto' (default) to estimate it

[model]
--loss NAME: frobenius (default), kullback-leibler, itakura-saito, or a number: beta of a beta divergence
--scale max|std|sum: divide every column by its maximum, standard deviation or sum (default: leave the
    units); components are written in the units of the file
--missing
--uncertainty
--negative error|keep: keep: fit noise below zero as it is (default: error)
--robust: count entries beyond 4 uncertainties by their distance instead of its square (Huber)

[search]
--max-iter
--tol
--seed
--device
--n-jobs
--checkpoint
--scheduler ADDRESS: use the Dask cluster with this scheduler, such as tcp://host:8786

[data]
{tables.READING}
{tables.LABEL}
{tables.MEMORY}

[output]
--image-shape RxC: show components as images
{tables.H5AD}
"""
KINDS: dict[str, Any] = {"loss": arguments.number_or_name, "image_shape": arguments.image_shape}


def run(options: argparse.Namespace) -> None:
    """Read, factorize, write."""
    import numpy as np

    from nonneg import NMF
    from nonneg.cli import files
    from nonneg.report.tables import describe_fit

    folder = arguments.output_folder(options, options.file, "nmf")
    tables.check_h5ad(options)
    with _cluster_of(options) as client:  # before a file is read for minutes
        table = tables.read_input(options, signed=options.negative == "keep")
        uncertainty = tables.read_uncertainty(options, table)
        shape = options.image_shape
        if shape is not None and shape[0] * shape[1] != table.X.shape[1]:
            raise ShapeError(
                f"--image-shape {shape[0]}x{shape[1]} needs {shape[0] * shape[1]} features, but the data "
                f"have {table.X.shape[1]}. Give rows and columns whose product is {table.X.shape[1]}."
            )
        model = NMF(
            robust="huber" if options.robust else None,
            **arguments.parameters(
                options, "max_iter", "tol", "scale", "missing", "negative", "device", "checkpoint",
                n_components="components", beta_loss="loss",
            ),
        )  # fmt: skip
        X = table.X if client is None else _chunks(table, client, options)
        W, seconds = terminal.timed(_fit_transform, model, X, uncertainty)
    residuals = None
    if uncertainty is not None:
        residuals = np.where(
            np.isfinite(uncertainty), (table.X - W @ model.components_) / uncertainty, np.nan
        )
    record = describe_fit(model, table, seconds, W, image_shape=options.image_shape, residuals=residuals)
    files.add_factors(record, table, W)
    tables.name_features(model, table.column_names)
    if residuals is not None:
        rows, columns = table.row_names, table.column_names
        record.files["scaled_residuals.csv"] = files.factor_file(residuals, "sample", rows, columns)
    copies = tables.write_h5ad(options, model, W, table.column_names)
    terminal.finish(folder, record, others=copies)


def _cluster_of(options: argparse.Namespace) -> AbstractContextManager[Any]:
    """Return the context of a client of the Dask cluster that --scheduler names; of None without it."""
    if options.scheduler is None:
        return nullcontext()
    from nonneg._optional import import_optional

    for name in ("dask.array", "distributed"):
        import_optional(name, extra="dask", purpose="--scheduler")
    from nonneg.data.cluster import connected

    return connected(options.scheduler)


def _chunks(table: Table, client: Any, options: argparse.Namespace) -> Any:
    """Return the entries as a Dask array for the workers."""
    from nonneg.data.chunked import chunked_rows

    threads = sum(client.nthreads().values())
    reader = tables.stored_reader(options) if hasattr(table.X, "stored") else None
    X = chunked_rows(table.X, threads, reader)
    terminal.progress(f"{X.numblocks[0]} chunks on {len(client.nthreads())} workers, {threads} threads")
    return X


def _fit_transform(model: Any, X: Any, uncertainty: Any) -> Any:
    W = model.fit_transform(X, uncertainty=uncertainty)
    if hasattr(W, "compute"):
        W = W.compute()
        model.result_ = replace(model.result_, W=W)
    return W
