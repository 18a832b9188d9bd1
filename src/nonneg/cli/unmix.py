"""`nonneg unmix CUBE`: the endmembers of a hyperspectral image, and abundance maps."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal

MAPS, SPECTRA, RESIDUALS, MASK = "abundances", "endmembers.csv", "residuals.npy", "mask.npy"
N_NAMED = 10
"""Maximum number of isolated pixels that are named in the record."""
SCENES = ("samson",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "cube",
        nargs="?",
        metavar="CUBE",
        help=".npy, .npz, .mat or ENVI (.hdr), rows x columns x bands; or the name of a real image, which is "
        f"downloaded if necessary: {', '.join(SCENES)}",
    )
    parser.add_argument("--example", action="store_true", help="use a generated image")
    parser.add_argument(
        "-k", "--endmembers", type=arguments.components, default=None, metavar="K",
        help="number of endmembers, or 'auto' to estimate it (default: auto; known for the named images)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="output folder (default: name of CUBE + -unmixed)",
    )  # fmt: skip
    _add_search_arguments(parser.add_argument_group("search"))
    _add_image_arguments(parser.add_argument_group("image"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--maps", choices=["npy", "envi"], default="npy", help="format of the abundance maps (default: npy)"
    )
    output.add_argument("-q", "--quiet", action="store_true", help="do not show progress")


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--method", metavar="NAME",
        help="auto (default), smoothed-spa, smoothed-vca, pp-spa, snpa, spa, translated-spa, lifted-spa, "
        "vca, fast-anchor, preconditioned-spa, xray, merit, fast-gradient, css-nmf or min-volume",
    )  # fmt: skip
    group.add_argument(
        "--constraint", metavar="NAME",
        help="on the abundances of a pixel: normalized (default), sum-to-one (fully constrained least "
        "squares), at-most-one or nonnegative",
    )  # fmt: skip
    group.add_argument(
        "--normalize",
        choices=["l1", "l2"],
        help="divide every spectrum by its norm before the search (default: l1 for methods that average)",
    )
    group.add_argument(
        "--smooth", type=arguments.count, metavar="N",
        help="search among averages of N x N pixels, N odd (default: pixels and 3 x 3)",
    )  # fmt: skip
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")


def _add_image_arguments(group: Any) -> None:
    group.add_argument("--variable", metavar="NAME", help="which array of a .npz or .mat file to read")
    group.add_argument(
        "--wavelengths", type=Path, metavar="FILE",
        help="wavelengths of all bands, in nanometers or micrometers: .npy, or one per line",
    )  # fmt: skip
    group.add_argument(
        "--all-bands", action="store_true",
        help="also use the bands that an ENVI header flags as bad (bbl)",
    )  # fmt: skip
    group.add_argument("--mask", type=Path, metavar="FILE", help=".npy, True for pixels to use")
    group.add_argument("--no-data", type=float, metavar="V", help="value of pixels without data (may be nan)")
    group.add_argument(
        "--negative-tol", type=float, metavar="S",
        help="set negative entries to zero down to this fraction of the largest entry (default: 0.05)",
    )  # fmt: skip
    group.add_argument(
        "--library", type=Path, metavar="FILE",
        help="spectral library: .csv (wavelength, then one column per material), .npz or an ENVI library",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Read, unmix, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import Unmixing
    from nonneg.cli.unmix_inputs import opened_scene
    from nonneg.report.folder import check_output_folder

    name = "example" if options.cube is None else Path(options.cube).name.split(".")[0]
    folder = options.output or Path(f"{name}-unmixed")
    check_output_folder(folder)
    with terminal.warnings_as_notes():
        scene = opened_scene(options, SCENES)
        rows, columns, bands = scene.cube.shape
        if not options.quiet:
            terminal.note(f"{scene.title}: {rows} x {columns} pixels, {bands} bands")
        model = Unmixing(scene.n_endmembers or "auto", **_parameters(options))
        started = time.perf_counter()
        model.fit(scene.cube, mask=scene.mask)
        seconds = time.perf_counter() - started
    estimate = model.n_endmembers_estimate_
    if estimate is not None and not options.quiet:
        terminal.note(f"-k {estimate.recommended}: {estimate.reason}")
    _write(folder, model, scene, seconds, maps=options.maps)
    return 0


def _write(folder: Path, model: Any, scene: Any, seconds: float, *, maps: str) -> None:
    from nonneg._arrays import write_npy
    from nonneg.applications.hyperspectral import write_maps
    from nonneg.cli.results import say_results, write_results
    from nonneg.report.hyperspectral_page import build_scene_page, scene_sentence

    match, names = _matched(model, scene)
    record = _record(model, scene, match, names, seconds)

    def write_files(fresh: Path) -> None:
        place = fresh / f"{MAPS}.{'hdr' if maps == 'envi' else 'npy'}"
        write_maps(place, model.abundances_, names, georeference=scene.cube.georeference)
        write_npy(fresh / RESIDUALS, model.residuals_)
        if not model.mask_.all():
            write_npy(fresh / MASK, model.mask_)
        _write_spectra(fresh / SPECTRA, model, names)

    written = write_results(
        folder,
        record,
        write_files,
        lambda: build_scene_page(record, _pictures(model, scene, match, names)),
        known=(f"{MAPS}.npy", f"{MAPS}.hdr", f"{MAPS}.img", RESIDUALS, MASK, SPECTRA),
        model=model,
    )
    say_results(scene_sentence(record), _table(record), written)


def _matched(model: Any, scene: Any) -> tuple[Any, list[str]]:
    """Return the match with the library, if there is one, and what the endmembers are called."""
    match = None if scene.library is None else model.match(scene.library)
    names = [f"endmember {at}" for at in range(model.n_endmembers_)]
    if match is not None:
        names = [known or name for known, name in zip(match.names, names, strict=True)]
    return match, names


def scene_page(model: Any, scene: Any, seconds: float) -> str:
    """Write the report of a fitted model."""
    from nonneg.report.hyperspectral_page import build_scene_page

    match, names = _matched(model, scene)
    record = _record(model, scene, match, names, seconds)
    return build_scene_page(record, _pictures(model, scene, match, names))


def _table(record: dict[str, Any]) -> str:
    from nonneg.report.tables import markdown_table

    headings = {
        "endmember": "endmember",
        "row": "row",
        "column": "column",
        "mean_abundance": "mean abundance",
    }
    if record["library"] is not None:
        headings |= {"name": "best match", "angle": "angle (degrees)"}
        if record["library"]["map_error"] is not None:
            headings["map_error"] = "map error (RMS)"
    return markdown_table(record["endmembers"], headings).rstrip("\n")


def _write_spectra(path: Path, model: Any, names: list[str]) -> None:
    # The format in which `--library` reads spectra.
    from nonneg.cli.results import write_csv
    from nonneg.io.wavelengths import in_nanometers

    places = model.wavelengths_
    first = model.bands_.nonzero()[0] if places is None else in_nanometers(places)
    heading = ["band" if places is None else "wavelength", *names]
    columns = zip(first.tolist(), model.endmembers_.T.tolist(), strict=True)
    write_csv(path, heading, ([place, *row] for place, row in columns))


def _all_wavelengths(scene: Any) -> Any:
    from nonneg.io.wavelengths import in_nanometers

    return None if scene.cube.wavelengths is None else in_nanometers(scene.cube.wavelengths)


def _pictures(model: Any, scene: Any, match: Any, names: list[str]) -> Any:
    import numpy as np

    from nonneg.applications.hyperspectral import rgb_preview
    from nonneg.report.hyperspectral_page import ScenePictures

    known = None
    if match is not None:
        at_bands = scene.library.at(model.wavelengths_, model.endmembers_.shape[1])
        known = np.array(
            [at_bands[at] if at >= 0 else np.full(at_bands.shape[1], np.nan) for at in match.chosen]
        )
    return ScenePictures(
        preview=rgb_preview(scene.cube, mask=model.mask_),
        maps=model.abundances_,
        residuals=model.residuals_,
        unexplained=model.unexplained_,
        spectra=model.endmembers_,
        names=names,
        pure_pixels=model.pure_pixels_,
        wavelengths=_all_wavelengths(scene),
        known_spectra=known,
        bands=model.bands_,
    )


def _map_errors(model: Any, scene: Any, match: Any) -> list[float | None]:
    import numpy as np

    if scene.truth_maps is None or match is None:
        return [None] * int(model.n_endmembers_)
    errors: list[float | None] = []
    for own, at in enumerate(match.chosen):
        apart = model.abundances_[:, :, own] - scene.truth_maps[:, :, at]
        errors.append(None if at < 0 else float(np.sqrt(np.nanmean(apart**2))))
    return errors


def _record(model: Any, scene: Any, match: Any, names: list[str], seconds: float) -> dict[str, Any]:
    import numpy as np

    from nonneg.applications.hyperspectral.preview import preview_bands
    from nonneg.report.records import run_record, stop_facts

    result, cube, errors = model.result_, scene.cube, _map_errors(model, scene, match)
    means = np.nanmean(model.abundances_.reshape(-1, model.n_endmembers_), axis=0)
    shown = preview_bands(cube.wavelengths, cube.shape[2], model.bands_)
    places = _all_wavelengths(scene)
    library = None
    if match is not None:
        present = [error for error in errors if error is not None]
        library = {
            "n_spectra": len(scene.library.names),
            "known_as": scene.known_as,
            "mean_angle": np.nanmean(match.angles),
            "map_error": np.sqrt(np.mean(np.square(present))) if present else None,
        }
    n_pixels = int(model.mask_.sum())
    return run_record(
        "unmix",
        f"Unmixing of {scene.title}",
        data={
            "source": Path(cube.source).name or cube.source,
            "shape": cube.shape,
            "dtype": str(cube.values.dtype),
            "n_pixels": n_pixels,
            "n_left_out": model.mask_.size - n_pixels,
            "n_clipped": model.n_clipped_,
            "n_isolated": len(model.isolated_pixels_),
            "isolated_pixels": model.isolated_pixels_[:N_NAMED],
            "n_unexplained": model.unexplained_.sum(),
            "n_bands": model.bands_.sum(),
            "bands_left_out": np.flatnonzero(~model.bands_),
            "scale": cube.scale,
            "preview_bands": shown,
            "preview_wavelengths": None if places is None else places[list(shown)],
        },
        estimator=model,
        result={
            "method": result.method,
            "how": result.facts.get("how"),
            "n_endmembers": model.n_endmembers_,
            "constraint": model.constraint,
            "relative_error": model.relative_error_,
            "explained": 1.0 - model.relative_error_**2,
            "duality_gap": result.gap,
            "estimate": None
            if model.n_endmembers_estimate_ is None
            else model.n_endmembers_estimate_.as_dict(),
            "n_iter": result.n_iter,
            "stop_reason": stop_facts(result),
            "seconds": seconds,
        },
        endmembers=[
            {
                "endmember": at,
                "row": model.pure_pixels_[at, 0],
                "column": model.pure_pixels_[at, 1],
                "mean_abundance": means[at],
                "name": names[at] if match is not None and match.names[at] else None,
                "angle": None if match is None or match.chosen[at] < 0 else match.angles[at],
                "nearest": None if match is None else match.nearest[at],
                "map_error": errors[at],
            }
            for at in range(model.n_endmembers_)
        ],
        library=library,
    )


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `Unmixing`."""
    said = {
        "method": options.method,
        "constraint": options.constraint,
        "normalize": options.normalize,
        "smooth": options.smooth,
        "negative_tol": options.negative_tol,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "verbose": None if options.quiet else 1,
    }
    return {name: value for name, value in said.items() if value is not None}
