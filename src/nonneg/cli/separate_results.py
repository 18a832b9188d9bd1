"""The files of a separation."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.applications.audio import Sound, write_sound
from nonneg.cli import terminal
from nonneg.cli.results import write_results
from nonneg.metrics import fit_sinusoids
from nonneg.report.records import run_record, stop_facts
from nonneg.report.separation_page import SeparationShown, build_separation_page
from nonneg.report.tables import markdown_table

_SOUND = re.compile(r"(recording-\d+-)?source-\d+\.(wav|flac)")
N_ATOMS = 8
"""Number of atoms listed and drawn: the strongest."""
PLAYER_BYTES = 6_000_000
"""Maximum size of the sounds in the report; of longer sounds the beginning is kept."""
_N_FREQUENCIES = 4
# Atoms with less of a source's power are not named.
_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Separated:
    """A separation and what it was made of."""

    model: Any  # fitted
    sounds: Sequence[Sound]  # the recordings
    sources: Sequence[FloatArray]  # the sources of each recording
    seconds: float  # how long it took


def write_sources(
    folder: Path, separated: Separated, *, ending: str = "wav", players: bool = True
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files of a separation."""
    record = _record(separated, ending)
    earlier = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    scale = 1.0
    if ending == "flac":
        scale = 1.0 / max(1.0, *(float(np.abs(sources).max()) for sources in separated.sources))
        if scale < 1:
            terminal.note(f"note: all sources were multiplied by {scale:.4g}, because .flac holds [-1, 1]")

    def write_files(fresh: Path) -> None:
        for recording, sources in enumerate(separated.sources):
            for at, source in enumerate(sources):
                name = _file_name(at, recording, len(separated.sounds), ending)
                write_sound(fresh / name, scale * source, separated.sounds[recording].rate)

    written = write_results(
        folder,
        record,
        write_files,
        lambda: build_separation_page(_shown(separated, record, players)),
        known=[name for name in earlier if _SOUND.fullmatch(name)],
        model=separated.model,
    )
    return record, written


def source_table(record: dict[str, Any]) -> str:
    """Lay the sources out as a table for the terminal."""
    rows = [
        {
            "name": entry["name"],
            "share": f"{100 * entry['energy_share']:.1f} %",
            "components": ", ".join(str(at) for at in entry["components"]),
            "frequencies": ", ".join(f"{value:.1f}" for value in entry["frequencies"]),
        }
        for entry in record["sources"]
    ]
    headings = {
        "name": "source",
        "share": "energy",
        "components": "components",
        "frequencies": "strongest frequencies (Hz)",
    }
    return markdown_table(rows, headings).rstrip("\n")


def _file_name(source: int, recording: int, n_recordings: int, ending: str) -> str:
    name = f"source-{source + 1}.{ending}"
    return name if n_recordings == 1 else f"recording-{recording + 1}-{name}"


def _record(separated: Separated, ending: str) -> dict[str, Any]:
    model, sounds = separated.model, separated.sounds
    fit, rate = model.model_, sounds[0].rate
    result = fit.result_
    divergence = fit.reconstruction_err_**2 / 2
    choice = getattr(fit, "choice_", None)
    restarts = getattr(result, "restarts", None)
    energies = sum(np.square(sources).sum(axis=1) for sources in separated.sources)
    one = len(sounds) == 1
    return run_record(
        "separate",
        f"Sources of {sounds[0].source if one else f'{len(sounds)} recordings'}",
        data={
            "files": [sound.source for sound in sounds],
            "rate": rate,
            "n_samples": [len(sound.samples) for sound in sounds],
            "n_channels": [sound.n_channels for sound in sounds],
            "seconds": sum(len(sound.samples) for sound in sounds) / rate,
        },
        estimator=model,
        result={
            "method": model.method,
            "n_sources": model.n_sources,
            "n_components": fit.n_components_,
            "objective": result.objective if _has_atoms(model) else result.loss,
            "likelihood": getattr(result, "likelihood", None),
            "divergence": divergence,
            "divergence_per_entry": divergence / (model.activations_.shape[0] * fit.n_features_in_),
            "eps0": getattr(fit, "eps0_", None),
            "transform_choice": None if choice is None else choice.as_dict() | {"name": choice.name},
            "n_frames": model.activations_.shape[0],
            "frame_length": model.framing_.frame_length,
            "hop": model.framing_.step,
            "n_iter": fit.n_iter_,
            "stop_reason": stop_facts(result),
            "restarts": None if restarts is None else restarts.objective,
            "seconds": separated.seconds,
        },
        sources=[
            {
                "name": f"source {at + 1}",
                "files": [_file_name(at, one, len(sounds), ending) for one in range(len(sounds))],
                "energy_share": energies[at] / energies.sum(),
                "components": np.flatnonzero(model.groups_ == at),
                "frequencies": _frequencies(model, at, rate),
            }
            for at in range(model.n_sources)
        ],
        atoms=_atoms(model, rate),
    )


def _power_by_source(model: Any) -> FloatArray:
    """Return the power of each source in every atom or bin."""
    components = model.model_.components_
    return np.stack(
        [
            model.activations_[:, model.groups_ == at].sum(axis=0) @ components[model.groups_ == at]
            for at in range(model.n_sources)
        ]
    )


def _frequencies(model: Any, source: int, rate: int) -> list[float]:
    """Return frequencies at which a source has most of its power, each partial once."""
    power, length = _power_by_source(model)[source], model.framing_.frame_length
    strongest = np.argsort(-power, kind="stable")[: 4 * _N_FREQUENCIES]
    strongest = strongest[power[strongest] >= _LEAST_SHARE * power.sum()]
    if length < 4 or len(strongest) == 0:  # too short for a sinusoid, or silent
        return []
    if _has_atoms(model):
        candidates = fit_sinusoids(model.model_.transform_[strongest], sample_rate=rate).frequency
        resolution = rate / length / 2
    else:
        # A Hann window spreads a partial over four bins.
        candidates, resolution = strongest * rate / length, 2 * rate / length
    found: list[float] = []
    for value in candidates:
        # Atoms nearer than the resolution of a frame are one partial in two phases.
        if all(abs(value - other) > resolution for other in found):
            found.append(float(value))
    return found[:_N_FREQUENCIES]


def _has_atoms(model: Any) -> bool:
    """Tell whether the transform has atoms of its own; those of the STFT are known."""
    return hasattr(model.model_, "transform_")


def _atoms(model: Any, rate: int) -> list[dict[str, Any]]:
    if not _has_atoms(model):
        return []
    fit = model.model_
    chosen = model.strongest_atoms(N_ATOMS)
    by_source = _power_by_source(model)
    power = by_source.sum(axis=0)
    known = fit.n_features_in_ >= 4
    sinusoids = fit_sinusoids(fit.transform_[chosen], sample_rate=rate) if known else None
    return [
        {
            "atom": int(atom),
            "power_share": float(power[atom] / power.sum()),
            "frequency": None if sinusoids is None else float(sinusoids.frequency[at]),
            "residual_share": 0.0 if sinusoids is None else float(sinusoids.residual_share[at]),
            "source": f"source {int(by_source[:, atom].argmax()) + 1}",
        }
        for at, atom in enumerate(chosen)
    ]


def _shown(separated: Separated, record: dict[str, Any], players: bool) -> SeparationShown:
    model, sound = separated.model, separated.sounds[0]
    fit, sources = model.model_, separated.sources[0]
    addresses, note = _players(np.vstack([sound.samples, sources]), sound.rate) if players else ([], "")
    if len(separated.sounds) > 1:
        note = f"This is the first of {len(separated.sounds)} recordings. {note}".rstrip()
    return SeparationShown(
        record,
        sound.samples,
        sources,
        getattr(fit, "transform_", None),
        fit.components_,
        model.activations_[: model.framing_.n_frames(len(sound.samples))],
        addresses,
        note,
    )


def _players(signals: FloatArray, rate: int) -> tuple[list[str], str]:
    soundfile = import_optional("soundfile", extra="audio", purpose="Sounds in the report")
    most = PLAYER_BYTES // (2 * len(signals))
    note = ""
    if signals.shape[1] > most:
        note = f"The players hold the first {most / rate:.0f} s; the files hold everything."
    part = signals[:, :most] / max(1.0, float(np.abs(signals).max()))
    addresses = []
    for signal in part:
        stream = io.BytesIO()
        soundfile.write(stream, signal, rate, format="FLAC", subtype="PCM_16")
        addresses.append("data:audio/flac;base64," + base64.b64encode(stream.getvalue()).decode("ascii"))
    return addresses, note
