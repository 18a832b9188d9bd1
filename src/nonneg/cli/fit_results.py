"""The files of a fit: what is written, and how it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._arrays import write_npy
from nonneg._typing import FloatArray
from nonneg.cli.results import (
    NAMES,
    RESULT,
    TABLE_KINDS,
    write_factor,
    write_names,
    write_results,
)
from nonneg.data import DataMatrix
from nonneg.exceptions import FileFormatError
from nonneg.io import Table, read_table
from nonneg.report.page import Fit, build_page
from nonneg.report.quality import (
    divided,
    dominance,
    explained_divergence,
    label_summary,
    observed_relative_error,
)
from nonneg.report.records import read_record, run_record, stop_facts, table_facts

EXAMPLES = "examples.npy"
_N_EXAMPLES = 8


@dataclass(frozen=True)
class FittedModel:
    """A fit and what it was fitted to."""

    model: Any  # the fitted estimator
    W: FloatArray  # what `fit_transform` returned
    table: Table  # the data and their names
    seconds: float  # how long the fit took
    title: str  # headline of the report
    image_shape: tuple[int, int] | None = None  # how a component becomes an image
    comparison: Mapping[str, Any] | None = None  # another library's result, for the report


def write_fit(folder: Path, fitted: FittedModel, *, csv: bool = False) -> tuple[dict[str, Any], list[Path]]:
    """Write all files of a fit."""
    record = _record(fitted)
    fit = _fit_of(fitted, record)
    named = fit.row_names is not None or fit.column_names is not None

    def write_files(fresh: Path) -> None:
        write_npy(fresh / "W.npy", fit.W)
        write_npy(fresh / "H.npy", fit.H)
        if fit.examples is not None:
            write_npy(fresh / EXAMPLES, fit.examples)
        if csv or named or fitted.table.kind in TABLE_KINDS:
            components = [f"component_{at}" for at in range(fit.H.shape[0])]
            write_factor(fresh / "W.csv", fit.W, "sample", fit.row_names, components)
            write_factor(fresh / "H.csv", fit.H, "component", components, fit.column_names)
        write_names(fresh, fit.row_names, fit.column_names)

    known = ("W.npy", "H.npy", "W.csv", "H.csv", EXAMPLES, NAMES)
    written = write_results(
        folder, record, write_files, lambda: build_page(fit), known=known, model=fitted.model
    )
    return record, written


def fit_page(fitted: FittedModel) -> str:
    """Write the report of a fit alone."""
    return build_page(_fit_of(fitted, _record(fitted)))


def read_fit(folder: Path, record: dict[str, Any]) -> Fit:
    """Read back what `write_fit` wrote."""
    W, H = (read_table(folder / name).X for name in ("W.npy", "H.npy"))
    expected = record["data"]["shape"]
    if [W.shape[0], H.shape[1]] != expected or W.shape[1] != H.shape[0]:
        raise FileFormatError(
            f"{folder}: W.npy {W.shape} and H.npy {H.shape} do not belong to the data of {RESULT} "
            f"({expected}). Run `nonneg fit` again."
        )
    rows, columns = read_names(folder, (W.shape[0], H.shape[1]))
    examples = read_table(folder / EXAMPLES).X if record["examples"] else None
    return Fit(record, W, H, rows, columns, examples)


def read_names(folder: Path, shape: tuple[int, int]) -> tuple[list[str] | None, list[str] | None]:
    """Read the names of samples and features that a command wrote."""
    found = read_record(folder / NAMES) if (folder / NAMES).is_file() else {}
    names = (found.get("rows"), found.get("columns"))
    for given, side, what in zip(names, shape, ("samples", "features"), strict=True):
        if given is not None and (not isinstance(given, list) or len(given) != side):
            raise FileFormatError(
                f"{folder / NAMES}: expected a list of the names of {side} {what}. Run the command again."
            )
    return names


def _record(fitted: FittedModel) -> dict[str, Any]:
    model, table = fitted.model, fitted.table
    scale, loss = getattr(model, "column_scale_", None), model.result_.loss_name
    # Of the scaled columns, which is what the loss measures.
    H = model.components_ if scale is None else model.components_ / scale
    error = _relative_error(fitted, H, scale)
    beta_loss = model.get_params().get("beta_loss", loss)
    explained: float | None = 1.0 - error**2
    if loss != "frobenius":
        explained = explained_divergence(table.X, 0.5 * model.reconstruction_err_**2, beta_loss, scale)
    labels = None
    if table.labels is not None:
        labels = label_summary(fitted.W, H, table.labels, table.label_name)
    return run_record(
        "fit",
        fitted.title,
        data=table_facts(fitted.table),
        estimator=model,
        result={
            "n_components": model.components_.shape[0],
            "rank_reason": getattr(getattr(model, "rank_estimate_", None), "reason", None),
            "solver": model.result_.solver,
            "loss_name": model.result_.loss_name,
            "loss": model.result_.loss,
            "reconstruction_err": model.reconstruction_err_,
            "relative_error": error,
            "explained": explained,
            "scale": model.get_params().get("scale"),
            "column_scale": scale,
            "dominance": dominance(table.X, beta_loss, table.column_names, scale),
            "labels": labels,
            "n_iter": model.n_iter_,
            "stop_reason": stop_facts(model.result_),
            "seconds": fitted.seconds,
        },
        image_shape=fitted.image_shape,
        examples=_example_rows(fitted),
        comparison=fitted.comparison,
    )


def _relative_error(fitted: FittedModel, H: Any, scale: Any) -> float:
    X, model = fitted.table.X, fitted.model
    if isinstance(X, DataMatrix) and model.result_.loss_name == "frobenius":
        norm = float(np.sqrt(X.squared_norm()))  # known, unlike what another pass over the file would find
        return float(model.reconstruction_err_) / norm if norm > 0 else 0.0
    return observed_relative_error(divided(X, scale), fitted.W, H)


def _example_rows(fitted: FittedModel) -> list[int] | None:
    n_rows = fitted.table.X.shape[0]
    if fitted.image_shape is None:
        return None
    return np.unique(np.linspace(0, n_rows - 1, _N_EXAMPLES).astype(int)).tolist()


def _fit_of(fitted: FittedModel, record: dict[str, Any]) -> Fit:
    examples = None
    if record["examples"]:
        X, at = fitted.table.X, record["examples"]
        rows = X.take_rows(at) if isinstance(X, DataMatrix) else X[at]
        examples = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
    table = fitted.table
    return Fit(record, fitted.W, fitted.model.components_, table.row_names, table.column_names, examples)
