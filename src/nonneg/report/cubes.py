"""Record of an unmixed hyperspectral image: the image, the endmembers, the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
_ENDMEMBERS = (
    "Spectra of the endmembers; dashed, where there is a library, the most similar known spectra at the same "
    "brightness, whose angle is in degrees."
)
_MAPS = (
    "Abundance of each endmember in every pixel; the strongest shade is an abundance of one. Pixels without "
    "data or that the endmembers do not explain are hatched."
)


def describe(
    model: Any, cube: Cube, title: str, seconds: float, library: SpectralLibrary | None = None
) -> Record:
    """Return the record of an unmixed image; a library has known spectra to compare with."""
    k, match = model.n_endmembers_, None if library is None else model.match(library)
    data = {
        "source": Path(cube.source).name or cube.source,
        "shape": cube.shape,
        "n_pixels": int(model.mask_.sum()),
        "n_left_out": int((~model.mask_).sum()),
        "n_isolated": len(model.isolated_pixels_),
        "isolated_pixels": model.isolated_pixels_[:_N_NAMED],
        "n_unexplained": int(model.unexplained_.sum()),
        "n_bands": int(model.bands_.sum()),
        "bands_left_out": np.flatnonzero(~model.bands_),
    }
    result = {
        **picked(model, "n_endmembers_", "constraint", "relative_error_"),
        "method": model.result_.method,
        "how": model.result_.details.get("how"),
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
    colors, table = drawings.colors(k), words.rows_of(endmembers, *endmembers[0])
    estimates = ", ".join(f"{name} {number}" for name, number in (result["estimates"] or {}).items())
    estimated = f"The number of endmembers was estimated: {estimates}." if estimates else None
    notes = [
        words.explained(k, "endmember", model.relative_error_, "the image").rstrip("."),
        match and f"they are {result['mean_angle']:.3g}° from known spectra on average",
        data["n_unexplained"] and f"they do not explain {words.counted(data['n_unexplained'], 'pixel')}",
        data["n_isolated"] and f"set aside: {words.counted(data['n_isolated'], 'pixel')} unlike all others",
    ]
    return Record(
        "unmix",
        f"Unmixing of {title}",
        f"{'; '.join(filter(None, notes))}.",
        ["n_endmembers", "relative_error", "n_pixels", "seconds"],
        data,
        result,
        details={"endmembers": endmembers},
        remarks=[estimated],
        table=table,
        sections=[
            ["The image", _photo(model, cube, colors)],
            [
                "The endmembers",
                _ENDMEMBERS,
                estimated,
                _spectra(model, cube, match, library, colors),
                block("table", rows=table, colors=colors),
            ],
            ["The maps", _MAPS, _maps(model, endmember_names(endmembers), colors)],
        ],
        **of_estimator(model),
    )


def endmember_names(endmembers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the endmembers are called: by the spectra they match, or by number."""
    return [entry["name"] or f"endmember {entry['endmember']}" for entry in endmembers]


def _reduced(image: Any) -> Any:
    """Return an image whose long side fits on the page, by leaving out rows and columns."""
    step = -(-max(image.shape[:2]) // _LONGEST)
    return image[::step, ::step]


def _photo(model: Any, cube: Cube, colors: Sequence[str]) -> dict[str, Any]:
    """Return three bands as a picture, with the purest pixels in the colors of their endmembers."""
    bands = preview_bands(cube.wavelengths, cube.shape[2], model.bands_)
    places = None if cube.wavelengths is None else in_nanometers(cube.wavelengths)
    shown = ", ".join(f"band {at}" if places is None else f"{places[at]:.0f} nm" for at in bands)
    image = _reduced(rgb_preview(cube, mask=model.mask_)).copy()
    size = max(image.shape) // 100
    for at, color in zip(model.pure_pixels_ * image.shape[:2] // model.mask_.shape, colors, strict=True):
        row, column = np.maximum(at - size, 0)
        image[row : at[0] + size + 1, column : at[1] + size + 1] = list(bytes.fromhex(color[1:]))
    caption = f"Red, green and blue are {shown}. Squares in the colors of the endmembers: the purest pixels."
    return block("pictures", pictures=[(image, caption, None)], kind="photo")


def _spectra(model: Any, cube: Cube, match: Any, library: Any, colors: Sequence[str]) -> dict[str, Any]:
    """Return spectra as curves, then the known ones; bands that were left out are gaps."""
    k, n_bands, wavelengths = len(colors), len(model.bands_), cube.wavelengths
    curves = np.full((2 * k, n_bands), np.nan)
    curves[:k, model.bands_] = model.endmembers_
    if match is not None:
        spectra = library.at(model.wavelengths_, model.bands_)[match.chosen]
        brightness = np.sum(spectra * model.endmembers_, axis=1) / np.maximum(
            np.sum(spectra**2, axis=1), 1e-300
        )
        curves[k:, model.bands_] = np.where(match.chosen < 0, np.nan, brightness)[:, None] * spectra
    x = np.arange(n_bands) if wavelengths is None else in_nanometers(wavelengths)
    order, name = np.argsort(x, kind="stable"), "band" if wavelengths is None else "wavelength, nm"
    return block("lines", x=x[order], curves=curves[:, order], colors=colors, names=(name, "value"))


def _maps(model: Any, names: Sequence[str], colors: Sequence[str]) -> dict[str, Any]:
    """Return the pictures of abundances and of the residual."""
    # A map would not be true where the endmembers do not explain a pixel.
    maps = _reduced(np.where(model.unexplained_[:, :, None], np.nan, model.abundances_))
    residuals = _reduced(model.residuals_)
    worst = float(np.nanmax(residuals, initial=0.0))
    shown = [drawings.shades(maps[:, :, at], 1.0) for at in range(min(len(names), _N_MAPS))]
    caption = f"residual, relative to the pixel; the largest is {words.percent(worst)}"
    pictures = [*zip(shown, names, colors, strict=False), (drawings.shades(residuals, worst), caption, None)]
    return block("pictures", pictures=pictures, kind="large")
