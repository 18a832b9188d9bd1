"""Record and page of an unmixed hyperspectral image: the image, the endmembers, the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._html import Raw, element
from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral import Cube, SpectralLibrary, rgb_preview
from nonneg.applications.hyperspectral.preview import preview_bands
from nonneg.applications.images import data_address, picture_png
from nonneg.io.envi import in_nanometers
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.record import Record, of_estimator, picked

_N_MAPS = 60  # maximum number of maps shown
_N_NAMED = 10  # maximum number of isolated pixels that are named
_LONGEST = 700  # pixels along the long side of a picture
_COLUMNS = {
    "endmember": "endmember",
    "row": "row",
    "column": "column",
    "mean_abundance": ("mean abundance", html.percent),
    "name": "looks like",
    "angle": ("angle", "{:.2f}°".format),
}


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
    cube, k = scene.cube, model.n_endmembers_
    match = None if scene.library is None else model.match(scene.library)
    means = np.nanmean(model.abundances_.reshape(-1, k), axis=0)
    places = None if cube.wavelengths is None else in_nanometers(cube.wavelengths)
    n_pixels, how = int(model.mask_.sum()), model.result_.facts.get("how")
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
    }
    result = {
        **picked(model, "n_endmembers_", "constraint", "relative_error_"),
        "method": model.result_.method,
        "how": how,
        # Minimum volume gives endmembers that no pixel has to equal.
        "pure": "volume" not in f"{model.result_.method} {how}",
        "explained": 1.0 - float(model.relative_error_) ** 2,
        "estimates": model.n_endmembers_estimates_,
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
        }
        for at in range(k)
    ]
    return Record(
        "unmix",
        f"Unmixing of {scene.title}",
        _answer(data, result),
        _lead(data, result),
        {name: (data | result)[name] for name in ("n_endmembers", "relative_error", "n_pixels", "seconds")},
        data,
        result,
        details={"endmembers": endmembers},
        shown={"scene": scene, "match": match, "wavelengths": places},
        **of_estimator(model),
    )


def _answer(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    k, unexplained, aside = result["n_endmembers"], data["n_unexplained"], data["n_isolated"]
    explained = html.percent(max(result["explained"], 0.0))
    told = (
        f"{html.counted(k, 'endmember')} explain{'s' * (k == 1)} {explained} of the squared norm of the image"
    )
    if result["mean_angle"] is not None:
        told += f"; they are {result['mean_angle']:.3g}° from known spectra on average"
    if unexplained:
        share = html.percent(unexplained / data["n_pixels"])
        told += f"; they do not explain {html.counted(unexplained, 'pixel')} ({share}), hatched in the maps"
    if aside:
        was = "was" if aside == 1 else "were"
        told += f"; {html.counted(aside, 'pixel')} unlike all others {was} set aside"
    return f"{told}."


def _lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    rows, columns, bands = (html.number(side) for side in data["shape"])
    method, how = result["method"], result["how"]
    if how is not None:
        method = how if method == "auto" else f"{method} ({how})"
    told = (
        f"{rows} x {columns} pixels with {bands} bands from {data['source']}. "
        f"{'Pure pixels' if result['pure'] else 'Endmembers'} by {method}, abundances with the constraint "
        f"{result['constraint']}, in {html.seconds(result['seconds'])}."
    )
    if result["estimates"]:
        told += f" The number of endmembers was estimated: {listed(result['estimates'])}."
    return told + html.noted(
        (len(data["bands_left_out"]), "band", "left out as bad"),
        (data["n_left_out"], "pixel", "without data or left out"),
        (data["n_clipped"], "value", "below zero set to zero"),
    )


def listed(estimates: Mapping[str, int]) -> str:
    """Return what the estimates of the number of endmembers say, in words."""
    return ", ".join(f"{name} {number}" for name, number in estimates.items())


def table(record: Record) -> list[dict[str, Any]]:
    """Return the endmembers, one per row."""
    return html.rows_of(record.details["endmembers"], _COLUMNS)


def endmember_names(record: Record) -> list[str]:
    """Return what the endmembers are called: by the spectra they match, or by number."""
    return [entry["name"] or f"endmember {entry['endmember']}" for entry in record.details["endmembers"]]


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    model, data, cube = record.model, record.data, record.shown["scene"].cube
    colors, step = drawings.colors(model.n_endmembers_), -(-max(model.residuals_.shape) // _LONGEST)
    places, bands = record.shown["wavelengths"], preview_bands(cube.wavelengths, cube.shape[2], model.bands_)
    shown = [f"band {at}" if places is None else f"{places[at]:.0f} nm" for at in bands]
    pixels = "pure pixels" if record.result["pure"] else "purest pixels"
    known = "; dashed: the most similar known spectra, at the same brightness"
    known = "" if record.shown["match"] is None else known
    hatched = ["pixels without data"] * bool(data["n_left_out"])
    hatched += ["pixels that the endmembers do not explain"] * bool(data["n_unexplained"])
    told = "Abundance of each endmember in every pixel; the strongest shade is an abundance of one"
    told += f"; {' and '.join(hatched)} are hatched." if hatched else "."
    image = _marked(rgb_preview(cube, mask=model.mask_)[::step, ::step], model, colors)
    caption = f"Red, green and blue are {', '.join(shown)}. Numbers mark the {pixels}."
    spectra = html.figure(_spectra(record, colors), f"The spectra of the endmembers{known}.")
    maps = html.pictures(_maps(record, colors, step), "large holes" if hatched else "large")
    return [
        html.section("The image", html.figure(image, caption, kind="wide photo")),
        html.section("The endmembers", spectra, html.colored(table(record), colors)),
        html.section("The maps", told, maps),
    ]


def _maps(record: Record, colors: Sequence[str], step: int) -> list[tuple[str, str, Any]]:
    """Return the pictures of abundances and of the residual."""
    model, names = record.model, endmember_names(record)
    # What is not explained is hatched, as are pixels without data: a map would not be true there.
    abundances = np.where(model.unexplained_[:, :, None], np.nan, model.abundances_)[::step, ::step]
    maps: list[tuple[str, str, Any]] = []
    for at, (name, color) in enumerate(zip(names, colors, strict=True)):
        share = html.percent(record.details["endmembers"][at]["mean_abundance"])
        address = data_address(picture_png(abundances[:, :, at], 1.0))
        maps.append((address, f"abundance of {name}", [html.swatch(color), element("b", name), f", {share}"]))
    worst = float(np.nanmax(model.residuals_)) if np.isfinite(model.residuals_).any() else 0.0
    residual = data_address(picture_png(model.residuals_[::step, ::step], worst))
    told = f"residual, relative to the pixel; at most {html.percent(worst)}"
    return [*maps[:_N_MAPS], (residual, "residual", told)]


def _spectra(record: Record, colors: Sequence[str]) -> Raw:
    """Draw spectra as lines; bands that were left out are gaps."""
    model, match, places = record.model, record.shown["match"], record.shown["wavelengths"]
    x = np.arange(len(model.bands_)) if places is None else places
    order = np.argsort(x, kind="stable")
    figure, axes = drawings.panel(10.4, 3.8)

    def plot(spectrum: FloatArray, **style: Any) -> None:
        whole = np.full(len(model.bands_), np.nan)
        whole[model.bands_] = spectrum
        axes.plot(x[order], whole[order], **style)

    for at, spectrum in enumerate(model.endmembers_):
        plot(spectrum, color=colors[at], linewidth=2)
        if match is not None and match.chosen[at] >= 0:
            library = record.shown["scene"].library.at(model.wavelengths_, model.bands_)
            known = library[match.chosen[at]]
            brightness = float(known @ spectrum) / max(float(known @ known), 1e-300)
            plot(brightness * known, color=colors[at], linewidth=1.4, linestyle=(0, (4, 3)))
    drawings.label(axes, "band" if places is None else "wavelength, nm", "value")
    axes.set_ylim(bottom=0)
    return drawings.drawing(figure, "Spectra of the endmembers")


def _marked(image: Any, model: Any, colors: Sequence[str]) -> Raw:
    """Draw the image with numbered rings around the pure pixels."""
    rows, columns = model.residuals_.shape
    figure, axes = drawings.panel(10.4, float(np.clip(10.4 * rows / columns, 3.0, 8.0)))
    axes.imshow(image, interpolation="none", extent=(-0.5, columns - 0.5, rows - 0.5, -0.5))
    axes.set_axis_off()
    for number, ((row, column), color) in enumerate(zip(model.pure_pixels_.tolist(), colors, strict=True)):
        box = {"facecolor": "#ffffff", "edgecolor": color, "linewidth": 2.5, "boxstyle": "circle,pad=0.2"}
        axes.text(
            column, row, str(number), ha="center", va="center", fontsize=14, color="#111111", bbox=box
        )  # fmt: skip
    return drawings.drawing(figure, "The image with its pure pixels")
