"""`nonneg unmix CUBE`: the pure spectra of a hyperspectral scene, and where they are."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal

SCENES = ("samson", "moffett", "indian-pines", "pavia-crop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "cube",
        nargs="?",
        metavar="CUBE",
        help=".npy, .npz, .mat or ENVI (.hdr), rows x columns x bands; or a real scene by its name, which is "
        f"fetched where it is not at hand: {', '.join(SCENES)}",
    )
    parser.add_argument("--example", action="store_true", help="a generated scene, in place of a file")
    parser.add_argument(
        "-k", "--endmembers", type=arguments.components, default=None, metavar="K",
        help="how many pure spectra, or 'auto' with --method merit (default: those of a known scene)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="folder for the results (default: CUBE's name + -unmixed)",
    )  # fmt: skip
    _add_search_arguments(parser.add_argument_group("search"))
    _add_scene_arguments(parser.add_argument_group("scene"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--maps", choices=["npy", "envi"], default="npy", help="how maps are written (default: npy)"
    )
    output.add_argument("--quiet", action="store_true", help="show no progress")


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--method", metavar="NAME",
        help="snpa (default), spa, vca, fast-anchor, preconditioned-spa, xray, merit or fast-gradient",
    )  # fmt: skip
    group.add_argument(
        "--constraint", metavar="NAME",
        help="what abundances of a pixel do: shares (default), sum-to-one, at-most-one or nonnegative",
    )  # fmt: skip
    group.add_argument(
        "--normalize", choices=["l1"], help="divide every spectrum by its sum before the search"
    )
    group.add_argument(
        "--reduce", type=arguments.count, metavar="M",
        help="search in so many leading directions, reading the cube in blocks",
    )  # fmt: skip
    group.add_argument("--seed", type=int, metavar="N", default=0, help="of the random numbers (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def _add_scene_arguments(group: Any) -> None:
    group.add_argument("--variable", metavar="NAME", help="which array of a .npz or .mat file")
    group.add_argument(
        "--wavelengths", type=Path, metavar="FILE",
        help="of all bands, in nanometres or micrometres: .npy, or one a line",
    )  # fmt: skip
    group.add_argument(
        "--all-bands", action="store_true",
        help="keep the bands that an ENVI header flags as bad (bbl), which are left out otherwise",
    )  # fmt: skip
    group.add_argument("--mask", type=Path, metavar="FILE", help=".npy, True for pixels that count")
    group.add_argument("--no-data", type=float, metavar="V", help="value of pixels without data (also nan)")
    group.add_argument(
        "--negative-tol", type=float, metavar="S",
        help="set entries below zero to zero down to this share of the largest one (default: 0.05)",
    )  # fmt: skip
    group.add_argument(
        "--library", type=Path, metavar="FILE",
        help="known spectra: .csv (wavelength, then one column a material), .npz or an ENVI library",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Read, unmix, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import Unmixing
    from nonneg.cli.unmix_results import endmember_table, write_scene_results
    from nonneg.cli.unmix_scenes import opened_scene
    from nonneg.report.folder import check_output_folder
    from nonneg.report.scene_page import scene_sentence

    name = "example" if options.cube is None else Path(options.cube).name.split(".")[0]
    folder = options.output or Path(f"{name}-unmixed")
    check_output_folder(folder)
    with terminal.warnings_as_notes():
        scene = opened_scene(options, SCENES)
        rows, columns, bands = scene.cube.shape
        if not options.quiet:
            terminal.note(f"{scene.title}: {rows} x {columns} pixels, {bands} bands")
        model = Unmixing(scene.n_endmembers, **_parameters(options))
        started = time.perf_counter()
        model.fit(scene.cube, mask=scene.mask)
        seconds = time.perf_counter() - started
    record, written = write_scene_results(folder, model, scene, seconds=seconds, maps=options.maps)
    terminal.say(scene_sentence(record))
    terminal.say(endmember_table(record))
    for path in written:
        terminal.say(str(path))
    return 0


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; all else is left to the defaults of `Unmixing`."""
    said = {
        "method": options.method,
        "constraint": options.constraint,
        "normalize": options.normalize,
        "reduce": options.reduce,
        "negative_tol": options.negative_tol,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "verbose": None if options.quiet else 1,
    }
    return {name: value for name, value in said.items() if value is not None}
