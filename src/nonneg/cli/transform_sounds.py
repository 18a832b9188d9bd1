"""What `nonneg transform` does with sounds: the sources of new recordings, by the components of a model."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.applications.audio import read_sound
from nonneg.cli import terminal
from nonneg.cli.results import write_results
from nonneg.cli.separate_inputs import grouping_by_hand
from nonneg.cli.separate_results import Separated, check_targets, earlier_sounds, file_names, write_sounds
from nonneg.cli.transform_inputs import SavedModel
from nonneg.report.records import run_record


def separate_new(saved: SavedModel, options: argparse.Namespace, folder: Path) -> str:
    """Separate recordings with a saved model, write their sources, and say what was found."""
    model, ending = saved.model, options.format or "wav"
    if options.group:
        model.regroup(grouping_by_hand(options.group))
    check_targets(folder, model.source_names_, len(options.files), ending)
    sounds, sources, seconds = [], [], 0.0
    for path in options.files:
        sound = read_sound(path, channel="all")
        if model.rate_ is not None and sound.rate != model.rate_:
            terminal.note(
                f"note: {sound.source} was resampled from {sound.rate} to {model.rate_} Hz, the rate of the "
                "model"
            )
            sound = read_sound(path, channel="all", rate=model.rate_)
        started = time.perf_counter()
        several = model.recordings == "consecutive"
        found = model.separate([sound.samples] if several else sound.samples)
        seconds += time.perf_counter() - started
        sounds.append(sound)
        sources.append(found[0] if several else found)
    separated = Separated(model, sounds, sources, seconds)
    record = _record(saved, separated, ending)
    written = write_results(
        folder,
        record,
        lambda fresh: write_sounds(fresh, separated, ending),
        None,
        known=earlier_sounds(folder),
    )
    listed = ", ".join(
        f"{entry['name']} {100 * entry['energy_share']:.1f}%" for entry in record["result"]["sources"]
    )
    return f"{listed} of the energy; written to {folder}: {', '.join(path.name for path in written)}"


def _record(saved: SavedModel, separated: Separated, ending: str) -> dict[str, Any]:
    names = saved.model.source_names_
    files = file_names(names, len(separated.sounds), ending)
    energies = sum(np.square(part).reshape(len(part), -1).sum(axis=1) for part in separated.sources)
    titles = [sound.source for sound in separated.sounds]
    return run_record(
        "transform",
        f"Sources of {', '.join(titles)}",
        data={"source": ", ".join(titles), "files": titles, "rate": separated.sounds[0].rate},
        result={
            "n_sources": len(names),
            "seconds": separated.seconds,
            "sources": [
                {
                    "name": name,
                    "files": [of_recording[at] for of_recording in files],
                    "energy_share": energies[at] / max(energies.sum(), np.finfo(float).tiny),
                }
                for at, name in enumerate(names)
            ],
        },
        model={"source": str(saved.path), "class": saved.class_name},
    )
