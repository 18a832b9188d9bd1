"""`nonneg transform MODEL FILE`: apply the model of an earlier run to new data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.cli.table_inputs import (
    add_data_arguments,
    add_h5ad_argument,
    add_memory_argument,
    write_h5ad,
)

FILES = ("W.npy", "W.csv", "documents.csv", "abundances.npy", "abundances.hdr", "abundances.img")
SAMPLES = {"TopicModel": ("document", "topic"), "Unmixing": ("pixel", "endmember")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="saved model, or a folder of results that contains model.npz",
    )
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="new data: a table as for `nonneg fit`, texts as for `nonneg topics` (also several "
        "files or folders), a cube as for `nonneg unmix`, or sounds as for `nonneg separate`",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="output folder (default: name of FILE + -weights, or -sources for sounds)",
    )  # fmt: skip
    data = parser.add_argument_group("data")
    add_data_arguments(data)
    add_memory_argument(data)
    data.add_argument(
        "--missing", choices=["error", "mask"],
        help="mask: ignore NaN and empty cells (default: as in the fit)",
    )  # fmt: skip
    texts = parser.add_argument_group("texts")
    texts.add_argument(
        "--text-column",
        metavar="NAME",
        help="column of a table, or key of JSON lines, that contains the texts",
    )
    texts.add_argument("--lines", action="store_true", help="treat every line of a text file as a document")
    image = parser.add_argument_group("hyperspectral image")
    image.add_argument("--mask", type=Path, metavar="FILE", help=".npy, True for pixels to use")
    image.add_argument("--no-data", type=float, metavar="V", help="value of pixels without data (may be nan)")
    image.add_argument(
        "--all-bands", action="store_true", help="also use the bands that an ENVI header flags as bad (bbl)"
    )
    image.add_argument("--maps", choices=["npy", "envi"], help="format of the abundance maps (default: npy)")
    sound = parser.add_argument_group("sound")
    sound.add_argument(
        "--group", action="append", type=arguments.named_counts, metavar="NAME=N,N,...",
        help="regroup the components of the model by hand, as for `nonneg separate`",
    )  # fmt: skip
    sound.add_argument("--format", choices=["wav", "flac"], help="format of the sources (default: wav)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--csv", action="store_true", help="also write the weights as .csv (always done for tables)"
    )
    add_h5ad_argument(output)
    arguments.add_device(output, "as in the fit")
    output.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: as in the fit)")
    output.add_argument("-q", "--quiet", action="store_true", help="do not show progress")


def run(options: argparse.Namespace) -> int:
    """Load, read, transform, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.cli.results import MODEL
    from nonneg.cli.transform_inputs import opened_model
    from nonneg.cli.transform_kinds import prepare, transformed
    from nonneg.exceptions import OutputError
    from nonneg.report.folder import check_output_folder

    with terminal.warnings_as_notes():
        saved = opened_model(options.model)
    what = "sources" if saved.kind == "sound" else "weights"
    folder = options.output or Path(f"{options.files[0].absolute().name.split('.')[0]}-{what}")
    check_output_folder(folder)
    if (folder / MODEL).exists():
        raise OutputError(
            f"{folder} contains {MODEL} and its results, which {what} of new data would "
            "replace. Choose another folder with -o."
        )
    with terminal.warnings_as_notes():
        if saved.kind == "sound":
            from nonneg.cli.transform_sounds import separate_new

            prepare(saved, options)
            terminal.say(separate_new(saved, options, folder))
            return 0
        found = transformed(saved, options)
    record, written = _write(folder, saved, found, csv=options.csv, maps=options.maps or "npy")
    if saved.kind == "table":
        written += write_h5ad(options, saved.model, found.weights, found.feature_names)
    terminal.say(_summary(record, folder, [path.name for path in written]))
    return 0


def _write(
    folder: Path, saved: Any, found: Any, *, csv: bool, maps: str
) -> tuple[dict[str, Any], list[Path]]:
    from nonneg._arrays import write_npy
    from nonneg.cli.results import write_factor, write_proportions, write_results

    record, W = _record(saved, found), found.weights

    def write_files(fresh: Path) -> None:
        if saved.kind == "cube":
            from nonneg.applications.hyperspectral import write_maps

            place = fresh / f"abundances.{'hdr' if maps == 'envi' else 'npy'}"
            write_maps(place, W, georeference=found.georeference)
        else:
            write_npy(fresh / "W.npy", W)
        if saved.class_name == "TopicModel":
            names = found.names or [f"row {at}" for at in range(len(W))]
            write_proportions(fresh / "documents.csv", W, names, saved.model.topic_names_)
        elif saved.kind == "table" and (csv or found.names is not None or found.is_table):
            components = [f"component_{at}" for at in range(W.shape[1])]
            write_factor(fresh / "W.csv", W, "sample", found.names, components)

    return record, write_results(folder, record, write_files, None, known=FILES)


def _record(saved: Any, found: Any) -> dict[str, Any]:
    from nonneg.report.records import run_record

    W = found.weights.reshape(-1, found.weights.shape[-1])
    if saved.kind == "cube":
        W = W[W[:, 0] == W[:, 0]]  # pixels without data are NaN
    return run_record(
        "transform",
        f"Weights of {found.source}",
        data={"source": found.source},
        result={
            "n_samples": len(W),
            "n_components": W.shape[1],
            "relative_error": found.relative_error,
            "seconds": found.seconds,
        },
        model={"source": str(saved.path), "class": saved.class_name},
    )


def _summary(record: dict[str, Any], folder: Path, written: Sequence[str]) -> str:
    result = record["result"]
    sample, component = SAMPLES.get(record["model"]["class"], ("sample", "component"))
    said = [
        f"{count} {word}{'s' * (count != 1)}"
        for count, word in ((result["n_samples"], sample), (result["n_components"], component))
    ]
    if result["relative_error"] is not None:
        said.append(f"relative error {result['relative_error']:.4g}")
    return f"{', '.join(said)}; written to {folder}: {', '.join(written)}"
