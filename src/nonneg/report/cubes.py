"""Sections of an unmixed hyperspectral image: the image, the endmembers, the maps."""

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
    library: SpectralLibrary | None = None  # spectra to compare with
    known_as: str = "those of the library"  # as in "degrees from the true ones"
    truth_maps: Any = None  # known abundances, in the order of the library


def describe(model: Any, scene: Scene, seconds: float) -> Record:
    """Return the record of an unmixed image."""
    fitted, cube, k = model.result_, scene.cube, model.n_endmembers_
    match = None if scene.library is None else model.match(scene.library)
    names = [f"endmember {at}" for at in range(k)]
    if match is not None:
        names = [known or name for known, name in zip(match.names, names, strict=True)]
    errors = _map_errors(model, scene, match)
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
        "scale": cube.scale,
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
        "duality_gap": fitted.gap,
        "estimate": None if estimate is None else estimate.as_dict(),
        "n_iter": fitted.n_iter,
        "stop_reason": records.stop_facts(fitted),
        "seconds": seconds,
    }
    library = None
    if match is not None and scene.library is not None:
        present = [error for error in errors if error is not None]
        library = {
            "n_spectra": len(scene.library.names),
            "known_as": scene.known_as,
            "mean_angle": float(np.nanmean(match.angles)),
            "map_error": float(np.sqrt(np.mean(np.square(present)))) if present else None,
        }
    endmembers = [
        {
            "endmember": at,
            "row": int(model.pure_pixels_[at, 0]),
            "column": int(model.pure_pixels_[at, 1]),
            "mean_abundance": float(means[at]),
            "name": names[at] if match is not None and match.names[at] else None,
            "angle": None if match is None or match.chosen[at] < 0 else float(match.angles[at]),
            "nearest": None if match is None else match.nearest[at],
            "map_error": errors[at],
        }
        for at in range(k)
    ]
    return Record(
        "unmix",
        f"Unmixing of {scene.title}",
        _answer(data, result, library),
        _lead(data, result),
        _tiles(data, result, library),
        data,
        result,
        details={"endmembers": endmembers, "library": library},
        shown={"scene": scene, "names": names, "match": match, "wavelengths": places},
        **records.of_estimator(model),
    )


def _map_errors(model: Any, scene: Scene, match: Any) -> list[float | None]:
    if scene.truth_maps is None or match is None:
        return [None] * int(model.n_endmembers_)
    errors: list[float | None] = []
    for own, at in enumerate(match.chosen):
        apart = model.abundances_[:, :, own] - scene.truth_maps[:, :, at]
        errors.append(None if at < 0 else float(np.sqrt(np.nanmean(apart**2))))
    return errors


def _answer(data: Mapping[str, Any], result: Mapping[str, Any], library: Mapping[str, Any] | None) -> str:
    k = result["n_endmembers"]
    said = (
        f"{wording.counted(k, 'endmember')} explain{'s' * (k == 1)} "
        f"{wording.percent(max(result['explained'], 0.0))} of the squared norm of the image"
    )
    if library is not None:
        said += f"; they are {library['mean_angle']:.3g}° from {library['known_as']} on average"
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


def _tiles(
    data: Mapping[str, Any], result: Mapping[str, Any], library: Mapping[str, Any] | None
) -> dict[str, Any]:
    compared: dict[str, Any] = {}
    if library is not None:
        compared = {"mean angle": f"{library['mean_angle']:.2f}°"}
        if library["map_error"] is not None:
            compared["map error (RMS)"] = wording.number(library["map_error"], digits=3)
    error, seconds = result["relative_error"], result["seconds"]
    rest = {"relative error": error, "pixels": data["n_pixels"], "time": seconds}
    return {"endmembers": result["n_endmembers"]} | compared | rest


def _pure(result: Mapping[str, Any]) -> bool:
    return result["method"] not in _WITHOUT_PURE_PIXELS and result["how"] not in _WITHOUT_PURE_PIXELS


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    details, model = record.as_dict(), record.model
    scene, names = record.shown["scene"], record.shown["names"]
    library, pure = details["library"], _pure(details["result"])
    colors = [drawings.COLORS[at % len(drawings.COLORS)] for at in range(len(names))]
    labels = names if library is None else [f"{at}: {name}" for at, name in enumerate(names)]
    step = max(1, -(-max(model.residuals_.shape) // _LONGEST))
    preview = rgb_preview(scene.cube, mask=model.mask_)[::step, ::step]
    bands, places = details["data"]["preview_bands"], details["data"]["preview_wavelengths"]
    shown = (
        ", ".join(f"{place:.0f} nm" for place in places)
        if places
        else ", ".join(f"band {at}" for at in bands)
    )
    pixels = "the pure pixels" if pure else "the purest pixels"
    dashed = (
        "" if library is None else "; dashed: the most similar spectra of the library, at the same brightness"
    )
    headings = ["endmember", pixels[4:-1], ">mean abundance"]
    if library is not None:
        headings += ["looks like", ">angle", "nearest"]
        headings += [] if library["map_error"] is None else [">map error (RMS)"]
    return [
        html.section(
            "The image",
            html.figure(
                _marked(preview, model.residuals_.shape, model.pure_pixels_, colors),
                f"Red, green and blue are {shown}. Rings mark {pixels}.",
                kind="photo",
            ),
        ),
        html.section(
            "The endmembers",
            html.figure(_spectra(record, labels, colors), f"The spectra of the endmembers{dashed}."),
            html.table(headings, [_row(entry, colors, library) for entry in details["endmembers"]]),
        ),
        _maps(record, labels, colors, step),
    ]


def _row(entry: Mapping[str, Any], colors: Sequence[str], library: Mapping[str, Any] | None) -> list[Any]:
    cells = [
        [html.swatch(colors[entry["endmember"]]), entry["endmember"]],
        f"row {entry['row']}, column {entry['column']}",
        wording.percent(entry["mean_abundance"]),
    ]
    if library is not None:
        angle = wording.number(None) if entry["angle"] is None else f"{entry['angle']:.2f}°"
        cells += [entry["name"] or wording.number(None), angle, entry["nearest"]]
        cells += [] if library["map_error"] is None else [wording.number(entry["map_error"], digits=3)]
    return cells


def _maps(record: Record, labels: Sequence[str], colors: Sequence[str], step: int) -> Raw:
    model, data = record.model, record.data
    # What is not explained is hatched, as are pixels without data: a map would not be true there.
    abundances = np.where(model.unexplained_[:, :, None], np.nan, model.abundances_)
    pictures = [
        html.picture(
            data_address(picture_png(abundances[::step, ::step, at], 1.0)),
            f"abundance of {name}",
            [
                html.swatch(colors[at]),
                html.element("b", name),
                f", {wording.percent(entry['mean_abundance'])}",
            ],
        )
        for at, (name, entry) in enumerate(zip(labels, record.details["endmembers"], strict=True))
    ]
    worst = float(np.nanmax(model.residuals_)) if np.isfinite(model.residuals_).any() else 0.0
    residual = html.picture(
        data_address(picture_png(model.residuals_[::step, ::step], worst)),
        "residual",
        f"residual, relative to the pixel; at most {wording.percent(worst)}",
    )
    hatched = [
        what
        for what, count in (
            ("pixels without data", data["n_left_out"]),
            ("pixels that the endmembers do not explain", data["n_unexplained"]),
        )
        if count
    ]
    said = "Abundance of each endmember in every pixel; the darkest shade is an abundance of one"
    said += f"; {' and '.join(hatched)} are hatched." if hatched else "."
    kind = f"pictures large{' holes' if hatched else ''}"
    return html.section(
        "The maps", html.paragraph(said), html.element("div", pictures[:_N_MAPS], residual, class_=kind)
    )


def _spectra(record: Record, names: Sequence[str], colors: Sequence[str]) -> Raw:
    """Draw spectra as lines; bands that were left out are gaps."""
    model, match, places = record.model, record.shown["match"], record.shown["wavelengths"]
    inside = model.bands_.copy()
    inside[np.flatnonzero(inside)[0] : np.flatnonzero(inside)[-1] + 1] = True
    x = np.arange(len(model.bands_)) if places is None else places
    order = np.flatnonzero(inside)[np.argsort(x[inside], kind="stable")]
    known = None
    if match is not None:
        known = record.shown["scene"].library.at(model.wavelengths_, model.endmembers_.shape[1])
    whole, (axes,) = drawings.panels(10.4, 3.8)
    for at, line in enumerate(model.endmembers_):
        axes.plot(
            *_with_gaps(x[order], _in_all_bands(model, line)[order]),
            color=colors[at],
            linewidth=2,
            label=names[at],
        )
        if known is not None and match.chosen[at] >= 0:
            beside = known[match.chosen[at]]
            beside = beside * float(beside @ line) / max(float(beside @ beside), 1e-300)
            dashed = _with_gaps(x[order], _in_all_bands(model, beside)[order])
            axes.plot(*dashed, color=colors[at], linewidth=1.4, linestyle=(0, (4, 3)))
    drawings.label(axes, "band" if places is None else "wavelength, nm", "value")
    axes.set_ylim(bottom=0)
    drawings.plain_legend(axes, fontsize=9, ncols=max(1, min(4, -(-len(names) // 6))))
    return drawings.drawing(whole, "Spectra of the endmembers")


def _in_all_bands(model: Any, spectrum: FloatArray) -> FloatArray:
    drawn = np.full(len(model.bands_), np.nan)
    drawn[model.bands_] = spectrum
    return drawn


def _with_gaps(x: Any, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Interrupt a line where bands are missing from the file, such as those of water."""
    if len(x) < 3:
        return x, y
    steps = np.diff(x)
    gaps = np.flatnonzero(steps > 5 * np.median(steps)) + 1
    return np.insert(np.asarray(x, dtype=float), gaps, np.nan), np.insert(y, gaps, np.nan)


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
