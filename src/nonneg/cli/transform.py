"""`nonneg transform MODEL FILE`: apply the model of an earlier run to new data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonneg.cli import arguments, tables, terminal
from nonneg.cli.unmix import PIXELS
from nonneg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    OutputError,
    ShapeError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from nonneg.io import Table
    from nonneg.report.record import Record

_KINDS = {"table": "a table", "texts": "texts", "cube": "a hyperspectral cube", "sound": "sound files"}
_OPTIONS = {
    "table": (
        "header", "index", "delimiter", "columns", "drop", "variable", "layer", "highly_variable",
        "write_h5ad", "transpose", "dtype", "missing", "memory",
    ),
    "texts": ("text_column", "lines"),
    "cube": ("variable", "mask", "no_data", "all_bands", "maps"),
    "sound": ("group",),
}  # fmt: skip
"""The options that say something about each kind of data."""
_NONNEGATIVE = ("ConeNMF", "IntegrativeNMF", "NMF", "TopicModel")
"""Models that never take negative entries; others check them on their own."""
_NO_WEIGHTS = {
    "MutationalSignatures": "its exposures come from `model.transform(catalog)` in Python.",
    "MixedMembership": "it describes the nodes of one graph only. Run `nonneg communities` on the new graph.",
}
"""Models without a transform: why, and what to do."""


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


OPTIONS = f"""
model MODEL: saved model, or a folder of results that contains model.npz
files FILE+: new data: a table as for `nonneg fit`, texts as for `nonneg topics` (also several files or
    folders), a cube as for `nonneg unmix`, or sounds as for `nonneg separate`

[data]
{tables.READING}
{tables.MEMORY}
--missing

[texts]
--text-column NAME: column of a table, or key of JSON lines, that contains the texts
--lines: treat every line of a text file as a document

[hyperspectral image]
{PIXELS}
--maps npy|envi: format of the abundance maps (default: npy)

[sound]
--group NAME=N,N,...+: regroup the components of the model by hand, as for `nonneg separate`

[output]
{tables.H5AD}
--device
--n-jobs
"""
KINDS: dict[str, Any] = {"group": {"type": arguments.named_counts}}


def run(options: argparse.Namespace) -> None:
    """Load, read, transform, write."""
    from nonneg.report.record import MODEL

    saved = opened_model(options.model)
    what = "sources" if saved.kind == "sound" else "weights"
    folder = arguments.output_folder(options, options.files[0], what)
    if (folder / MODEL).exists():
        raise OutputError(
            f"{folder} contains {MODEL} and its results, which {what} of new data would "
            "replace. Choose another folder with -o."
        )
    _check_options(saved, options)
    known = saved.model.get_params(deep=False)
    said = arguments.chosen(options, "missing", "device", "n_jobs") | {"verbose": int(not options.quiet)}
    for name in known.keys() & said.keys():
        setattr(saved.model, name, said[name])
    kinds = {"table": _of_table, "texts": _of_texts, "cube": _of_cube, "sound": _of_sounds}
    record, copies = kinds[saved.kind](saved, options, folder)
    terminal.finish(folder, record, page=False, others=copies)


def opened_model(given: Path) -> SavedModel:
    """Load a model."""
    from nonneg.applications.saved_models import load
    from nonneg.report.record import MODEL

    path = given / MODEL if given.is_dir() else given
    if not path.is_file():
        problem = f"{given} contains no {MODEL}" if given.is_dir() else f"{given} does not exist"
        raise FileFormatError(
            f"{problem}. Give a saved model, or the folder that a command such as `nonneg fit -o` wrote."
        )
    try:
        model = load(path)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}.") from error
    except FileFormatError as error:
        if path.suffix == ".npz":
            raise
        # Most likely the data were named first.
        raise FileFormatError(f"{error} The model comes before the data: transform MODEL FILE.") from error
    name = type(model).__name__
    if name in _NO_WEIGHTS:
        raise UnsupportedError(f"{path} contains a model of class {name}: {_NO_WEIGHTS[name]}")
    texts = name == "TopicModel" and model.vectorizer_ is not None
    kinds = {"Unmixing": "cube", "SourceSeparation": "sound"}
    return SavedModel(model, path, kinds.get(name, "texts" if texts else "table"))


def _check_options(saved: SavedModel, options: argparse.Namespace) -> None:
    takes = f"{saved.path} contains a model of class {saved.class_name}, which takes {_KINDS[saved.kind]}"
    foreign = {name for names in _OPTIONS.values() for name in names}.difference(_OPTIONS[saved.kind])
    for name in sorted(foreign):
        if (value := getattr(options, name)) is not None and value is not False:
            raise InvalidParameterError(
                f"--{name.replace('_', '-')} does not apply here: {takes}. Leave it out."
            )
    if options.missing == "mask" and "missing" not in saved.model.get_params(deep=False):
        raise InvalidParameterError(
            f"--missing mask is for models of class NMF, but {saved.path} contains one of class "
            f"{saved.class_name}. Fill the missing entries, or leave these samples out."
        )
    if saved.kind not in ("texts", "sound") and len(options.files) > 1:
        raise InvalidParameterError(f"{takes}: expected one file, got {len(options.files)}.")


def _feature_names(saved: SavedModel) -> list[str] | None:
    """Return what the features of a model are called, where it is known."""
    from nonneg.report.record import MODEL, NAMES, read_names

    for attribute in ("feature_names_in_", "vocabulary_"):
        if (names := getattr(saved.model, attribute, None)) is not None:
            return [str(name) for name in names]
    beside = saved.path.parent
    if saved.path.name != MODEL or not (beside / NAMES).is_file():
        return None
    return read_names(beside, (None, int(saved.model.n_features_in_)))[1]


def _in_model_order(table: Table, saved: SavedModel, names: Sequence[str] | None) -> Table:
    """Bring the columns of a table into the order of the model, and leave out those it does not know."""
    from nonneg.data.streamed import StreamedMatrix

    columns, source, n_features = table.column_names, tables.table_name(table), saved.model.n_features_in_
    if names is None or columns is None:
        if table.X.shape[1] != n_features:
            hint = ", or exchange rows and columns with --transpose" * (table.X.shape[0] == n_features)
            raise ShapeError(
                f"{source} has {table.X.shape[1]} features, but {saved.path} was fitted to {n_features}. "
                f"Give the features of the fit, in their order{hint}."
            )
        return table
    if list(columns) == list(names):
        return table
    if missing := [name for name in names if name not in columns]:
        some = ", ".join(map(repr, missing[:5])) + f" and {len(missing) - 5} more" * (len(missing) > 5)
        remedy = "Their order does not matter, and other columns are ignored."
        if set(table.row_names or ()) == set(names):
            remedy = "Its rows have the names of the features: exchange rows and columns with --transpose."
        raise ShapeError(
            f"{source} does not fit {saved.path}: it lacks {len(missing)} of its {len(names)} features "
            f"({some}). {remedy}"
        )
    places = {name: at for at, name in enumerate(columns)}
    if len(set(names)) < len(names):
        raise ShapeError(
            f"{source} has the features of {saved.path} in another order, and names that are not unique "
            "cannot be matched. Give the features in the order of the fit."
        )
    order = [places[name] for name in names]
    X = table.X.with_columns(order) if isinstance(table.X, StreamedMatrix) else table.X[:, order]
    return replace(table, X=X, column_names=tuple(names))


def _record(
    saved: SavedModel, W: Any, source: str, seconds: float, error: float | None, *nouns: str
) -> Record:
    """Return the record of weights, one row per sample; the nouns are those of samples and components."""
    from nonneg.report.elements import counted
    from nonneg.report.record import Record

    said = [counted(count, noun) for count, noun in zip(W.shape, nouns, strict=True)]
    said += [] if error is None else [f"relative error {error:.4g}"]
    result = {"n_samples": len(W), "n_components": W.shape[1], "relative_error": error, "seconds": seconds}
    details = {"model": {"source": str(saved.path), "class": saved.class_name}}
    title, data = f"Weights of {source}", {"source": source}
    return Record("transform", title, ", ".join(said), "", {}, data, result, details=details)


Outcome = tuple["Record", list[Path]]
"""The record, and files elsewhere."""


def _of_table(saved: SavedModel, options: argparse.Namespace, folder: Path) -> Outcome:
    import numpy as np

    from nonneg.cli.files import TABLE_KINDS, array_file, factor_file, proportions_file
    from nonneg.report.fits import observed_relative_error

    options.file = options.files[0]
    tables.check_h5ad(options)
    model = saved.model
    # What the fit accepted, new data may hold.
    options.missing = options.missing or model.get_params(deep=False).get("missing")
    names = _feature_names(saved)
    read = tables.read_input(options, signed=saved.class_name not in _NONNEGATIVE, names=names or ())
    table = _in_model_order(read, saved, names)
    if table is not read:
        terminal.note(
            "note: the columns were reordered to match the model"
            if table.X.shape[1] == read.X.shape[1]
            else f"note: the model uses {table.X.shape[1]} of the {read.X.shape[1]} columns, by name"
        )
    elif (names is None) is not (read.column_names is None) and not options.quiet:
        which = "the model" if names is None else tables.table_name(read)
        terminal.note(f"note: {which} has no feature names; columns are used in their order")
    # They have been compared; arrays without names would be warned about.
    vars(model).pop("feature_names_in_", None)
    W, seconds = terminal.timed(model.transform, table.X)
    W = np.asarray(W)
    # Components of the other classes are variances, words of documents that are scaled to shares, or in the
    # units of scaled data sets.
    error = None
    if saved.class_name not in ("IntegrativeNMF", "TopicModel", "TransformNMF"):
        scale = getattr(model, "column_scale_", None)
        H = model.components_ if scale is None else model.components_ / scale
        error = observed_relative_error(table.X, W, H, scale)
    topics = saved.class_name == "TopicModel"
    words = ("document", "topic") if topics else ("sample", "component")
    record = _record(saved, W, tables.table_name(table), seconds, error, *words)
    record.files["W.npy"] = array_file(W)
    if topics:
        rows = table.row_names or [f"row {at}" for at in range(len(W))]
        record.files["documents.csv"] = proportions_file(W, rows, model.topic_names_)
    elif table.row_names is not None or table.kind in TABLE_KINDS:
        components = [f"component_{at}" for at in range(W.shape[1])]
        record.files["W.csv"] = factor_file(W, "sample", table.row_names, components)
    return record, tables.write_h5ad(options, model, W, table.column_names)


def _of_texts(saved: SavedModel, options: argparse.Namespace, folder: Path) -> Outcome:
    from nonneg.applications.topics.files import read_documents
    from nonneg.cli.files import array_file, proportions_file
    from nonneg.report.elements import counted

    documents = read_documents(options.files, column=options.text_column, lines=options.lines, at_least=1)
    if not documents.are_texts:
        raise InvalidParameterError(
            f"{saved.path} contains a model of texts, but {documents.source} contains numbers. Give texts, "
            "or name the column that contains them with --text-column."
        )
    if not options.quiet:
        terminal.note(f"{counted(len(documents.names), 'document')} from {documents.source}")
    W, seconds = terminal.timed(saved.model.transform, documents.contents)
    record = _record(saved, W, documents.source, seconds, None, "document", "topic")
    record.files = {
        "W.npy": array_file(W),
        "documents.csv": proportions_file(W, documents.names, saved.model.topic_names_),
    }
    return record, []


def _of_cube(saved: SavedModel, options: argparse.Namespace, folder: Path) -> Outcome:
    import numpy as np

    from nonneg.cli import unmix

    cube, model = unmix.read_image(options.files[0], options), saved.model
    unmix.note_of(options.files[0].name, cube, options)
    maps, seconds = terminal.timed(model.transform, cube, mask=unmix.read_mask(options))
    if cube.wavelengths is not None and model.wavelengths_ is not None:
        shared = model.bands_ & cube.kept
        _compare_bands(np.asarray(cube.wavelengths)[shared], model.wavelengths_[shared[model.bands_]])
    W = maps.reshape(-1, maps.shape[-1])
    # Pixels without data are NaN.
    W = W[~np.isnan(W[:, 0])]
    record = _record(saved, W, options.files[0].name, seconds, None, "pixel", "endmember")
    record.files = unmix.maps_file(options, maps, cube)
    return record, []


def _compare_bands(given: Any, known: Any) -> None:
    import numpy as np

    from nonneg.io.envi import in_nanometers

    places = in_nanometers(known)
    apart = float(np.abs(in_nanometers(given) - places).max())
    if apart > 1e-3 * float(places.max()):
        terminal.note(f"note: bands of the scene lie up to {apart:.4g} nm from those of the model")


def _of_sounds(saved: SavedModel, options: argparse.Namespace, folder: Path) -> Outcome:
    """Separate recordings with a saved model."""
    from nonneg.cli import separate
    from nonneg.report.record import Record
    from nonneg.report.sounds import Separated

    model = saved.model
    if options.group:
        model.regroup(separate.grouping_by_hand(options.group))
    separate.check_sound_folder(folder)
    sounds = [separate.read_at(path, model.rate_) for path in options.files]
    sources, seconds = terminal.timed(lambda: [model.separate(sound.samples) for sound in sounds])
    separated = Separated(model, sounds, sources, seconds)
    entries = [
        {"name": name, "energy_share": float(share)}
        for name, share in zip(model.source_names_, separated.energy_shares(), strict=True)
    ]
    titles = [sound.source for sound in sounds]
    said = ", ".join(f"{entry['name']} {100 * entry['energy_share']:.1f}%" for entry in entries)
    record = Record(
        "transform",
        f"Sources of {', '.join(titles)}",
        f"{said} of the energy",
        "",
        {},
        {"source": ", ".join(titles), "files": titles, "rate": sounds[0].rate},
        {"n_sources": len(entries), "seconds": seconds},
        details={"model": {"source": str(saved.path), "class": saved.class_name}, "sources": entries},
    )
    separate.add_sounds(record, separated)
    return record, []
