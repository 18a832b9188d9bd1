"""The report of an unmixed hyperspectral image: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import BoolArray, FloatArray, IntArray
from nonneg.applications.images import data_address, picture_png
from nonneg.report import wording
from nonneg.report.curves import COLORS
from nonneg.report.hyperspectral_figures import marked_scene, spectrum_lines
from nonneg.report.rendering import drawing, render

N_MAPS = 60
"""Maximum number of maps shown."""
# Black does not show on a dark page.
PALETTE = tuple(color for color in COLORS if color != "#000000")
_LONGEST = 700
ESTIMATES = {
    "hysime": "endmembers by HySime",
    "virtual_dimensionality": "virtual dimensionality (NWHFC)",
    "eigenvalues": "eigenvalues above noise",
}


@dataclass(frozen=True)
class ScenePictures:
    """What the page draws."""

    preview: Any  # the image in color
    maps: FloatArray  # the abundances; NaN where there are no data
    residuals: FloatArray  # what the mixtures leave
    unexplained: BoolArray  # pixels of which they leave much
    spectra: FloatArray  # the endmembers
    names: Sequence[str]  # theirs
    pure_pixels: IntArray  # row and column of each
    wavelengths: FloatArray | None = None  # of all bands of the image, in nanometers
    known_spectra: FloatArray | None = None  # what each looks like in a library; NaN for none
    bands: BoolArray | None = None  # which bands of the image the spectra are in; None for all

    def in_all_bands(self, spectra: FloatArray) -> FloatArray:
        """Return spectra as they are drawn."""
        if self.bands is None:
            return spectra
        drawn = np.full((len(spectra), len(self.bands)), np.nan)
        drawn[:, self.bands] = spectra
        return drawn

    def in_range(self, entries: FloatArray) -> FloatArray:
        """Leave the bands beyond the first and the last one that count out of what is drawn."""
        if self.bands is None or self.wavelengths is None:
            return entries
        kept = self.wavelengths[self.bands]
        inside = (self.wavelengths >= kept.min()) & (self.wavelengths <= kept.max())
        return entries[..., inside]


def scene_sentence(record: Mapping[str, Any]) -> str:
    """Describe the result in one sentence."""
    result, library = record["result"], record["library"]
    k = result["n_endmembers"]
    subject = "1 endmember explains" if k == 1 else f"{wording.number(k)} endmembers explain"
    explained = wording.percent(max(result["explained"], 0.0))
    found = f"{subject} {explained} of the squared norm of the image"
    if library is not None:
        angle = wording.number(library["mean_angle"], digits=3)
        found += f"; they are {angle}° from {library['known_as']} on average"
    return f"{found}{_exceptions(record['data'])}."


def _exceptions(data: Mapping[str, Any]) -> str:
    """Name what the endmembers do not explain, and what was set aside."""
    text = ""
    left, aside = data["n_unexplained"], data["n_isolated"]
    if left:
        share = wording.percent(left / data["n_pixels"])
        text += f"; they do not explain {_pixels(left)} ({share}), hatched in the maps"
    if aside:
        text += f"; {_pixels(aside)} unlike all others {'was' if aside == 1 else 'were'} set aside"
    return text


def _pixels(count: int) -> str:
    return "1 pixel" if count == 1 else f"{wording.number(count)} pixels"


def build_scene_page(record: Mapping[str, Any], pictures: ScenePictures) -> str:
    """Write the report of an unmixed scene."""
    colors = [PALETTE[at % len(PALETTE)] for at in range(len(pictures.names))]
    step = max(1, -(-max(pictures.residuals.shape) // _LONGEST))
    scene = data_address(picture_png(pictures.preview[::step, ::step]))
    known, places = pictures.known_spectra, pictures.wavelengths
    # What is not explained is hatched, as are pixels without data: a map would not be true there.
    shown = np.where(pictures.unexplained[:, :, None], np.nan, pictures.maps)
    worst = float(np.nanmax(pictures.residuals)) if np.isfinite(pictures.residuals).any() else 0.0
    context = {
        "title": record["title"],
        "answer": scene_sentence(record),
        "outcome": _outcome(record),
        "tiles": _tiles(record),
        "scene": drawing(
            marked_scene(scene, pictures.residuals.shape, pictures.pure_pixels.tolist(), colors)
        ),
        "scene_text": _scene_text(record),
        "maps": [
            {
                "source": data_address(picture_png(shown[::step, ::step, at], 1.0)),
                "name": pictures.names[at],
                "label": label,
                "color": colors[at],
                "mean": wording.percent(record["endmembers"][at]["mean_abundance"]),
            }
            for at, label in enumerate(_labels(record, pictures.names)[:N_MAPS])
        ],
        "holes": record["data"]["n_left_out"] > 0,
        "unexplained": record["data"]["n_unexplained"] > 0,
        "left": {
            "source": data_address(picture_png(pictures.residuals[::step, ::step], worst)),
            "worst": wording.percent(worst),
        },
        "spectra": drawing(
            spectrum_lines(
                pictures.in_range(pictures.in_all_bands(pictures.spectra)),
                None if places is None else pictures.in_range(places),
                _labels(record, pictures.names),
                colors,
                known if known is None else pictures.in_range(pictures.in_all_bands(known)),
            )
        ),
        "with_known": known is not None,
        "pure": _pure(record),
        "rows": [_row(entry, colors[entry["endmember"]]) for entry in record["endmembers"]],
        "library": record["library"],
        "certificate": [wording.statement(entry) for entry in record["certificate"]],
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("hyperspectral.html", context)


def _labels(record: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    if record["library"] is None:
        return list(names)
    return [f"{at}: {name}" for at, name in enumerate(names)]


def _row(entry: Mapping[str, Any], color: str) -> dict[str, Any]:
    return {
        "endmember": entry["endmember"],
        "color": color,
        "place": f"row {entry['row']}, column {entry['column']}",
        "mean": wording.percent(entry["mean_abundance"]),
        "name": entry["name"],
        "nearest": entry["nearest"],
        "angle": None if entry["angle"] is None else f"{entry['angle']:.2f}°",
        "map_error": None if entry["map_error"] is None else wording.number(entry["map_error"], digits=3),
    }


def _outcome(record: Mapping[str, Any]) -> str:
    data, result = record["data"], record["result"]
    rows, columns, bands = data["shape"]
    found = "Pure pixels" if _pure(record) else "Endmembers"
    method = result["method"] if result["how"] is None else f"{result['method']} ({result['how']})"
    text = (
        f"{wording.number(rows)} x {wording.number(columns)} pixels with {wording.number(bands)} bands from "
        f"{data['source']}. {found} by {method}, abundances with the constraint "
        f"{result['constraint']}, in {wording.seconds(result['seconds'])}."
    )
    if data["bands_left_out"]:
        left = len(data["bands_left_out"])
        text += f" {wording.number(left)} of the bands, which the header flags as bad, were left out."
    if data["n_left_out"]:
        text += f" {wording.number(data['n_left_out'])} pixels have no data or were left out."
    if result["estimate"] is not None:
        text += f" The number of endmembers was estimated: {result['estimate']['reason']}."
    if data["n_clipped"]:
        text += f" {wording.number(data['n_clipped'])} entries below zero were set to zero."
    return text


def _pure(record: Mapping[str, Any]) -> bool:
    # The simplex of minimum volume has vertices that no pixel has to equal.
    result = record["result"]
    return result["method"] != "min-volume" and result["how"] != "minimum volume"


def _marked(record: Mapping[str, Any]) -> str:
    return "the pure pixels" if _pure(record) else "the purest pixels"


def _scene_text(record: Mapping[str, Any]) -> str:
    bands, places = record["data"]["preview_bands"], record["data"]["preview_wavelengths"]
    if places is not None:
        shown = ", ".join(f"{place:.0f} nm" for place in places)
        return f"Red, green and blue are {shown}. Rings mark {_marked(record)}."
    shown = ", ".join(str(band) for band in bands)
    return f"Red, green and blue are the bands {shown}. Rings mark {_marked(record)}."


def _tiles(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    result, library = record["result"], record["library"]
    tiles = [
        ("endmembers", wording.number(result["n_endmembers"])),
        ("relative error", wording.number(result["relative_error"])),
        ("pixels", wording.number(record["data"]["n_pixels"])),
        ("time", wording.seconds(result["seconds"])),
    ]
    if library is not None:
        tiles.insert(1, ("mean angle", f"{library['mean_angle']:.2f}°"))
        if library["map_error"] is not None:
            tiles.insert(2, ("map error (RMS)", wording.number(library["map_error"], digits=3)))
    return tiles


def _runs(numbers: Sequence[int]) -> str:
    """Write rising numbers as runs, such as 0-3, 7."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(f"{group[0]}-{group[-1]}" if len(group) > 1 else str(group[0]) for group in groups)


def _facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    data, result = record["data"], record["result"]
    about_data = [
        ("source", data["source"]),
        ("shape", " \N{MULTIPLICATION SIGN} ".join(wording.number(side) for side in data["shape"])),
        ("entries", data["dtype"]),
        ("pixels used", wording.number(data["n_pixels"])),
        ("bands used", wording.number(data["n_bands"])),
    ]
    if data["bands_left_out"]:
        about_data.append(("bands left out", _runs(data["bands_left_out"])))
    if data["scale"] != 1:
        about_data.append(("divided by", wording.number(data["scale"])))
    about_result = [
        (name.replace("_", " "), wording.number(result[name], digits=8))
        for name in ("method", "constraint", "relative_error", "duality_gap", "n_iter")
        if result[name] is not None
    ]
    if data["isolated_pixels"]:
        named = ", ".join(f"({row}, {column})" for row, column in data["isolated_pixels"])
        more = ", ..." if data["n_isolated"] > len(data["isolated_pixels"]) else ""
        about_result.append(("pixels set aside (row, column)", named + more))
    if result["estimate"] is not None:
        about_result += [
            (label, wording.number(result["estimate"][name])) for name, label in ESTIMATES.items()
        ]
    parameters = [(name, wording.number(value)) for name, value in record["parameters"].items()]
    return [("Data", about_data), ("Result", about_result), ("Parameters", parameters)]
