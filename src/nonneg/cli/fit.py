"""`nonneg fit FILE`: factorize a file."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonneg.cli import arguments, terminal
from nonneg.cli.table_inputs import (
    add_data_arguments,
    add_h5ad_argument,
    add_label_argument,
    add_memory_argument,
    check_h5ad,
    largest_entry,
    read_input,
    stored_reader,
    table_name,
    write_h5ad,
)

if TYPE_CHECKING:
    from nonneg.io import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "file",
        type=Path,
        help=".npy .npz .csv .tsv (.gz) .mtx .mat .parquet .h5ad .h5 .zarr, or a 10x folder",
    )
    parser.add_argument(
        "-k",
        "--components",
        type=arguments.components,
        default="auto",
        metavar="K",
        help="number of components, or 'auto' (default) to estimate it",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder (default: name of FILE + -nmf)",
    )
    _add_model_arguments(parser.add_argument_group("model"))
    data = parser.add_argument_group("data")
    add_data_arguments(data)
    add_label_argument(data)
    add_memory_argument(data)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--image-shape", type=arguments.image_shape, metavar="RxC", help="show components as images"
    )
    output.add_argument(
        "--csv", action="store_true", help="also write the factors as .csv (always done for tables)"
    )
    add_h5ad_argument(output)
    output.add_argument("-q", "--quiet", action="store_true", help="do not show progress")


def _add_model_arguments(group: Any) -> None:
    group.add_argument(
        "--loss",
        type=arguments.number_or_name,
        metavar="NAME",
        help="frobenius (default), kullback-leibler, itakura-saito, or a number: beta of a beta divergence",
    )
    group.add_argument("--solver", metavar="NAME", help="solver (default: auto, by the shape of the data)")
    group.add_argument("--init", metavar="NAME", help="initialization, such as random or cone")
    group.add_argument("--max-iter", type=int, metavar="N", help="maximum number of iterations")
    group.add_argument("--tol", type=float, metavar="TOL", help="tolerance of the stopping rule")
    group.add_argument("--alpha-W", type=float, metavar="A", help="weight of the penalty on W (default: 0)")
    group.add_argument(
        "--alpha-H",
        type=arguments.number_or_name,
        metavar="A",
        help="weight of the penalty on H (default: that of --alpha-W)",
    )
    group.add_argument(
        "--l1-ratio", type=float, metavar="R", help="mix of L1 and L2 in the penalties, from 0 (L2) to 1 (L1)"
    )
    group.add_argument(
        "--scale", choices=["max", "std", "sum"],
        help="divide every column by its maximum, standard deviation or sum (default: leave the units); "
        "components are written in the units of the file",
    )  # fmt: skip
    group.add_argument("--seed", type=int, metavar="N", help="random seed (default: 0)", default=0)
    group.add_argument("--missing", choices=["error", "mask"], help="mask: ignore NaN and empty cells")
    group.add_argument(
        "--certify",
        action="store_true",
        help="also compare the error with the smallest possible at this rank; costs about as much as a fit",
    )
    arguments.add_device(group)
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")
    group.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save progress there, and resume an interrupted run"
    )
    group.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="use the Dask cluster with this scheduler, such as tcp://host:8786",
    )


def run(options: argparse.Namespace) -> int:
    """Read, factorize, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.cli.fit_results import FittedModel, write_fit
    from nonneg.cli.results import say_results
    from nonneg.iteration.progress import phase
    from nonneg.report import wording
    from nonneg.report.folder import check_output_folder
    from nonneg.report.quality import check_labels

    folder = options.output or Path(f"{options.file.name.split('.')[0]}-nmf")
    check_output_folder(folder)
    check_h5ad(options)
    with cluster_of(options) as client:  # before a file is read for minutes
        table = read_input(options)
        _check_image_shape(options.image_shape, table)
        check_labels(table.labels, table.label_name)
        if largest_entry(table) == 0:
            terminal.note("note: all entries are zero, so there is nothing to find")
        with terminal.warnings_as_notes():
            X = table.X if client is None else _chunks(table, client, options)
            model, W, seconds = fit_model(X, **_model_parameters(options))
            if options.certify:
                with phase("computing the lower bound of the error", int(not options.quiet)):
                    add_floor(model, X)
    fitted = FittedModel(
        model,
        W,
        table,
        seconds,
        title=f"Factorization of {table_name(table)}",
        image_shape=options.image_shape,
    )
    record, written = write_fit(folder, fitted, csv=options.csv)
    written += write_h5ad(options, model, W, table.column_names)
    for hint in wording.hints(record):
        terminal.note(f"note: {hint}")
    say_results(wording.answer(record), wording.label_table(record), written)
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
    from nonneg.data.connection import connected

    with connected(options.scheduler) as client:
        yield client


def _chunks(table: Table, client: Any, options: argparse.Namespace) -> Any:
    """Return the entries as a Dask array for the workers."""
    from nonneg.data.chunked import chunked_rows

    threads = sum(client.nthreads().values())
    reader = stored_reader(options) if hasattr(table.X, "stored") else None
    X = chunked_rows(table.X, threads, reader)
    if not options.quiet:
        terminal.note(f"{X.numblocks[0]} chunks on {len(client.nthreads())} workers, {threads} threads")
    return X


def fit_model(X: Any, **parameters: Any) -> tuple[Any, Any, float]:
    """Fit, and take the time."""
    from nonneg import NMF

    model = NMF(**parameters)
    started = time.perf_counter()
    W = model.fit_transform(X)
    if hasattr(W, "compute"):
        W = W.compute()
        model.result_ = replace(model.result_, W=W)
    return model, W, time.perf_counter() - started


def add_floor(model: Any, X: Any) -> None:
    """Add to the certificate how far the error is from the least possible one, where that is known."""
    if model.result_.loss_name != "frobenius" or model.result_.stop_reason.name == "INTERRUPTED":
        return
    try:
        model.certify(X)
    except KeyboardInterrupt:  # the fit itself is done and shall not be lost
        terminal.note("note: interrupted; the error is not compared with the smallest possible one")


def _check_image_shape(shape: tuple[int, int] | None, table: Table) -> None:
    from nonneg.exceptions import ShapeError

    if shape is not None and shape[0] * shape[1] != table.X.shape[1]:
        raise ShapeError(
            f"--image-shape {shape[0]}x{shape[1]} needs {shape[0] * shape[1]} features, but the data have "
            f"{table.X.shape[1]}. Give rows and columns whose product is {table.X.shape[1]}."
        )


def _model_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `NMF`."""
    said = {
        "n_components": options.components,
        "beta_loss": options.loss,
        "solver": options.solver,
        "init": options.init,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "alpha_W": options.alpha_W,
        "alpha_H": options.alpha_H,
        "l1_ratio": options.l1_ratio,
        "scale": options.scale,
        "random_state": options.seed,
        "missing": options.missing,
        "device": options.device,
        "n_jobs": options.n_jobs,
        "checkpoint": None if options.checkpoint is None else str(options.checkpoint),
        "verbose": 0 if options.quiet else 1,
    }
    return {name: value for name, value in said.items() if value is not None}
