"""`nonneg transform MODEL FILE`: apply the model of an earlier run to new data."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
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

_TABLE = f"""
{tables.READING}
{tables.MEMORY}
--missing
--uncertainty
{tables.H5AD}
"""
_TEXTS = """
--text-column NAME: column of a table, or key of JSON lines, that contains the texts
--lines: treat every line of a text file as a document
"""
_CUBE = f"""
{PIXELS}
--maps npy|envi: format of the abundance maps (default: npy)
"""
_KINDS = {
    "a table": _TABLE,
    "texts": _TEXTS,
    "a hyperspectral cube": f"{_CUBE}--variable NAME",  # declared for tables
    "sound files": "",
}
"""Inputs of models, with the options that concern them."""
OPTIONS = f"""
model MODEL: saved model, or a folder of results that contains model.npz
files FILE+: new data: a table as for `nonneg fit`, texts as for `nonneg topics` (also several files or
    folders), a cube as for `nonneg unmix`, or sounds as for `nonneg separate`

[data]{_TABLE}
[texts]{_TEXTS}
[hyperspectral image]{_CUBE}
[output]
--device
--n-jobs
"""
_NO_WEIGHTS = {
    "MutationalSignatures": "its exposures come from `model.transform(catalog)` in Python.",
    "MixedMembership": "it describes the nodes of one graph only. Run `nonneg communities` on the new graph.",
}
"""Models without a transform: why, and what to do."""
_NONNEGATIVE = ("ConeNMF", "IntegrativeNMF", "NMF", "TopicModel")
"""Models that never take negative entries; others check them on their own."""
_OTHER_UNITS = ("IntegrativeNMF", "TopicModel", "TransformNMF")
"""Models whose components are not in the units of the data: W H has no relative error."""


def run(options: argparse.Namespace) -> None:
    """Load, read, transform, write."""
    from nonneg.report.record import MODEL

    model, path = opened_model(options.model)
    kind, name = _kind_of(model), type(model).__name__
    if name in _NO_WEIGHTS:
        raise UnsupportedError(f"{path} contains a model of class {name}: {_NO_WEIGHTS[name]}")
    what = "sources" if kind == "sound files" else "weights"
    folder = arguments.output_folder(options, options.files[0], what)
    if (folder / MODEL).exists():
        raise OutputError(
            f"{folder} contains {MODEL} and its results, which {what} of new data would "
            "replace. Choose another folder with -o."
        )
    _check_options(options, model, f"{path} contains a model of class {name}, which takes {kind}")
    params = arguments.chosen(options, "missing", "device", "n_jobs") | {"verbose": int(not options.quiet)}
    for parameter in model.get_params(deep=False).keys() & params.keys():
        setattr(model, parameter, params[parameter])
    copies: list[Path] = []
    if kind == "a table":
        record, copies = _of_table(model, path, options)
    elif kind == "sound files":
        record = _of_sounds(model, options)
    else:
        record = (_of_texts if kind == "texts" else _of_cube)(model, path, options)
    record.details["model"] = {"source": str(path), "class": name}
    terminal.finish(folder, record, page=False, others=copies)


def opened_model(folder: Path) -> tuple[Any, Path]:
    """Load a model; return it, and its file."""
    from nonneg.applications.saved_models import load
    from nonneg.report.record import MODEL

    path = folder / MODEL if folder.is_dir() else folder
    if not path.is_file():
        problem = f"{folder} contains no {MODEL}" if folder.is_dir() else f"{folder} does not exist"
        raise FileFormatError(
            f"{problem}. Give a saved model, or the folder that a command such as `nonneg fit -o` wrote."
        )
    try:
        return load(path), path
    except FileFormatError as error:
        if path.suffix == ".npz":
            raise
        # Most likely the data were named first.
        raise FileFormatError(f"{error} The model comes before the data: transform MODEL FILE.") from error


def _kind_of(model: Any) -> str:
    name = type(model).__name__
    if name == "TopicModel" and model.vectorizer_ is not None:
        return "texts"
    return {"Unmixing": "a hyperspectral cube", "SourceSeparation": "sound files"}.get(name, "a table")


def _check_options(options: argparse.Namespace, model: Any, takes: str) -> None:
    """Reject options that say nothing about what the model takes."""
    kind = _kind_of(model)
    option = re.compile(r"^--(?:\[no-\])?([\w-]+)", re.MULTILINE)
    named = {of: set(option.findall(text)) for of, text in _KINDS.items()}
    for name in sorted(set.union(*named.values()) - named[kind]):
        if (value := getattr(options, name.replace("-", "_"))) is not None and value is not False:
            raise InvalidParameterError(f"--{name} does not apply here: {takes}. Leave it out.")
    if (options.missing == "mask" or options.uncertainty) and "missing" not in model.get_params(deep=False):
        raise InvalidParameterError(
            f"--missing mask and --uncertainty are for models of class NMF, but {takes}. Leave both out."
        )
    if kind not in ("texts", "sound files") and len(options.files) > 1:
        raise InvalidParameterError(f"{takes}: expected one file, got {len(options.files)}.")


def _in_model_order(table: Table, model: Any, path: Path, names: Sequence[str] | None) -> Table:
    """Bring the columns of a table into the order of the model, and leave out those it does not know."""
    columns, source, n_features = table.column_names, tables.table_name(table), model.n_features_in_
    if names is None or columns is None:
        if table.X.shape[1] != n_features:
            hint = ", or exchange rows and columns with --transpose" * (table.X.shape[0] == n_features)
            raise ShapeError(
                f"{source} has {table.X.shape[1]} features, but {path} was fitted to {n_features}. "
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
            f"{source} does not fit {path}: it lacks {len(missing)} of its {len(names)} features "
            f"({some}). {remedy}"
        )
    places = {name: at for at, name in enumerate(columns)}
    if len(set(names)) < len(names):
        raise ShapeError(
            f"{source} has the features of {path} in another order, and names that are not unique "
            "cannot be matched. Give the features in the order of the fit."
        )
    order = [places[name] for name in names]
    X = table.X.with_columns(order) if hasattr(table.X, "with_columns") else table.X[:, order]
    return replace(table, X=X, column_names=tuple(names))


def _record(W: Any, source: str, seconds: float, *nouns: str, error: float | None = None) -> Record:
    """Return the record of weights, one row per sample; the nouns are those of samples and components."""
    from nonneg.report.record import Record
    from nonneg.report.words import counted

    counts = [counted(count, noun) for count, noun in zip(W.shape, nouns, strict=True)]
    counts += [] if error is None else [f"relative error {error:.4g}"]
    result = {"n_samples": len(W), "n_components": W.shape[1], "relative_error": error, "seconds": seconds}
    return Record("transform", f"Weights of {source}", ", ".join(counts), (), {"source": source}, result)


def _of_table(model: Any, path: Path, options: argparse.Namespace) -> tuple[Record, list[Path]]:
    """Return the weights of the samples of a table, and files elsewhere."""
    import numpy as np

    from nonneg.cli import files
    from nonneg.report.tables import observed_relative_error

    options.file, name = options.files[0], type(model).__name__
    tables.check_h5ad(options)
    # What the fit accepted, new data may hold.
    accepted = model.get_params(deep=False)
    options.missing = options.missing or accepted.get("missing")
    signed = accepted.get("negative") == "keep" or accepted.get("signed_components", False)
    known = getattr(model, "feature_names_in_", getattr(model, "vocabulary_", None))
    names = None if known is None else [str(one) for one in known]
    read = tables.read_input(options, signed=signed or name not in _NONNEGATIVE, names=names or ())
    table = _in_model_order(read, model, path, names)
    if table is not read:
        terminal.note(
            "note: the columns were reordered to match the model"
            if table.X.shape[1] == read.X.shape[1]
            else f"note: the model uses {table.X.shape[1]:,} of the {read.X.shape[1]:,} columns, by name"
        )
    elif (names is None) is not (read.column_names is None):
        which = "the model" if names is None else tables.table_name(read)
        terminal.progress(f"note: {which} has no feature names; columns are used in their order")
    # They have been compared; arrays without names would be warned about.
    vars(model).pop("feature_names_in_", None)
    uncertainty = tables.read_uncertainty(options, table)
    weights = {} if uncertainty is None else {"uncertainty": uncertainty}
    W, seconds = terminal.timed(model.transform, table.X, **weights)
    W, error = np.asarray(W), None
    if name not in _OTHER_UNITS:
        scale = getattr(model, "column_scale_", None)
        H = model.components_ if scale is None else model.components_ / scale
        error = observed_relative_error(table.X, W, H, scale)
    source, rows = tables.table_name(table), table.row_names
    if name == "TopicModel":
        record = _record(W, source, seconds, "document", "topic")
        rows = rows or [f"row {at}" for at in range(len(W))]
        record.files["documents.csv"] = files.proportions_file(W, rows, model.topic_names_)
    else:
        record = _record(W, source, seconds, "sample", "component", error=error)
        if rows is not None or table.kind in files.TABLE_KINDS:
            components = [f"component_{at}" for at in range(W.shape[1])]
            record.files["W.csv"] = files.factor_file(W, "sample", rows, components)
    record.files["W.npy"] = files.array_file(W)
    return record, tables.write_h5ad(options, model, W, table.column_names)


def _of_texts(model: Any, path: Path, options: argparse.Namespace) -> Record:
    """Return the topics of documents."""
    from nonneg.applications.topics.files import read_documents
    from nonneg.cli import files
    from nonneg.cli.topics import recorded_inputs
    from nonneg.report.words import counted

    known = recorded_inputs(path)
    column, lines = options.text_column or known["text_column"], options.lines or known["lines"]
    documents = read_documents(options.files, column=column, lines=lines, at_least=1)
    if not documents.are_texts:
        raise InvalidParameterError(
            f"{path} contains a model of texts, but {documents.source} contains numbers. Give texts, "
            "or name the column that contains them with --text-column."
        )
    terminal.progress(f"{counted(len(documents.names), 'document')} from {documents.source}")
    W, seconds = terminal.timed(model.transform, documents.contents)
    record = _record(W, documents.source, seconds, "document", "topic")
    record.files["W.npy"] = files.array_file(W)
    record.files["documents.csv"] = files.proportions_file(W, documents.names, model.topic_names_)
    return record


def _of_cube(model: Any, path: Path, options: argparse.Namespace) -> Record:
    """Return the abundances of an image."""
    import numpy as np

    from nonneg.certificates.bounds import upper
    from nonneg.cli import unmix
    from nonneg.io.cube import in_nanometers

    name, cube = options.files[0].name, unmix.read_image(options.files[0], options)
    unmix.note_of(name, cube)
    maps, seconds = terminal.timed(model.transform, cube, mask=unmix.read_numbers(options.mask))
    if cube.wavelengths is not None and model.wavelengths_ is not None:
        shared = model.bands_ & cube.kept
        places = in_nanometers(model.wavelengths_[shared[model.bands_]])
        apart = np.abs(in_nanometers(np.asarray(cube.wavelengths)[shared]) - places).max()
        if apart > 1e-3 * places.max():
            terminal.note(f"note: bands of the scene lie up to {upper(apart)} nm from those of the model")
    W = maps.reshape(-1, maps.shape[-1])
    # Pixels without data are NaN.
    record = _record(W[~np.isnan(W[:, 0])], name, seconds, "pixel", "endmember")
    record.files = unmix.maps_file(options, maps, cube)
    return record


def _of_sounds(model: Any, options: argparse.Namespace) -> Record:
    """Return the sources of recordings."""
    from nonneg.cli import separate
    from nonneg.report.record import Record
    from nonneg.report.sounds import energy_shares
    from nonneg.report.words import entries_of

    sounds = [separate.read_at(path, model.rate_) for path in options.files]
    sources, seconds = terminal.timed(lambda: [model.separate(sound.samples) for sound in sounds])
    entries = entries_of(name=model.source_names_, energy_share=energy_shares(sources))
    files, rate = [sound.source for sound in sounds], sounds[0].rate
    energies = ", ".join(f"{entry['name']} {100 * entry['energy_share']:.1f}%" for entry in entries)
    record = Record(
        "transform",
        f"Sources of {', '.join(files)}",
        f"{energies} of the energy",
        (),
        {"source": ", ".join(files), "files": files, "rate": rate},
        {"n_sources": len(entries), "seconds": seconds},
        details={"sources": entries},
    )
    separate.add_sounds(record, sounds, sources)
    return record
