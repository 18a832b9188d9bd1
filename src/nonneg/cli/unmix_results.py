"""The files of an unmixed scene."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral import LibraryMatch, rgb_preview, write_maps
from nonneg.applications.hyperspectral.preview import preview_bands
from nonneg.cli.result_files import MODEL, REPORT, RESULT, versions, write_answer
from nonneg.cli.unmix_scenes import Scene
from nonneg.io.wavelengths import in_nanometres
from nonneg.report.folder import replaced_folder
from nonneg.report.records import plain
from nonneg.report.scene_page import ScenePictures, build_scene_page
from nonneg.report.tables import markdown_table

MAPS, SPECTRA = "abundances", "endmembers.csv"
FILES = frozenset(
    {f"{MAPS}.npy", f"{MAPS}.hdr", f"{MAPS}.img", "residuals.npy", "mask.npy", SPECTRA, RESULT, MODEL, REPORT}
)
"""All names an unmixing may write."""


def write_scene_results(
    folder: Path, model: Any, scene: Scene, *, seconds: float, maps: str
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files of an unmixed scene at once, or none."""
    match = None if scene.library is None else model.match(scene.library)
    names = _names(model.n_endmembers_, match)
    record = _record(model, scene, match, names, seconds)
    with replaced_folder(folder, FILES) as fresh:
        write_maps(
            fresh / f"{MAPS}.{'hdr' if maps == 'envi' else 'npy'}",
            model.abundances_,
            names,
            georeference=scene.cube.georeference,
        )
        np.save(fresh / "residuals.npy", model.residuals_, allow_pickle=False)
        if not model.mask_.all():
            np.save(fresh / "mask.npy", model.mask_, allow_pickle=False)
        _write_spectra(fresh / SPECTRA, model, names)
        written = write_answer(
            folder,
            fresh,
            record,
            lambda: build_scene_page(record, _pictures(model, scene, match, names)),
            model=model,
        )
    return record, written


def endmember_table(record: dict[str, Any]) -> str:
    """Lay the endmembers out as a table for the terminal."""
    headings = {
        "endmember": "endmember",
        "row": "row",
        "column": "column",
        "mean_abundance": "mean abundance",
    }
    if record["library"] is not None:
        headings |= {"name": "looks like", "angle": "angle, degrees"}
        if record["library"]["map_error"] is not None:
            headings["map_error"] = "map error (RMS)"
    return markdown_table(record["endmembers"], headings).rstrip("\n")


def _names(count: int, match: LibraryMatch | None) -> list[str]:
    if match is None:
        return [f"endmember {at}" for at in range(count)]
    return [name or f"endmember {at}" for at, name in enumerate(match.names)]


def _write_spectra(path: Path, model: Any, names: list[str]) -> None:
    # A library of spectra in the form in which one is read.
    places = model.wavelengths_
    first = np.flatnonzero(model.bands_) if places is None else in_nanometres(places)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["band" if places is None else "wavelength", *names])
        writer.writerows(
            [place, *row] for place, row in zip(first.tolist(), model.endmembers_.T.tolist(), strict=True)
        )


def _all_wavelengths(scene: Scene) -> FloatArray | None:
    return None if scene.cube.wavelengths is None else in_nanometres(scene.cube.wavelengths)


def _pictures(model: Any, scene: Scene, match: LibraryMatch | None, names: list[str]) -> ScenePictures:
    known = None
    if match is not None and scene.library is not None:
        at_bands = scene.library.at(model.wavelengths_, model.endmembers_.shape[1])
        known = np.array(
            [at_bands[at] if at >= 0 else np.full(at_bands.shape[1], np.nan) for at in match.chosen]
        )
    return ScenePictures(
        preview=rgb_preview(scene.cube, mask=model.mask_),
        maps=model.abundances_,
        residuals=model.residuals_,
        spectra=model.endmembers_,
        names=names,
        pure_pixels=model.pure_pixels_,
        wavelengths=_all_wavelengths(scene),
        known_spectra=known,
        bands=model.bands_,
    )


def _map_errors(model: Any, scene: Scene, match: LibraryMatch | None) -> list[float | None]:
    if scene.truth_maps is None or match is None:
        return [None] * model.n_endmembers_
    return [
        None if at < 0 else float(np.sqrt(np.nanmean((model.abundances_[:, :, own] - scene.truth_maps[:, :,
        at]) ** 2))) for own, at in enumerate(match.chosen)
    ]  # fmt: skip


def _record(
    model: Any, scene: Scene, match: LibraryMatch | None, names: list[str], seconds: float
) -> dict[str, Any]:
    result, errors = model.result_, _map_errors(model, scene, match)
    means = np.nanmean(model.abundances_.reshape(-1, model.n_endmembers_), axis=0)
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
        for at in range(model.n_endmembers_)
    ]
    rows, columns, bands = scene.cube.shape
    shown = preview_bands(scene.cube.wavelengths, bands, model.bands_)
    places = _all_wavelengths(scene)
    present = [error for error in errors if error is not None]
    library = None
    if match is not None and scene.library is not None:
        library = {
            "n_spectra": len(scene.library.names),
            "known_as": scene.known_as,
            "mean_angle": float(np.nanmean(match.angles)),
            "map_error": float(np.sqrt(np.mean(np.square(present)))) if present else None,
        }
    record = {
        "format": 1,
        "title": f"Unmixing of {scene.title}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "source": Path(scene.cube.source).name or scene.cube.source,
            "shape": (rows, columns, bands),
            "dtype": str(scene.cube.values.dtype),
            "n_pixels": int(model.mask_.sum()),
            "n_left_out": int(rows * columns - model.mask_.sum()),
            "n_clipped": int(model.n_clipped_),
            "n_bands": int(model.bands_.sum()),
            "bands_left_out": np.flatnonzero(~model.bands_),
            "scale": scene.cube.scale,
            "preview_bands": shown,
            "preview_wavelengths": None if places is None else places[list(shown)],
        },
        "parameters": model.get_params(),
        "endmembers": endmembers,
        "library": library,
        "result": {
            "method": result.method,
            "n_endmembers": model.n_endmembers_,
            "constraint": model.constraint,
            "relative_error": model.relative_error_,
            "explained": 1.0 - model.relative_error_**2,
            "duality_gap": result.gap,
            "n_iter": result.n_iter,
            "stop_reason": {"name": result.stop_reason.name.lower(), "sentence": result.stop_sentence},
            "seconds": seconds,
        },
        "certificate": [statement.as_dict() for statement in model.certificate_],
        "versions": versions(),
    }
    return dict(plain(record))
