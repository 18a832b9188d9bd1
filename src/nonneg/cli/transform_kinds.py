"""What `nonneg transform` does for each kind of data: tables, texts and cubes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.cli import terminal
from nonneg.cli.results import TABLE_KINDS
from nonneg.cli.table_inputs import check_h5ad, read_input, table_name
from nonneg.cli.transform_inputs import SavedModel, feature_names, in_model_order
from nonneg.exceptions import InvalidParameterError
from nonneg.report.quality import divided, observed_relative_error

WORDS = {"table": "a table", "texts": "texts", "cube": "a hyperspectral cube", "sound": "sound files"}
OPTIONS = {
    "table": (
        "header",
        "index",
        "delimiter",
        "columns",
        "drop",
        "variable",
        "layer",
        "highly_variable",
        "write_h5ad",
        "transpose",
        "dtype",
        "missing",
        "memory",
        "csv",
    ),
    "texts": ("text_column", "lines"),
    "cube": ("variable", "mask", "no_data", "all_bands", "maps"),
    "sound": ("group", "format"),
}
"""The options that say something about each kind of data."""
NONNEGATIVE = ("ConeNMF", "IntegrativeNMF", "NMF", "TopicModel")
"""Models that never take negative entries; others check them on their own."""


@dataclass(frozen=True)
class Transformed:
    """Weights of new data."""

    weights: FloatArray  # what `transform` returned
    names: Sequence[str] | None  # of the samples
    source: str  # where the data came from, in a few words
    seconds: float  # how long the transform took
    # The norm of what the components leave of the data, relative to the data; None where weights and
    # components do not multiply to the data.
    relative_error: float | None = None
    is_table: bool = False  # whether the data came in a format that is written as .csv again
    georeference: Any = None  # where a scene lies
    feature_names: Sequence[str] | None = None  # of a table, in the order of the model


def transformed(saved: SavedModel, options: argparse.Namespace) -> Transformed:
    """Read new data and find their weights."""
    prepare(saved, options)
    kinds = {"table": _of_table, "texts": _of_texts, "cube": _of_cube}
    return kinds[saved.kind](saved, options)


def prepare(saved: SavedModel, options: argparse.Namespace) -> None:
    """Reject options that say nothing about the model's kind of data, and set the others."""
    _check_options(saved, options)
    parameters = saved.model.get_params(deep=False)
    said = {
        "missing": options.missing,
        "device": options.device,
        "n_jobs": options.n_jobs,
        "verbose": 0 if options.quiet else 1,
    }
    for name, value in said.items():
        if value is not None and name in parameters:
            setattr(saved.model, name, value)


def _check_options(saved: SavedModel, options: argparse.Namespace) -> None:
    takes = f"{saved.path} contains a model of class {saved.class_name}, which takes {WORDS[saved.kind]}"
    for name in dict.fromkeys(name for names in OPTIONS.values() for name in names):
        value = getattr(options, name)
        if name not in OPTIONS[saved.kind] and value is not None and value is not False:
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


def _of_table(saved: SavedModel, options: argparse.Namespace) -> Transformed:
    options.file = options.files[0]
    check_h5ad(options)
    model = saved.model
    # What the fit accepted, new data may hold.
    options.missing = options.missing or model.get_params(deep=False).get("missing")
    given = read_input(options, signed=saved.class_name not in NONNEGATIVE)
    names = feature_names(saved)
    table = in_model_order(given, saved, names)
    if table is not given:
        terminal.note(
            "note: the columns were reordered to match the model"
            if table.X.shape[1] == given.X.shape[1]
            else f"note: the model uses {table.X.shape[1]} of the {given.X.shape[1]} variables, by name"
        )
    elif (names is None) is not (given.column_names is None) and not options.quiet:
        which = "the model" if names is None else table_name(given)
        terminal.note(f"note: {which} has no feature names; columns are used in their order")
    # They have been compared; arrays without names would be warned about.
    vars(model).pop("feature_names_in_", None)
    started = time.perf_counter()
    W = np.asarray(model.transform(table.X))
    seconds = time.perf_counter() - started
    # Components of the other classes are variances, words of documents that are scaled to shares, or in the
    # units of scaled data sets.
    is_product = saved.class_name not in ("IntegrativeNMF", "TopicModel", "TransformNMF")
    scale = getattr(model, "column_scale_", None)
    H = model.components_ if scale is None else model.components_ / scale
    error = observed_relative_error(divided(table.X, scale), W, H) if is_product else None
    return Transformed(
        W, table.row_names, table_name(table), seconds, error, table.kind in TABLE_KINDS,
        feature_names=table.column_names,
    )  # fmt: skip


def _of_texts(saved: SavedModel, options: argparse.Namespace) -> Transformed:
    from nonneg.applications.topics.files import read_documents

    documents = read_documents(options.files, column=options.text_column, lines=options.lines, at_least=1)
    if not documents.are_texts:
        raise InvalidParameterError(
            f"{saved.path} contains a model of texts, but {documents.source} contains numbers. Give texts, "
            "or name the column that contains them with --text-column."
        )
    if not options.quiet:
        terminal.note(f"{len(documents.names)} documents from {documents.source}")
    started = time.perf_counter()
    memberships = saved.model.transform(documents.contents)
    return Transformed(memberships, documents.names, documents.source, time.perf_counter() - started)


def _of_cube(saved: SavedModel, options: argparse.Namespace) -> Transformed:
    from nonneg.cli.unmix import SCENES
    from nonneg.cli.unmix_inputs import opened_scene

    # What `nonneg unmix` reads a scene by; the model brings the rest.
    said = argparse.Namespace(
        cube=str(options.files[0]), example=False, endmembers="auto", variable=options.variable,
        mask=options.mask, no_data=options.no_data, all_bands=options.all_bands, wavelengths=None,
        library=None,
    )  # fmt: skip
    scene, model = opened_scene(said, SCENES), saved.model
    cube = scene.cube
    if not options.quiet:
        terminal.note(f"{scene.title}: {cube.shape[0]} x {cube.shape[1]} pixels, {cube.shape[2]} bands")
    started = time.perf_counter()
    maps = model.transform(cube, mask=scene.mask)
    seconds = time.perf_counter() - started
    shared = model.bands_ & cube.kept
    if cube.wavelengths is not None and model.wavelengths_ is not None:
        _compare_bands(np.asarray(cube.wavelengths)[shared], model.wavelengths_[shared[model.bands_]])
    error = _scene_error(model, replace(cube, bands=shared), scene.mask, maps)
    source = Path(cube.source).name or scene.title
    return Transformed(maps, None, source, seconds, error, georeference=cube.georeference)


def _compare_bands(given: Any, known: Any) -> None:
    from nonneg.io.wavelengths import in_nanometers

    places = in_nanometers(known)
    apart = float(np.abs(in_nanometers(given) - places).max())
    if apart > 1e-3 * float(places.max()):
        terminal.note(f"note: bands of the scene lie up to {apart:.4g} nm from those of the model")


def _scene_error(model: Any, cube: Any, mask: Any, maps: FloatArray) -> float:
    from nonneg.applications.hyperspectral.pixels import ImagePixels

    abundances = maps.reshape(-1, maps.shape[2])
    endmembers = model.endmembers_[:, cube.kept[model.bands_]].astype(np.float64)
    left = norm = 0.0
    for block in ImagePixels(cube, mask, float(model.negative_tol)).blocks():
        spectra = block.spectra.astype(np.float64)
        mixed = abundances[block.pixels] @ endmembers
        if model.constraint == "normalized":
            # The division by the sum took the brightness away; the best one along the mixture gives it back.
            squares = np.einsum("pb,pb->p", mixed, mixed)
            brightness = np.einsum("pb,pb->p", spectra, mixed) / np.where(squares > 0, squares, 1.0)
            mixed *= brightness[:, None]
        left += float(np.square(spectra - mixed).sum())
        norm += float(np.square(spectra).sum())
    return float(np.sqrt(left / norm))
