"""`nonneg transform MODEL FILE`: apply the model of an earlier run to new data."""

from __future__ import annotations

import argparse
from pathlib import Path

from nonneg.cli import terminal
from nonneg.cli.fit import add_data_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a saved model, or the folder of results that holds model.npz",
    )
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="what the model takes: a table as for `nonneg fit`, texts as for `nonneg topics` (then several "
        "files or folders too), or a cube as for `nonneg unmix`",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="folder for the weights (default: FILE's name + -weights)",
    )  # fmt: skip
    data = parser.add_argument_group("data")
    add_data_arguments(data)
    data.add_argument(
        "--missing", choices=["error", "mask"],
        help="mask: leave NaN and empty cells out (default: as in the fit)",
    )  # fmt: skip
    texts = parser.add_argument_group("texts")
    texts.add_argument(
        "--text-column", metavar="NAME", help="column of a table, or key of JSON lines, with texts"
    )
    texts.add_argument("--lines", action="store_true", help="every line of a text file is a document")
    scene = parser.add_argument_group("scene")
    scene.add_argument("--mask", type=Path, metavar="FILE", help=".npy, True for pixels that count")
    scene.add_argument("--no-data", type=float, metavar="V", help="value of pixels without data (also nan)")
    scene.add_argument(
        "--all-bands", action="store_true", help="keep the bands that an ENVI header flags as bad (bbl)"
    )
    scene.add_argument("--maps", choices=["npy", "envi"], help="how maps are written (default: npy)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--csv", action="store_true", help="write the weights as .csv too (always done for tables)"
    )
    output.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: as in the fit)")
    output.add_argument("--quiet", action="store_true", help="show no progress")


def run(options: argparse.Namespace) -> int:
    """Load, read, transform, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.cli.transform_inputs import opened_model
    from nonneg.cli.transform_kinds import transformed
    from nonneg.cli.transform_results import check_weights_folder, summary, write_weights

    folder = options.output or Path(f"{options.files[0].absolute().name.split('.')[0]}-weights")
    check_weights_folder(folder)
    with terminal.warnings_as_notes():
        saved = opened_model(options.model)
        found = transformed(saved, options)
    record, written = write_weights(folder, saved, found, csv=options.csv, maps=options.maps or "npy")
    terminal.say(summary(record, folder, written))
    return 0
