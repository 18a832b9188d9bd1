"""Blocks of an unmixed hyperspectral image: the image, the endmembers, the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._html import Raw
from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral import Cube, SpectralLibrary, rgb_preview
from nonneg.applications.hyperspectral.preview import preview_bands
from nonneg.applications.images import data_address, picture_png
from nonneg.io.envi import in_nanometers
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_N_MAPS = 60  # maximum number of maps shown
_N_NAMED = 10  # maximum number of isolated pixels that are named
_LONGEST = 700  # pixels along the long side of a picture
# Methods whose endmembers no pixel has to equal.
_WITHOUT_PURE_PIXELS = ("min-volume", "minimum volume")


@dataclass(frozen=True)
class Scene:
    """A hyperspectral image and what is known of it."""

    cube: Cube
    title: str
    n_endmembers: int | None = None  # how many endmembers are looked for; None to estimate it
    mask: Any = None  # which pixels count
    library: SpectralLibrary | None = None  # known spectra to compare with


def describe(model: Any, scene: Scene, seconds: float) -> Record:
    """Return the record of an unmixed image."""
    fitted, cube, k = model.result_, scene.cube, model.n_endmembers_
    match = None if scene.library is None else model.match(scene.library)
    means = np.nanmean(model.abundances_.reshape(-1, k), axis=0)
    places = None if cube.wavelengths is None else in_nanometers(cube.wavelengths)
    shown = preview_bands(cube.wavelengths, cube.shape[2], model.bands_)
    n_pixels, estimate = int(model.mask_.sum()), model.n_endmembers_estimate_
    data = {
        "source": Path(cube.source).name or cube.source,
        "shape": cube.shape,
        "dtype": str(cube.values.dtype),
        "n_pixels": n_pixels,
        "n_left_out": model.mask_.size - n_pixels,
        "n_clipped": model.n_clipped_,
        "n_isolated": len(model.isolated_pixels_),
        "isolated_pixels": model.isolated_pixels_[:_N_NAMED],
        "n_unexplained": int(model.unexplained_.sum()),
        "n_bands": int(model.bands_.sum()),
        "bands_left_out": np.flatnonzero(~model.bands_),
        "preview_bands": shown,
        "preview_wavelengths": None if places is None else places[list(shown)],
    }
    result = {
        "method": fitted.method,
        "how": fitted.facts.get("how"),
        "n_endmembers": k,
        "constraint": model.constraint,
        "relative_error": float(model.relative_error_),
        "explained": 1.0 - float(model.relative_error_) ** 2,
        "estimate": None if estimate is None else estimate.as_dict(),
        "mean_angle": None if match is None else float(np.nanmean(match.angles)),
        "seconds": seconds,
    }
    endmembers = [
        {
            "endmember": at,
            "row": int(model.pure_pixels_[at, 0]),
            "column": int(model.pure_pixels_[at, 1]),
            "mean_abundance": float(means[at]),
            "name": None if match is None else match.names[at],
            "angle": None if match is None or match.chosen[at] < 0 else float(match.angles[at]),
            "nearest": None if match is None else match.nearest[at],
        }
        for at in range(k)
    ]
    angle = {} if match is None else {"mean angle": f"{result['mean_angle']:.2f}°"}
    return Record(
        "unmix",
        f"Unmixing of {scene.title}",
        _answer(data, result),
        _lead(data, result),
        {
            "endmembers": k,
            **angle,
            "relative error": result["relative_error"],
            "pixels": n_pixels,
            "time": seconds,
        },
        data,
        result,
        details={"endmembers": endmembers},
        shown={"scene": scene, "match": match, "wavelengths": places},
        **records.of_estimator(model),
    )


def _answer(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    k = result["n_endmembers"]
    said = (
        f"{wording.counted(k, 'endmember')} explain{'s' * (k == 1)} "
        f"{wording.percent(max(result['explained'], 0.0))} of the squared norm of the image"
    )
    if result["mean_angle"] is not None:
        said += f"; they are {result['mean_angle']:.3g}° from known spectra on average"
    if left := data["n_unexplained"]:
        share = wording.percent(left / data["n_pixels"])
        said += f"; they do not explain {wording.counted(left, 'pixel')} ({share}), hatched in the maps"
    if aside := data["n_isolated"]:
        verb = "was" if aside == 1 else "were"
        said += f"; {wording.counted(aside, 'pixel')} unlike all others {verb} set aside"
    return f"{said}."


def _lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    rows, columns, bands = (wording.number(side) for side in data["shape"])
    method = wording.method(result["method"])
    if result["how"] is not None:
        method = result["how"] if method == "auto" else f"{method} ({result['how']})"
    text = (
        f"{rows} x {columns} pixels with {bands} bands from {data['source']}. "
        f"{'Pure pixels' if _pure(result) else 'Endmembers'} by {method}, abundances with the constraint "
        f"{result['constraint']}, in {wording.seconds(result['seconds'])}."
    )
    if left := len(data["bands_left_out"]):
        text += f" {wording.counted(left, 'band')} left out as bad: {wording.ranges(data['bands_left_out'])}."
    if data["n_left_out"]:
        text += f" {wording.counted(data['n_left_out'], 'pixel')} without data or left out."
    if result["estimate"] is not None:
        text += f" The number of endmembers was estimated: {result['estimate']['reason'].rstrip('.')}."
    if data["n_clipped"]:
        text += f" {wording.counted(data['n_clipped'], 'value')} below zero set to zero."
    if data["n_isolated"]:
        places = ", ".join(f"({row}, {column})" for row, column in data["isolated_pixels"])
        text += f" Pixels set aside (row, column): {places}{', ...' * (data['n_isolated'] > _N_NAMED)}."
    return text


def _pure(result: Mapping[str, Any]) -> bool:
    return result["method"] not in _WITHOUT_PURE_PIXELS and result["how"] not in _WITHOUT_PURE_PIXELS


def table(record: Record) -> list[dict[str, Any]]:
    """Return the endmembers, one per row."""
    rows = []
    for entry in record.details["endmembers"]:
        row = {
            "endmember": entry["endmember"],
            "pure pixel"
            if _pure(record.result)
            else "purest pixel": f"row {entry['row']}, column {entry['column']}",
            "mean abundance": wording.percent(entry["mean_abundance"]),
        }
        if record.result["mean_angle"] is not None:
            angle = None if entry["angle"] is None else f"{entry['angle']:.2f}°"
            row |= {"looks like": entry["name"], "angle": angle, "nearest": entry["nearest"]}
        rows.append(row)
    return rows


def endmember_names(record: Record) -> list[str]:
    """Return what the endmembers are called: by the spectra they match, or by number."""
    return [entry["name"] or f"endmember {entry['endmember']}" for entry in record.details["endmembers"]]


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    details, model, cube = record.as_dict(), record.model, record.shown["scene"].cube
    colors = [drawings.COLORS[at % len(drawings.COLORS)] for at in range(model.n_endmembers_)]
    step = max(1, -(-max(model.residuals_.shape) // _LONGEST))
    preview = rgb_preview(cube, mask=model.mask_)[::step, ::step]
    bands, places = details["data"]["preview_bands"], details["data"]["preview_wavelengths"]
    shown = [f"{place:.0f} nm" for place in places] if places else [f"band {at}" for at in bands]
    pixels = "the pure pixels" if _pure(record.result) else "the purest pixels"
    known = "; dashed: the most similar known spectra, at the same brightness"
    caption = f"The spectra of the endmembers{known if record.shown['match'] is not None else ''}."
    rows = [
        row | {"endmember": [html.swatch(color), row["endmember"]]}
        for row, color in zip(table(record), colors, strict=True)
    ]
    image = _marked(preview, model.residuals_.shape, model.pure_pixels_, colors)
    said = f"Red, green and blue are {', '.join(shown)}. Rings mark {pixels}."
    return [
        html.section("The image", html.figure(image, said, kind="photo")),
        html.section("The endmembers", html.figure(_spectra(record, colors), caption), rows),
        _maps(record, colors, step),
    ]


def _maps(record: Record, colors: Sequence[str], step: int) -> Raw:
    model, data = record.model, record.data
    # What is not explained is hatched, as are pixels without data: a map would not be true there.
    abundances = np.where(model.unexplained_[:, :, None], np.nan, model.abundances_)[::step, ::step]
    pictures = [
        (
            data_address(picture_png(abundances[:, :, at], 1.0)),
            f"abundance of {name}",
            [
                html.swatch(colors[at]),
                html.element("b", name),
                f", {wording.percent(entry['mean_abundance'])}",
            ],
        )
        for at, (name, entry) in enumerate(
            zip(endmember_names(record), record.details["endmembers"], strict=True)
        )
    ]
    worst = float(np.nanmax(model.residuals_)) if np.isfinite(model.residuals_).any() else 0.0
    residual = (
        data_address(picture_png(model.residuals_[::step, ::step], worst)),
        "residual",
        f"residual, relative to the pixel; at most {wording.percent(worst)}",
    )
    hatched = ["pixels without data"] * bool(data["n_left_out"])
    hatched += ["pixels that the endmembers do not explain"] * bool(data["n_unexplained"])
    said = "Abundance of each endmember in every pixel; the darkest shade is an abundance of one"
    said += f"; {' and '.join(hatched)} are hatched." if hatched else "."
    kind = "large holes" if hatched else "large"
    return html.section("The maps", said, html.pictures([*pictures[:_N_MAPS], residual], kind))


def _spectra(record: Record, colors: Sequence[str]) -> Raw:
    """Draw spectra as lines; bands that were left out are gaps."""
    model, match, places = record.model, record.shown["match"], record.shown["wavelengths"]
    x = np.arange(len(model.bands_)) if places is None else places
    order = np.argsort(x, kind="stable")
    known = None
    if match is not None:
        known = record.shown["scene"].library.at(model.wavelengths_, model.endmembers_.shape[1])

    def line(spectrum: FloatArray) -> tuple[Any, Any]:
        whole_range = np.full(len(model.bands_), np.nan)
        whole_range[model.bands_] = spectrum
        return x[order], whole_range[order]

    whole, (axes,) = drawings.panels(10.4, 3.8)
    for at, (name, spectrum) in enumerate(zip(endmember_names(record), model.endmembers_, strict=True)):
        axes.plot(*line(spectrum), color=colors[at], linewidth=2, label=f"{at}: {name}")
        if known is not None and match.chosen[at] >= 0:
            beside = known[match.chosen[at]]
            beside = beside * float(beside @ spectrum) / max(float(beside @ beside), 1e-300)
            axes.plot(*line(beside), color=colors[at], linewidth=1.4, linestyle=(0, (4, 3)))
    drawings.label(axes, "band" if places is None else "wavelength, nm", "value")
    axes.set_ylim(bottom=0)
    drawings.plain_legend(axes, fontsize=9, ncols=max(1, min(4, -(-len(colors) // 6))))
    return drawings.drawing(whole, "Spectra of the endmembers")


def _marked(preview: Any, shape: Sequence[int], pixels: FloatArray, colors: Sequence[str]) -> Raw:
    """Draw the image with numbered rings around pixels."""
    rows, columns = shape
    whole, (axes,) = drawings.panels(10.4, float(np.clip(10.4 * rows / columns, 3.0, 8.0)))
    axes.imshow(preview, interpolation="none", extent=(-0.5, columns - 0.5, rows - 0.5, -0.5))
    axes.set_axis_off()
    for number, ((row, column), color) in enumerate(zip(pixels.tolist(), colors, strict=True)):
        for edge, width in (("#ffffff", 5.0), (color, 2.5)):
            axes.plot(column, row, "o", fillstyle="none", color=edge, markersize=12, markeredgewidth=width)
        box = {"facecolor": "#ffffff", "edgecolor": color, "boxstyle": "round,pad=0.15"}
        side = -1 if column > 0.9 * columns else 1
        axes.annotate(
            str(number), (column, row), (15 * side, 0), textcoords="offset points", ha="center", va="center",
            fontsize=10, fontweight="bold", color="#111111", bbox=box,
        )  # fmt: skip
    return drawings.drawing(whole, "The image with its pure pixels")
