"""The files of a transform."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.cli.result_files import MODEL, RESULT, versions, write_factor, write_memberships
from nonneg.cli.transform_inputs import SavedModel
from nonneg.cli.transform_kinds import Transformed
from nonneg.exceptions import OutputError
from nonneg.report.folder import check_output_folder, replaced_folder
from nonneg.report.records import as_json, plain

FILES = frozenset(
    {"W.npy", "W.csv", "documents.csv", "abundances.npy", "abundances.hdr", "abundances.img", RESULT}
)
"""All names a transform may write."""

_SAMPLES = {"TopicModel": ("document", "topic"), "Unmixing": ("pixel", "endmember")}


def check_weights_folder(folder: Path) -> None:
    """Make sure that weights can be written, and that nothing of a fit is replaced."""
    check_output_folder(folder)
    if (folder / MODEL).exists():
        raise OutputError(
            f"{folder} holds {MODEL} and the results that belong to it, which weights of new data would "
            "replace. Choose another folder with -o."
        )


def write_weights(
    folder: Path, saved: SavedModel, found: Transformed, *, csv: bool, maps: str
) -> tuple[dict[str, Any], list[str]]:
    """Write all files of a transform at once, or none."""
    record, W = _record(saved, found), found.weights
    with replaced_folder(folder, FILES) as fresh:
        if saved.kind == "cube":
            from nonneg.applications.hyperspectral import write_maps

            place = fresh / f"abundances.{'hdr' if maps == 'envi' else 'npy'}"
            write_maps(place, W, georeference=found.georeference)
        else:
            np.save(fresh / "W.npy", W, allow_pickle=False)
        if saved.class_name == "TopicModel":
            names = found.names or [f"row {at}" for at in range(len(W))]
            write_memberships(fresh / "documents.csv", W, names)
        elif saved.kind == "table" and (csv or found.names is not None or found.is_table):
            components = [f"component_{at}" for at in range(W.shape[1])]
            write_factor(fresh / "W.csv", W, "sample", found.names, components)
        (fresh / RESULT).write_text(as_json(record, indent=1) + "\n", encoding="utf-8")
        written = sorted((entry.name for entry in fresh.iterdir()), key=lambda name: (name == RESULT, name))
    return record, written


def summary(record: dict[str, Any], folder: Path, written: Sequence[str]) -> str:
    """Say in one line what came out, and where it is."""
    result = record["result"]
    sample, component = _SAMPLES.get(record["model"]["class"], ("sample", "component"))
    said = [
        f"{count} {word}{'s' * (count != 1)}"
        for count, word in ((result["n_samples"], sample), (result["n_components"], component))
    ]
    if result["relative_error"] is not None:
        said.append(f"relative error {result['relative_error']:.4g}")
    return f"{', '.join(said)}; written to {folder}: {', '.join(written)}"


def _record(saved: SavedModel, found: Transformed) -> dict[str, Any]:
    W = found.weights
    counted = W.reshape(-1, W.shape[-1])
    if saved.kind == "cube":
        counted = counted[~np.isnan(counted[:, 0])]
    return dict(
        plain(
            {
                "format": 1,
                "title": f"Weights of {found.source}",
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "data": {"source": found.source},
                "model": {"source": str(saved.path), "class": saved.class_name},
                "result": {
                    "n_samples": len(counted),
                    "n_components": W.shape[-1],
                    "relative_error": found.relative_error,
                    "seconds": found.seconds,
                },
                "versions": versions(),
            }
        )
    )
