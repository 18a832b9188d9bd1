"""The files of a fit: what is written, and how it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._typing import FloatArray
from nonneg.cli.result_files import (
    MODEL,
    NAMES,
    REPORT,
    RESULT,
    TABLE_KINDS,
    versions,
    write_answer,
    write_factor,
    write_names,
)
from nonneg.exceptions import FileFormatError
from nonneg.io import Table, read_table
from nonneg.report.folder import replaced_folder
from nonneg.report.page import Fit, build_page
from nonneg.report.quality import observed_relative_error
from nonneg.report.records import plain, read_record

FILES = frozenset({"W.npy", "H.npy", "W.csv", "H.csv", "examples.npy", NAMES, MODEL, REPORT, RESULT})
"""All names a fit may write."""

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


def write_results(
    folder: Path, fitted: FittedModel, *, csv: bool = False
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files of a fit at once, or none."""
    record = fit_record(fitted)
    fit = _fit_of(fitted, record)
    named = fit.row_names is not None or fit.column_names is not None
    with replaced_folder(folder, FILES) as fresh:
        np.save(fresh / "W.npy", fit.W, allow_pickle=False)
        np.save(fresh / "H.npy", fit.H, allow_pickle=False)
        if fit.examples is not None:
            np.save(fresh / "examples.npy", fit.examples, allow_pickle=False)
        if csv or named or fitted.table.kind in TABLE_KINDS:
            components = [f"component_{at}" for at in range(fit.H.shape[0])]
            write_factor(fresh / "W.csv", fit.W, "sample", fit.row_names, components)
            write_factor(fresh / "H.csv", fit.H, "component", components, fit.column_names)
        write_names(fresh, fit.row_names, fit.column_names)
        written = write_answer(folder, fresh, record, lambda: build_page(fit), model=fitted.model)
    return record, written


def read_results(folder: Path) -> Fit:
    """Read back what `write_results` wrote."""
    if not folder.is_dir():
        raise FileFormatError(f"{folder} is no folder. Give the folder that `nonneg fit -o` wrote.")
    if not (folder / RESULT).is_file():
        raise FileFormatError(f"{folder} holds no {RESULT}. Give the folder that `nonneg fit -o` wrote.")
    record = read_record(folder / RESULT)
    factors = any((folder / name).exists() for name in ("W.npy", "H.npy"))
    # A search for anchors and a transform of new data leave their weights under the same names.
    others = {"anchors": "anchors", "model": "weights of new data"}
    other = next((words for key, words in others.items() if key in record), None) if factors else "no factors"
    if other is not None:
        raise FileFormatError(
            f"{folder} holds {other}: the report of `nonneg fit` alone "
            "can be made again from its files. Run another command again with its data."
        )
    W, H = (read_table(folder / name).X for name in ("W.npy", "H.npy"))
    expected = record.get("data", {}).get("shape")
    if [W.shape[0], H.shape[1]] != expected or W.shape[1] != H.shape[0]:
        raise FileFormatError(
            f"{folder}: W.npy {W.shape} and H.npy {H.shape} do not belong to the data of {RESULT} "
            f"({expected}). Run `nonneg fit` again."
        )
    rows, columns = _read_names(folder, (W.shape[0], H.shape[1]))
    examples = read_table(folder / "examples.npy").X if record.get("examples") else None
    return Fit(record, W, H, rows, columns, examples)


def _read_names(folder: Path, shape: tuple[int, int]) -> tuple[list[str] | None, list[str] | None]:
    found = read_record(folder / NAMES) if (folder / NAMES).is_file() else {}
    names = (found.get("rows"), found.get("columns"))
    for given, side, what in zip(names, shape, ("samples", "features"), strict=True):
        if given is not None and (not isinstance(given, list) or len(given) != side):
            raise FileFormatError(
                f"{folder / NAMES}: a list of the names of {side} {what} was expected. Run `nonneg fit` "
                "again."
            )
    return names


def fit_record(fitted: FittedModel) -> dict[str, Any]:
    """Collect the numbers of a fit."""
    model, X, table = fitted.model, fitted.table.X, fitted.table
    error = observed_relative_error(X, fitted.W, model.components_)
    is_sparse = sparse.issparse(X)
    record = {
        "format": 1,
        "title": fitted.title,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "source": Path(table.source).name or table.source,
            "shape": X.shape,
            "dtype": str(X.dtype),
            "n_stored": X.nnz if is_sparse else None,
            "n_missing": 0 if is_sparse or X.dtype.kind != "f" else int(np.isnan(X).sum()),
        },
        "parameters": {name: value for name, value in model.get_params().items() if name != "callback"},
        "result": {
            "n_components": model.components_.shape[0],
            "rank_reason": getattr(getattr(model, "rank_estimate_", None), "reason", None),
            "solver": model.result_.solver,
            "loss_name": model.result_.loss_name,
            "loss": model.result_.loss,
            "reconstruction_err": model.reconstruction_err_,
            "relative_error": error,
            "explained": 1.0 - error**2,
            "n_iter": model.n_iter_,
            "stop_reason": {
                "name": model.result_.stop_reason.name.lower(),
                "sentence": model.result_.stop_reason.value,
            },
            "seconds": fitted.seconds,
        },
        "history": model.history_.as_dict(),
        "certificate": [_statement(entry) for entry in model.certificate_],
        "image_shape": fitted.image_shape,
        "examples": _example_rows(fitted),
        "comparison": fitted.comparison,
        "versions": versions(),
    }
    return dict(plain(record))


def _statement(entry: Any) -> dict[str, Any]:
    fields = ("name", "sentence", "number", "threshold", "verdict", "quantities")
    return {name: getattr(entry, name) for name in fields}


def _example_rows(fitted: FittedModel) -> list[int] | None:
    n_rows = fitted.table.X.shape[0]
    if fitted.image_shape is None:
        return None
    return np.unique(np.linspace(0, n_rows - 1, _N_EXAMPLES).astype(int)).tolist()


def _fit_of(fitted: FittedModel, record: dict[str, Any]) -> Fit:
    examples = None
    if record["examples"]:
        rows = fitted.table.X[record["examples"]]
        examples = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
    table = fitted.table
    return Fit(record, fitted.W, fitted.model.components_, table.row_names, table.column_names, examples)
