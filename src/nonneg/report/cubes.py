"""Record of an unmixed hyperspectral image: the image, the endmembers, the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.applications.hyperspectral import Cube, SpectralLibrary, rgb_preview
from nonneg.applications.hyperspectral.preview import preview_bands
from nonneg.io.cube import in_nanometers
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked

_N_MAPS = 60  # maximum number of maps shown
_N_NAMED = 10  # maximum number of isolated pixels that are named
_LONGEST = 420  # pixels along the long side of a picture
_COLUMNS = {
    "endmember": "endmember",
    "row": "row",
    "column": "column",
    "mean_abundance": ("mean abundance", words.percent),
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
    endmembers = words.entries_of(
        endmember=range(k),
        row=model.pure_pixels_[:, 0].tolist(),
        column=model.pure_pixels_[:, 1].tolist(),
        mean_abundance=np.nanmean(model.abundances_.reshape(-1, k), axis=0).tolist(),
        name=[None] * k if match is None else match.names,
        # NaN, which the table leaves out, where none is near.
        angle=[None] * k if match is None else np.where(match.chosen < 0, np.nan, match.angles).tolist(),
    )
    known = "" if match is None else "; dashed: the most similar known spectra, at the same brightness"
    colors, (rows, columns, bands) = drawings.colors(k), map(words.number, cube.shape)
    by, told = how if how and result["method"] == "auto" else result["method"], ""
    if result["estimates"]:
        told = f" The number of endmembers was estimated: {listed(result['estimates'])}."
    return Record(
        "unmix",
        f"Unmixing of {scene.title}",
        _answer(data, result),
        words.lead(f"{rows} x {columns} pixels with {bands} bands", data, by, result) + told,
        {name: (data | result)[name] for name in ("n_endmembers", "relative_error", "n_pixels", "seconds")},
        data,
        result,
        details={"endmembers": endmembers},
        table=words.rows_of(endmembers, _COLUMNS),
        sections=[
            ["The image", _photo(model, cube, colors, "pure" if result["pure"] else "purest")],
            [
                "The endmembers",
                _spectra(model, scene, match, colors, f"The spectra of the endmembers{known}."),
                block("table", colors=colors),
            ],
            ["The maps", *_maps(model, data, endmembers, colors)],
        ],
        **of_estimator(model),
    )


def _answer(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    k, unexplained, aside = result["n_endmembers"], data["n_unexplained"], data["n_isolated"]
    explained = words.percent(max(result["explained"], 0.0))
    told = f"{words.counted(k, 'endmember')} explain{'s' * (k == 1)} {explained} of the squared norm of the "
    told += "image"
    if result["mean_angle"] is not None:
        told += f"; they are {result['mean_angle']:.3g}° from known spectra on average"
    if unexplained:
        share = words.percent(unexplained / data["n_pixels"])
        told += f"; they do not explain {words.counted(unexplained, 'pixel')} ({share}), hatched in the maps"
    if aside:
        was = "was" if aside == 1 else "were"
        told += f"; {words.counted(aside, 'pixel')} unlike all others {was} set aside"
    return f"{told}."


def listed(estimates: Mapping[str, int]) -> str:
    """Return what the estimates of the number of endmembers say, in words."""
    return ", ".join(f"{name} {number}" for name, number in estimates.items())


def endmember_names(endmembers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the endmembers are called: by the spectra they match, or by number."""
    return [entry["name"] or f"endmember {entry['endmember']}" for entry in endmembers]


def _step(model: Any) -> int:
    return -(-max(model.residuals_.shape) // _LONGEST)


def _photo(model: Any, cube: Cube, colors: Sequence[str], which: str) -> dict[str, Any]:
    """Return three bands as a picture, with the pure pixels marked."""
    bands, step = preview_bands(cube.wavelengths, cube.shape[2], model.bands_), _step(model)
    places = None if cube.wavelengths is None else in_nanometers(cube.wavelengths)
    shown = [f"band {at}" if places is None else f"{places[at]:.0f} nm" for at in bands]
    at = 100 * (model.pure_pixels_ + 0.5) / np.array(model.residuals_.shape)
    return block(
        "photo",
        image=rgb_preview(cube, mask=model.mask_)[::step, ::step],
        marks=[(x, y, color) for (y, x), color in zip(at.tolist(), colors, strict=True)],
        caption=f"Red, green and blue are {', '.join(shown)}. Numbers mark the {which} pixels.",
    )


def _spectra(model: Any, scene: Scene, match: Any, colors: Sequence[str], caption: str) -> dict[str, Any]:
    """Return spectra as curves; bands that were left out are gaps."""
    wavelengths = scene.cube.wavelengths
    x = np.arange(len(model.bands_)) if wavelengths is None else in_nanometers(wavelengths)
    order = np.argsort(x, kind="stable")
    library = None if match is None else scene.library.at(model.wavelengths_, model.bands_)  # type: ignore[union-attr]

    def drawn(spectrum: Any, color: str, dashed: bool) -> tuple[Any, str, bool]:
        whole = np.full(len(x), np.nan)
        whole[model.bands_] = spectrum
        return whole[order], color, dashed

    curves = []
    for at, (spectrum, color) in enumerate(zip(model.endmembers_, colors, strict=True)):
        curves.append(drawn(spectrum, color, False))
        if library is not None and match.chosen[at] >= 0:
            known = library[match.chosen[at]]
            brightness = float(known @ spectrum) / max(float(known @ known), 1e-300)
            curves.append(drawn(brightness * known, color, True))
    names = ("band" if wavelengths is None else "wavelength, nm", "value")
    return block("lines", x=x[order], curves=curves, names=names, caption=caption)


def _maps(
    model: Any, data: Mapping[str, Any], endmembers: Sequence[Mapping[str, Any]], colors: Sequence[str]
) -> list[Any]:
    """Return the pictures of abundances and of the residual."""
    hatched = ["pixels without data"] * bool(data["n_left_out"])
    hatched += ["pixels that the endmembers do not explain"] * bool(data["n_unexplained"])
    told = "Abundance of each endmember in every pixel; the strongest shade is an abundance of one"
    told += f"; {' and '.join(hatched)} are hatched." if hatched else "."
    # What is not explained is hatched, as are pixels without data: a map would not be true there.
    step = _step(model)
    maps = np.where(model.unexplained_[:, :, None], np.nan, model.abundances_)[::step, ::step]
    worst = float(np.nanmax(model.residuals_)) if np.isfinite(model.residuals_).any() else 0.0
    residual = f"residual, relative to the pixel; at most {words.percent(worst)}"
    pictures: list[Any] = [
        (drawings.shades(maps[:, :, at], 1.0), f"{name}, {words.percent(entry['mean_abundance'])}", color)
        for at, (name, entry, color) in enumerate(
            zip(endmember_names(endmembers), endmembers, colors, strict=True)
        )
    ][:_N_MAPS]  # fmt: skip
    pictures.append((drawings.shades(model.residuals_[::step, ::step], worst), residual, None))
    return [told, block("pictures", pictures=pictures, kind="large holes" if hatched else "large")]
