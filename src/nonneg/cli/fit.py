"""`nonneg fit FILE`: factorize a file."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nonneg.cli import arguments, tables, terminal

if TYPE_CHECKING:
    from nonneg.io import Table


OPTIONS = f"""
file FILE: .npy .npz .csv .tsv (.gz) .mtx .mat .parquet .h5ad .h5 .zarr, or a 10x folder
-k/--components K [auto]: number of components, or 'auto' (default) to estimate it
-o/--output DIR: output folder (default: name of FILE + -nmf)

[model]
--loss NAME: frobenius (default), kullback-leibler, itakura-saito, or a number: beta of a beta divergence
--solver NAME: solver (default: auto, by the shape of the data)
--init NAME: initialization, such as random or cone
--max-iter
--tol
--alpha-W X: weight of the penalty on W (default: 0)
--alpha-H X: weight of the penalty on H (default: that of --alpha-W)
--l1-ratio X: mix of L1 and L2 in the penalties, from 0 (L2) to 1 (L1)
--scale max|std|sum: divide every column by its maximum, standard deviation or sum (default: leave the
    units); components are written in the units of the file
--certify: also compare the error with the smallest possible at this rank; costs about as much as a fit
--missing
--uncertainty FILE: standard deviation of every entry, a table like the first file
--negative error|keep: keep: fit noise below zero as it is (default: error)
--robust: count entries beyond 4 uncertainties by their distance instead of its square (Huber)
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
--csv: also write the factors as .csv (always done for tables)
{tables.H5AD}
--quiet
"""
"""The options, as the help shows them."""
_MAX_CLASSES = 50  # a column with more different labels is not one of classes
KINDS: dict[str, Any] = {
    "components": arguments.components, "loss": arguments.number_or_name, "alpha_H": arguments.number_or_name,
    "image_shape": arguments.image_shape,
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Read, factorize, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.cli import files
    from nonneg.iteration.progress import phase
    from nonneg.report import fits

    folder = arguments.output_folder(options, options.file, "nmf")
    tables.check_h5ad(options)
    with cluster_of(options) as client:  # before a file is read for minutes
        table = tables.read_input(options, signed=options.negative == "keep")
        uncertainty = _uncertainty(options, table)
        _check_image_shape(options.image_shape, table)
        _check_labels(table.labels, table.label_name)
        if tables.largest_entry(table) == 0:
            terminal.note("note: all entries are zero, so there is nothing to find")
        with terminal.warnings_as_notes():
            X = table.X if client is None else _chunks(table, client, options)
            parameters = arguments.chosen(
                options, "solver", "init", "max_iter", "tol", "alpha_W", "alpha_H", "l1_ratio", "scale",
                "missing", "negative", "device", "n_jobs", "checkpoint", n_components="components",
                beta_loss="loss", random_state="seed",
            )  # fmt: skip
            if options.robust:
                parameters["robust"] = "huber"
            verbose = 0 if options.quiet else 1
            model, W, seconds = fit_model(X, uncertainty=uncertainty, verbose=verbose, **parameters)
            if options.certify:
                with phase("computing the lower bound of the error", verbose):
                    _add_lower_bound(model, X, uncertainty)
    record = fits.describe(
        model,
        W,
        table,
        seconds,
        title=f"Factorization of {tables.table_name(table)}",
        image_shape=options.image_shape,
        uncertainty=uncertainty,
    )
    files.add_factors(record, table, csv=options.csv)
    if uncertainty is not None:
        residuals = (table.X - W @ model.components_) / uncertainty
        rows, columns = table.row_names, table.column_names
        record.files["scaled_residuals.csv"] = files.factor_file(residuals, "sample", rows, columns)
    copies = tables.write_h5ad(options, model, W, table.column_names)
    classes = terminal.table_text(fits.label_rows(record))
    said = fits.label_sentence(record), classes, fits.residual_sentence(record)
    terminal.finish(folder, record, *said, others=copies)
    return 0


@contextmanager
def cluster_of(options: argparse.Namespace) -> Iterator[Any]:
    """Yield a client of the Dask cluster that --scheduler names; None without it."""
    if options.scheduler is None:
        yield None
        return
    from nonneg._optional import import_optional

    for name in ("dask.array", "distributed"):
        import_optional(name, extra="dask", purpose="--scheduler")
    from nonneg.data.cluster import connected

    with connected(options.scheduler) as client:
        yield client


def _chunks(table: Table, client: Any, options: argparse.Namespace) -> Any:
    """Return the entries as a Dask array for the workers."""
    from nonneg.data.chunked import chunked_rows

    threads = sum(client.nthreads().values())
    reader = tables.stored_reader(options) if hasattr(table.X, "stored") else None
    X = chunked_rows(table.X, threads, reader)
    if not options.quiet:
        terminal.note(f"{X.numblocks[0]} chunks on {len(client.nthreads())} workers, {threads} threads")
    return X


def _uncertainty(options: argparse.Namespace, table: Table) -> Any:
    """Read the standard deviations, which must have the names of the data."""
    if options.uncertainty is None:
        return None
    from nonneg.data import DataMatrix
    from nonneg.exceptions import InvalidDataError, UnsupportedInputError

    if isinstance(table.X, DataMatrix) or options.scheduler is not None:
        raise UnsupportedInputError("--uncertainty needs data that fit in memory, on this machine.")
    same = {**vars(options), "file": options.uncertainty}
    found = tables.read_input(argparse.Namespace(**same), signed=True)
    for side, own, other in (
        ("columns", table.column_names, found.column_names), ("rows", table.row_names, found.row_names)
    ):  # fmt: skip
        if own is not None and other is not None and list(own) != list(other):
            pairs = zip(own, other, strict=False)
            at = next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(own), len(other)))
            raise InvalidDataError(
                f"The {side} of --uncertainty are not those of the data: they differ from number {at + 1} "
                "on. Put them in the same order."
            )
    return found.X


def fit_model(X: Any, *, uncertainty: Any = None, **parameters: Any) -> tuple[Any, Any, float]:
    """Fit, and take the time."""
    from nonneg import NMF

    model = NMF(**parameters)
    started = time.perf_counter()
    W = model.fit_transform(X, uncertainty=uncertainty)
    if hasattr(W, "compute"):
        W = W.compute()
        model.result_ = replace(model.result_, W=W)
    return model, W, time.perf_counter() - started


def _add_lower_bound(model: Any, X: Any, uncertainty: Any = None) -> None:
    """Add to the certificate how far the error is from the least possible one, where that is known."""
    if model.result_.loss_name != "frobenius" or model.result_.stop_reason.name == "INTERRUPTED":
        return
    try:
        model.certify(X, uncertainty=uncertainty)
    except KeyboardInterrupt:  # the fit itself is done and shall not be lost
        terminal.note("note: interrupted; the error is not compared with the smallest possible one")


def _check_image_shape(shape: tuple[int, int] | None, table: Table) -> None:
    from nonneg.exceptions import ShapeError

    if shape is not None and shape[0] * shape[1] != table.X.shape[1]:
        raise ShapeError(
            f"--image-shape {shape[0]}x{shape[1]} needs {shape[0] * shape[1]} features, but the data have "
            f"{table.X.shape[1]}. Give rows and columns whose product is {table.X.shape[1]}."
        )


def _check_labels(labels: Sequence[str] | None, name: str | None) -> None:
    """Reject labels that are not class labels."""
    from nonneg.exceptions import InvalidDataError

    n_classes = len(set(labels or ()))
    if n_classes > _MAX_CLASSES:
        raise InvalidDataError(
            f"--label-column {name} has {n_classes} different labels; expected classes, at most "
            f"{_MAX_CLASSES}. Leave the column out with --drop {name}."
        )
