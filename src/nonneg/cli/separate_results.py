"""The files of a separation."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.applications.audio import Sound, write_sound
from nonneg.applications.audio.files import EXACT
from nonneg.applications.audio.methods import bin_frequencies
from nonneg.cli import terminal
from nonneg.cli.results import RESULT, write_results
from nonneg.exceptions import NonnegError, OutputError
from nonneg.metrics import fit_sinusoids
from nonneg.report import wording
from nonneg.report.records import read_record, run_record, stop_facts
from nonneg.report.separation_page import SeparationShown, build_separation_page
from nonneg.report.tables import markdown_table

_SOUND = re.compile(r"(recording-\d+-)?source-\d+\.(wav|flac)")
_KEPT = ("FLOAT", "DOUBLE", *EXACT)
"""Kinds of samples that sources are written in if the recording has them."""
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
    training: Mapping[str, Sequence[str]] = field(default_factory=dict)  # files by source


def write_sources(
    folder: Path, separated: Separated, *, ending: str = "wav", players: bool = True
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files of a separation."""
    record = _record(separated, ending)
    check_targets(folder, separated.model.source_names_, len(separated.sounds), ending)
    written = write_results(
        folder,
        record,
        lambda fresh: write_sounds(fresh, separated, ending),
        lambda: build_separation_page(_shown(separated, record, players)),
        known=earlier_sounds(folder),
        model=separated.model,
    )
    return record, written


def separation_page(separated: Separated, *, players: bool = True) -> str:
    """Write the report of a separation alone."""
    return build_separation_page(_shown(separated, _record(separated, "wav"), players))


def write_sounds(folder: Path, separated: Separated, ending: str) -> None:
    """Write the sources of all recordings, with the subtype of each recording where it holds them."""
    names = file_names(separated.model.source_names_, len(separated.sounds), ending)
    peak = max(float(np.abs(sources).max()) for sources in separated.sources)
    scale = 1.0
    if ending == "flac" and peak > 1:
        scale = 1.0 / peak
        terminal.note(
            f"note: all sources were multiplied by {scale:.4g}, because .flac is limited to [-1, 1]"
        )
    floats = False
    for recording, (sound, sources) in enumerate(zip(separated.sounds, separated.sources, strict=True)):
        subtype = sound.subtype if sound.subtype in _KEPT else None
        if ending == "flac" and subtype not in ("PCM_16", "PCM_24"):
            subtype = "PCM_24"
        if ending == "wav" and subtype in EXACT and peak > 1 - 2.0 ** (1 - EXACT[subtype]):
            subtype, floats = "FLOAT", True
        parts = scale * sources
        if subtype in EXACT:
            parts = rounded(parts, EXACT[subtype])
        for at, source in enumerate(parts):
            write_sound(folder / names[recording][at], source.T, sound.rate, subtype=subtype)
    if floats:
        terminal.note("note: sources are louder than full scale and were written as 32-bit floats")


def rounded(sources: FloatArray, bits: int) -> FloatArray:
    """Round sources to whole steps whose sums are those of the recording, rounded."""
    step = 2.0 ** (1 - bits)
    whole = np.rint(sources / step)
    loudest = int(np.argmax(np.square(sources).reshape(len(sources), -1).sum(axis=1)))
    whole[loudest] += np.rint(sources.sum(axis=0) / step) - whole.sum(axis=0)
    return np.clip(whole * step, -1.0, 1.0 - step)


def check_targets(folder: Path, names: Sequence[str], n_recordings: int, ending: str) -> None:
    """Check that no sounds would be replaced but those of an earlier run, such as training recordings."""
    if not folder.is_dir():
        return
    own = earlier_sounds(folder)
    for name in (name for names in file_names(names, n_recordings, ending) for name in names):
        if (folder / name).exists() and name not in own:
            raise OutputError(
                f"{folder / name} exists and is not the result of an earlier run. Choose another "
                "folder with -o."
            )


def earlier_sounds(folder: Path) -> set[str]:
    """Return the sounds in a folder that an earlier run wrote."""
    if not folder.is_dir():
        return set()
    found = {entry.name for entry in folder.iterdir() if _SOUND.fullmatch(entry.name)}
    try:
        record = read_record(folder / RESULT)
        sources = record["result"]["sources"] if record["command"] == "transform" else record["sources"]
        named = {Path(str(name)).name for entry in sources for name in entry["files"]}
        return found | {name for name in named if name.endswith((".wav", ".flac"))}
    except (NonnegError, KeyError, TypeError, AttributeError):
        return found


def file_names(names: Sequence[str], n_recordings: int, ending: str) -> list[list[str]]:
    """Return the files of each recording, named after the sources."""
    stems: list[str] = []
    for at, name in enumerate(names):
        stem = re.sub(r"[^\w.+-]+", "-", name).strip("-.") or f"source-{at + 1}"
        stems.append(stem if stem.lower() not in [other.lower() for other in stems] else f"{stem}-{at + 1}")
    return [
        [
            f"{stem}.{ending}" if n_recordings == 1 else f"recording-{one + 1}-{stem}.{ending}"
            for stem in stems
        ]
        for one in range(n_recordings)
    ]


def source_table(record: dict[str, Any]) -> str:
    """Lay the sources out as a table for the terminal."""
    rows = [
        {
            "name": entry["name"],
            "share": f"{100 * entry['energy_share']:.1f}%",
            "components": wording.ranges(entry["components"]),
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


def _record(separated: Separated, ending: str) -> dict[str, Any]:
    model, sounds = separated.model, separated.sounds
    fit, rate = model.model_, sounds[0].rate
    result = fit.result_
    divergence = fit.reconstruction_err_**2 / 2
    choice = getattr(fit, "choice_", None)
    restarts = getattr(result, "restarts", None)
    energies = sum(np.square(part).reshape(len(part), -1).sum(axis=1) for part in separated.sources)
    one = len(sounds) == 1
    names = file_names(model.source_names_, len(sounds), ending)
    return run_record(
        "separate",
        f"Sources of {sounds[0].source if one else f'{len(sounds)} recordings'}",
        data={
            "files": [sound.source for sound in sounds],
            "rate": rate,
            "n_samples": [sound.samples.shape[-1] for sound in sounds],
            "n_channels": [sound.n_channels for sound in sounds],
            "subtypes": [sound.subtype for sound in sounds],
            "seconds": sum(sound.samples.shape[-1] for sound in sounds) / rate,
            "training": {name: list(files) for name, files in separated.training.items()},
        },
        estimator=model,
        result={
            "method": model.method,
            "n_sources": len(model.source_names_),
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
                "name": name,
                "files": [of_recording[at] for of_recording in names],
                "energy_share": energies[at] / energies.sum(),
                # Numbered from 1, as for --group.
                "components": 1 + np.flatnonzero(model.groups_ == at),
                "frequencies": _frequencies(model, at, rate),
            }
            for at, name in enumerate(model.source_names_)
        ],
        atoms=_atoms(model, rate),
    )


def _power_by_source(model: Any) -> FloatArray:
    """Return the power of each source in every atom or bin."""
    components = model.model_.components_
    return np.stack(
        [
            model.activations_[:, model.groups_ == at].sum(axis=0) @ components[model.groups_ == at]
            for at in range(len(model.source_names_))
        ]
    )


def _frequencies(model: Any, source: int, rate: int) -> list[float]:
    """Return frequencies at which a source has most of its power, each partial once."""
    power, length = _power_by_source(model)[source], model.framing_.frame_length
    strongest = np.argsort(-power, kind="stable")[: 4 * _N_FREQUENCIES]
    strongest = strongest[power[strongest] > _LEAST_SHARE * power.sum()]
    if length < 4 or len(strongest) == 0:  # too short for a sinusoid, or silent
        return []
    if _has_atoms(model):
        # Atoms nearer than the resolution of a frame are one partial in two phases.
        found = fit_sinusoids(model.model_.transform_[strongest], sample_rate=rate).frequency
        places, resolution = found, rate / length / 2
    else:
        # A Hann window spreads a partial over 4 bins.
        found = bin_frequencies(model.framing_, model.model_, rate)[strongest]
        places, resolution = strongest, 2
    kept: list[int] = []
    for at, place in enumerate(places):
        if all(abs(place - places[other]) > resolution for other in kept):
            kept.append(at)
    return [float(value) for value in found[kept[:_N_FREQUENCIES]]]


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
            "source": model.source_names_[int(by_source[:, atom].argmax())],
        }
        for at, atom in enumerate(chosen)
    ]


def _shown(separated: Separated, record: dict[str, Any], players: bool) -> SeparationShown:
    model, sound = separated.model, separated.sounds[0]
    fit, sources = model.model_, separated.sources[0]
    addresses, note = _players(sound.samples, sources, sound.rate) if players else ([], "")
    if len(separated.sounds) > 1:
        note = f"This is the first of {len(separated.sounds)} recordings. {note}".rstrip()
    return SeparationShown(
        record,
        sound.samples,
        sources,
        getattr(fit, "transform_", None),
        fit.components_,
        model.activations_[: model.framing_.n_frames(sound.samples.shape[-1])],
        model.groups_,
        bin_frequencies(model.framing_, fit, sound.rate),
        addresses,
        note,
    )


def _players(mixture: FloatArray, sources: FloatArray, rate: int) -> tuple[list[str], str]:
    soundfile = import_optional("soundfile", extra="audio", purpose="Sounds in the report")
    signals = np.concatenate([mixture[None], sources])
    # Browsers play two channels.
    signals = signals if signals.ndim == 2 or signals.shape[1] == 2 else signals.mean(axis=1)
    most = PLAYER_BYTES // (2 * signals[..., 0].size)
    note = ""
    if signals.shape[-1] > most:
        note = f"The players have the first {most / rate:.0f} s; the files are complete."
    part = signals[..., :most] / max(1.0, float(np.abs(signals).max()))
    addresses = []
    for signal in part:
        stream = io.BytesIO()
        soundfile.write(stream, signal.T, rate, format="FLAC", subtype="PCM_16")
        addresses.append("data:audio/flac;base64," + base64.b64encode(stream.getvalue()).decode("ascii"))
    return addresses, note
