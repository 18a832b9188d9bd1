"""The saved model of `nonneg transform`, and new data brought into its order of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nonneg
from nonneg.cli.results import MODEL, NAMES
from nonneg.data.streamed import StreamedMatrix
from nonneg.exceptions import FileFormatError, ShapeError, UnsupportedError
from nonneg.io import Table
from nonneg.report.records import read_record

_N_SHOWN = 5

NO_WEIGHTS = {
    "MutationalSignatures": "its exposures come from `model.transform(catalog)` in Python.",
    "MixedMembership": "it describes the nodes of one graph only. Run `nonneg communities` on the new graph.",
}
"""Models without a transform: why, and what to do."""


WITH_NAMES = ("NMF", "SeparableNMF")
"""Models whose commands write the names of the features beside them."""

WITH_MORE = ("h5ad", "10x")
"""Formats that hold all genes, of which a model may take some: the others are left out."""


@dataclass(frozen=True)
class SavedModel:
    """A model and where it was found."""

    model: Any  # fitted
    path: Path  # the file
    kind: str  # what its transform takes

    @property
    def class_name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__


def opened_model(given: Path) -> SavedModel:
    """Load a model."""
    path = given / MODEL if given.is_dir() else given
    if not path.is_file():
        found = f"{given} contains no {MODEL}" if given.is_dir() else f"{given} does not exist"
        raise FileFormatError(
            f"{found}. Give a saved model, or the folder that a command such as `nonneg fit -o` wrote."
        )
    try:
        model = nonneg.load(path)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}.") from error
    except FileFormatError as error:
        if path.suffix == ".npz":
            raise
        # Most likely the data were named first.
        raise FileFormatError(f"{error} The model comes before the data: transform MODEL FILE.") from error
    name = type(model).__name__
    if name in NO_WEIGHTS:
        raise UnsupportedError(f"{path} contains a model of class {name}: {NO_WEIGHTS[name]}")
    kinds = {"Unmixing": "cube", "SourceSeparation": "sound"}
    if name in kinds:
        return SavedModel(model, path, kinds[name])
    texts = name == "TopicModel" and model.vectorizer_ is not None
    return SavedModel(model, path, "texts" if texts else "table")


def feature_names(saved: SavedModel) -> list[str] | None:
    """Return what the features of a model are called, where it is known."""
    for attribute in ("feature_names_in_", "vocabulary_"):
        if (names := getattr(saved.model, attribute, None)) is not None:
            return [str(name) for name in names]
    beside = saved.path.parent / NAMES
    # Other commands leave a file of names that an earlier fit wrote into the same folder.
    if saved.class_name not in WITH_NAMES or saved.path.name != MODEL or not beside.is_file():
        return None
    columns = read_record(beside).get("columns")
    if columns is not None and (not isinstance(columns, list) or len(columns) != _n_features(saved)):
        raise FileFormatError(
            f"{beside}: expected a list of the names of {_n_features(saved)} features. Run the command "
            "again, or take the model out of the folder."
        )
    return None if columns is None else [str(name) for name in columns]


def in_model_order(table: Table, saved: SavedModel, names: Sequence[str] | None) -> Table:
    """Bring the columns of a table into the order of the model."""
    given, source = table.column_names, Path(table.source).name
    if names is None or given is None:
        if table.X.shape[1] != _n_features(saved):
            hint = ", or exchange rows and columns with --transpose"
            raise ShapeError(
                f"{source} has {table.X.shape[1]} features, but {saved.path} was fitted to "
                f"{_n_features(saved)}. Give the features of the fit, in their order"
                f"{hint if table.X.shape[0] == _n_features(saved) else ''}."
            )
        return table
    if list(given) == list(names):
        return table
    _check_same_names(table, saved, names)
    places = {name: at for at, name in enumerate(given)}
    order = [places[name] for name in names]
    X = table.X.with_columns(order) if isinstance(table.X, StreamedMatrix) else table.X[:, order]
    return replace(table, X=X, column_names=tuple(str(name) for name in names))


def _check_same_names(table: Table, saved: SavedModel, names: Sequence[str]) -> None:
    given, source = table.column_names or (), Path(table.source).name
    missing, unknown = Counter(names) - Counter(given), Counter(given) - Counter(names)
    if table.kind in WITH_MORE:
        unknown = Counter()
    if missing or unknown:
        lacks = f"lacks {len(missing)} of its {len(names)} features ({_some(missing)})" if missing else ""
        more = f"has {len(unknown)} that it does not know ({_some(unknown)})" if unknown else ""
        across = set(table.row_names or ()) == set(names)
        remedy = (
            "Its rows have the names of the features: exchange rows and columns with --transpose."
            if across
            else "Give the features of the fit; their order does not matter."
        )
        raise ShapeError(
            f"{source} does not fit {saved.path}: it {' and '.join(filter(None, (lacks, more)))}. {remedy}"
        )
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ShapeError(
            f"{source} has the features of {saved.path} in another order, and names that are not "
            f"unique ({_some(repeated)}) cannot be matched. Give the features in the order of the fit."
        )


def _n_features(saved: SavedModel) -> int:
    return int(saved.model.n_features_in_)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    rest = f" and {len(listed) - _N_SHOWN} more" if len(listed) > _N_SHOWN else ""
    return ", ".join(repr(name) for name in listed[:_N_SHOWN]) + rest
