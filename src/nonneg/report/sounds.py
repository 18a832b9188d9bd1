"""Record and page of separated sounds: sources to listen to, spectrograms, components."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.signal import spectrogram

from nonneg._html import Raw, element
from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.applications.audio import Sound
from nonneg.applications.audio.methods import bin_frequencies
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.record import Record, of_estimator, run_facts

_PLAYER_BYTES = 6_000_000  # of the sounds in the report; of longer sounds the beginning is kept
_DECIBELS = 60.0  # range of a spectrogram below the maximum


@dataclass(frozen=True)
class Separated:
    """A separation and what it was made of."""

    model: Any  # fitted
    sounds: Sequence[Sound]  # the recordings
    sources: Sequence[FloatArray]  # the sources of each recording
    seconds: float
    training: Mapping[str, Sequence[str]] = field(default_factory=dict)  # files by source

    def energy_shares(self) -> FloatArray:
        """Return the share of the energy that each source has."""
        energies = sum(np.square(part).reshape(len(part), -1).sum(axis=1) for part in self.sources)
        return np.asarray(energies) / max(float(np.sum(energies)), np.finfo(float).tiny)


def describe(separated: Separated, *, players: bool = True) -> Record:
    """Return the record of a separation."""
    model, sounds, shares = separated.model, separated.sounds, separated.energy_shares()
    fit, rate, names = model.model_, sounds[0].rate, model.source_names_
    choice, restarts = getattr(fit, "choice_", None), getattr(fit.result_, "restarts", None)
    files = [sound.source for sound in sounds]
    data = {
        "files": files,
        "rate": rate,
        "n_samples": [sound.samples.shape[-1] for sound in sounds],
        "n_channels": [sound.n_channels for sound in sounds],
        "seconds": sum(sound.samples.shape[-1] for sound in sounds) / rate,
        "training": {name: list(files) for name, files in separated.training.items()},
    }
    n_frames = len(model.activations_)
    result = {
        "method": model.method,
        "n_sources": len(names),
        "n_components": fit.n_components_,
        "divergence": fit.reconstruction_err_**2 / (2 * n_frames * fit.n_features_in_),
        "transform_choice": None if choice is None else choice.as_dict() | {"name": choice.name},
        "n_frames": n_frames,
        "frame_length": model.framing_.frame_length,
        "hop": model.framing_.step,
        "restarts": None if restarts is None else restarts.objective,
        **run_facts(fit, fit.result_, separated.seconds),
    }
    sources = [
        {
            "name": name,
            "energy_share": float(shares[at]),
            "components": 1 + np.flatnonzero(model.groups_ == at),  # numbered from 1, as for --group
        }
        for at, name in enumerate(names)
    ]
    solos = ", ".join(f"{name} ({', '.join(own)})" for name, own in separated.training.items())
    trained = f", with templates learned from training recordings: {solos}" if solos else ""
    title = sounds[0].source if len(sounds) == 1 else f"{len(sounds)} recordings"
    energies = [f"{name} with {html.percent(share)}" for name, share in zip(names, shares, strict=True)]
    return Record(
        "separate",
        f"Sources of {title}",
        f"{html.counted(len(names), 'source')} of {title}: {html.listed(energies)} of the energy.",
        f"{html.seconds(data['seconds'])} of sound at {html.number(rate)} Hz from {', '.join(files)}, "
        f"separated by {model.method}{trained}. The fit took {html.ending(result)}.",
        {name: result[name] for name in ("n_sources", "n_components", "divergence", "seconds")},
        data,
        result,
        details={"sources": sources},
        shown={"separated": separated, "players": players},
        **of_estimator(model),
    )


def table(record: Record) -> list[dict[str, Any]]:
    """Return the sources, one per row."""
    columns = {
        "name": "source",
        "energy_share": ("energy", html.percent),
        "components": ("components", lambda numbers: ", ".join(map(str, numbers))),
    }
    return html.rows_of(record.details["sources"], columns)


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    separated = record.shown["separated"]
    model, sound, sources = separated.model, separated.sounds[0], separated.sources[0]
    rows, notes = table(record), []
    if len(separated.sounds) > 1:
        notes.append(f"This is the first of {len(separated.sounds)} recordings.")
    if record.shown["players"]:
        players, note = _players(sound.samples, sources, sound.rate)
        rows = [
            {"source": row["source"], "listen": player} | row
            for row, player in zip([{"source": "recording"}, *rows], players, strict=True)
        ]
        notes.append(note)
    components = model.model_.components_
    order = np.argsort(bin_frequencies(model.framing_, model.model_, sound.rate), kind="stable")
    lines = [f"{at + 1} ({model.source_names_[group]})" for at, group in enumerate(model.groups_)]
    n_frames = model.framing_.n_frames(sound.samples.shape[-1])
    return [
        html.section(
            "The sources",
            "The sources sum to the recording, sample by sample. Percentages are shares of the energy.",
            rows,
            *notes,
        ),
        html.section(
            "Before and after",
            "Spectrograms of the recording and of its sources, in the same shades.",
            html.legend("0 dB, the loudest of all", f"-{_DECIBELS:.0f} dB"),
            html.side_by_side(_spectrograms(sound, sources, model.source_names_)),
        ),
        html.section(
            "The components",
            html.legend("0 to the maximum of each component"),
            html.figure(
                drawings.heat_map(
                    components[:, order], "frequencies, low to high", lines=lines, ordered=True
                ),
                "Templates: what a component gives to each frequency. Components are numbered as in --group.",
            ),
            html.figure(
                drawings.heat_map(model.activations_[:n_frames].T, "frame", lines=lines),
                "Activations: how strong each component is over time.",
            ),
        ),
    ]


def _players(mixture: FloatArray, sources: FloatArray, rate: int) -> tuple[list[Raw], str]:
    soundfile = import_optional("soundfile", extra="audio", purpose="Sounds in the report")
    signals = np.concatenate([mixture[None], sources])
    # Browsers play two channels.
    signals = signals if signals.ndim == 2 or signals.shape[1] == 2 else signals.mean(axis=1)
    most, note = _PLAYER_BYTES // (2 * signals[..., 0].size), ""
    if signals.shape[-1] > most:
        note = f"The players have the first {most / rate:.0f} s; the files are complete."
    players = []
    for signal in signals[..., :most] / max(1.0, float(np.abs(signals).max())):
        stream = io.BytesIO()
        soundfile.write(stream, signal.T, rate, format="FLAC", subtype="PCM_16")
        address = f"data:audio/flac;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
        players.append(element("audio", controls="", preload="metadata", src=address))
    return players, note


def _spectrograms(sound: Sound, sources: FloatArray, names: Sequence[str]) -> list[Raw]:
    """Draw power in decibels, frequencies on a logarithmic axis, in the same shades for all."""
    n = sound.samples.shape[-1]
    length = min(1 << int(np.ceil(np.log2(max(sound.rate / 12, 16)))), n)
    overlap = max(length - max(length // 8, n // 2000, 1), 0)  # no more frames than pixels
    signals = np.concatenate([sound.samples[None], sources])
    hertz, times, power = spectrogram(signals, sound.rate, "hann", length, overlap, detrend=False)
    # The mean of the channels.
    power = power.reshape(len(signals), -1, *power.shape[-2:]).mean(axis=1)[:, 1:]
    # Where sources cancel each other, they are louder than the recording.
    power = np.maximum(power / max(float(power.max()), 1e-300), 10 ** (-_DECIBELS / 10))
    drawn = []
    for name, cells in zip(["recording", *names], power, strict=True):
        figure, axes = drawings.panel(5.2, 2.9)
        shade = 1 + 10 / _DECIBELS * np.log10(cells)
        axes.pcolormesh(
            times, hertz[1:], shade, cmap="Blues", vmin=0.0, vmax=1.0, shading="nearest", rasterized=True
        )
        axes.set_yscale("log")
        axes.set_ylim(min(40.0, hertz[-1] / 50), hertz[-1])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_title(name, color=drawings.INK, fontsize=11, parse_math=False)
        drawings.label(axes, "seconds", "Hz", grid=False)
        drawn.append(drawings.drawing(figure, f"Spectrogram: {name}"))
    return drawn
