"""Blocks of separated sounds: sources to listen to, spectrograms, components."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.signal import spectrogram

from nonneg._html import Raw
from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.applications.audio import Sound
from nonneg.applications.audio.methods import bin_frequencies
from nonneg.metrics import fit_sinusoids
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_PLAYER_BYTES = 6_000_000  # of the sounds in the report; of longer sounds the beginning is kept
_N_PEAKS = 4
_LEAST_SHARE = 0.01  # frequencies with less of a source's power are not named
_DECIBELS = 60.0  # range of a spectrogram below the maximum
_METHODS = {
    "stft": "the short-time Fourier transform",
    "transform": "the learned or cosine transform that explains held-out frames best",
    "tl": "a transform learned together with the components (TL-NMF)",
    "jd": "a transform learned before the components (JD+NMF)",
    "dct": "the discrete cosine transform (Itakura-Saito NMF)",
}


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
    model, sounds = separated.model, separated.sounds
    fit, rate, names, shares = model.model_, sounds[0].rate, model.source_names_, separated.energy_shares()
    choice, restarts = getattr(fit, "choice_", None), getattr(fit.result_, "restarts", None)
    data = {
        "files": [sound.source for sound in sounds],
        "rate": rate,
        "n_samples": [sound.samples.shape[-1] for sound in sounds],
        "n_channels": [sound.n_channels for sound in sounds],
        "seconds": sum(sound.samples.shape[-1] for sound in sounds) / rate,
        "training": {name: list(files) for name, files in separated.training.items()},
    }
    n_frames = model.activations_.shape[0]
    result = {
        "method": model.method,
        "n_sources": len(names),
        "n_components": fit.n_components_,
        "divergence_per_entry": float(fit.reconstruction_err_) ** 2 / (2 * n_frames * fit.n_features_in_),
        "transform_choice": None if choice is None else choice.as_dict() | {"name": choice.name},
        "n_frames": n_frames,
        "frame_length": model.framing_.frame_length,
        "hop": model.framing_.step,
        "restarts": None if restarts is None else restarts.objective,
        **records.run_facts(fit, fit.result_, separated.seconds),
    }
    sources = [
        {
            "name": name,
            "energy_share": float(shares[at]),
            "components": 1 + np.flatnonzero(model.groups_ == at),  # numbered from 1, as for --group
            "frequencies": _frequencies(model, at, rate),
        }
        for at, name in enumerate(names)
    ]
    title = sounds[0].source if len(sounds) == 1 else f"{len(sounds)} recordings"
    said = [f"{name} with {wording.percent(share)}" for name, share in zip(names, shares, strict=True)]
    return Record(
        "separate",
        f"Sources of {title}",
        f"{wording.counted(len(names), 'source')} of {title}: {wording.listed(said)} of the energy.",
        _lead(data, result),
        {
            "sources": result["n_sources"],
            "components": result["n_components"],
            "divergence per coefficient": wording.number(result["divergence_per_entry"], digits=3),
            "time": separated.seconds,
        },
        data,
        result,
        details={"sources": sources},
        shown={"separated": separated, "players": players},
        **records.of_estimator(model),
    )


def _lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    trained = chosen = ""
    if data["training"]:
        listed = ", ".join(f"{name} ({', '.join(files)})" for name, files in data["training"].items())
        trained = f", with templates learned from training recordings: {listed}"
    if choice := result["transform_choice"]:
        judged = zip(choice["candidates"], choice["held_out"], strict=False)
        told = ", ".join(f"{name} {wording.number(value)}" for name, value in judged)
        chosen = f" ({choice['name']}; C per coefficient of held-out frames: {told})"
    return (
        f"{wording.seconds(data['seconds'])} of sound sampled at {wording.number(data['rate'])} Hz from "
        f"{', '.join(data['files'])}, in {wording.number(result['n_frames'])} frames of "
        f"{wording.number(result['frame_length'])} samples. Separated in {_METHODS[result['method']]}{chosen}"
        f"{trained}. The fit took {wording.ending(result)}."
    )


def _frequencies(model: Any, source: int, rate: int) -> list[float]:
    """Return frequencies at which a source has most of its power, each partial once."""
    own, length = model.groups_ == source, model.framing_.frame_length
    power = model.activations_[:, own].sum(axis=0) @ model.model_.components_[own]
    strongest = np.argsort(-power, kind="stable")[: 4 * _N_PEAKS]
    strongest = strongest[power[strongest] > _LEAST_SHARE * power.sum()]
    if length < 4 or len(strongest) == 0:  # too short for a sinusoid, or silent
        return []
    if hasattr(model.model_, "transform_"):
        hertz = fit_sinusoids(model.model_.transform_[strongest], sample_rate=rate).frequency
    else:
        hertz = bin_frequencies(model.framing_, model.model_, rate)[strongest]
    distinct: list[float] = []
    for value in hertz.tolist():
        # A Hann window spreads a partial over 4 bins.
        if all(abs(value - other) > 2 * rate / length for other in distinct):
            distinct.append(value)
    return distinct[:_N_PEAKS]


def table(record: Record) -> list[dict[str, Any]]:
    """Return the sources, one per row."""
    return [
        {
            "source": entry["name"],
            "energy": wording.percent(entry["energy_share"]),
            "components": wording.ranges(entry["components"]),
            "strongest frequencies": ", ".join(f"{value:.0f} Hz" for value in entry["frequencies"]),
        }
        for entry in record.details["sources"]
    ]


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    separated = record.shown["separated"]
    model, sound, sources = separated.model, separated.sounds[0], separated.sources[0]
    rows, note = table(record), ""
    if record.shown["players"]:
        players, note = _players(sound.samples, sources, sound.rate)
        rows = [
            {"source": row["source"], "listen": player} | row
            for row, player in zip([{"source": "recording"}, *rows], players, strict=True)
        ]
    if len(separated.sounds) > 1:
        note = f"This is the first of {len(separated.sounds)} recordings. {note}".rstrip()
    names = ["the recording", *model.source_names_]
    power = [_spectrogram(signal, sound.rate) for signal in (sound.samples, *sources)]
    # One scale for all: where sources cancel each other, they are louder than the recording.
    loudest = max(max(float(cells.max()) for _, _, cells in power), 1e-300)
    spectrograms = [
        _spectrogram_drawing(name, hertz, times, cells / loudest)
        for name, (hertz, times, cells) in zip(names, power, strict=True)
    ]
    components = model.model_.components_
    order = np.argsort(bin_frequencies(model.framing_, model.model_, sound.rate), kind="stable")
    lines = [f"{at + 1} ({model.source_names_[group]})" for at, group in enumerate(model.groups_)]
    seconds = model.framing_.n_frames(sound.samples.shape[-1])
    return [
        html.section(
            "The sources",
            "The sources sum to the recording, sample by sample. Percentages are shares of the energy.",
            rows,
            note,
        ),
        html.section(
            "Before and after",
            "Spectrograms of the recording and of its sources, in the same shades.",
            html.legend("0 dB, the loudest of all", f"-{_DECIBELS:.0f} dB"),
            html.side_by_side(*spectrograms),
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
                drawings.heat_map(model.activations_[:seconds].T, "frame", lines=lines),
                "Activations: how strong each component is over time.",
            ),
        ),
    ]


def _players(mixture: FloatArray, sources: FloatArray, rate: int) -> tuple[list[Raw], str]:
    soundfile = import_optional("soundfile", extra="audio", purpose="Sounds in the report")
    signals = np.concatenate([mixture[None], sources])
    # Browsers play two channels.
    signals = signals if signals.ndim == 2 or signals.shape[1] == 2 else signals.mean(axis=1)
    most = _PLAYER_BYTES // (2 * signals[..., 0].size)
    note = ""
    if signals.shape[-1] > most:
        note = f"The players have the first {most / rate:.0f} s; the files are complete."
    players = []
    for signal in signals[..., :most] / max(1.0, float(np.abs(signals).max())):
        stream = io.BytesIO()
        soundfile.write(stream, signal.T, rate, format="FLAC", subtype="PCM_16")
        address = f"data:audio/flac;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
        players.append(html.element("audio", controls="", preload="metadata", src=address))
    return players, note


def _spectrogram(signal: FloatArray, rate: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return frequencies, times and the power, the mean of the channels."""
    length = min(1 << int(np.ceil(np.log2(max(rate / 12, 16)))), signal.shape[-1])
    hop = max(length // 8, signal.shape[-1] // 2000, 1)  # a long recording has no more frames than pixels
    hertz, times, power = spectrogram(signal, rate, "hann", length, max(length - hop, 0), detrend=False)
    return hertz[1:], times, power.reshape(-1, *power.shape[-2:]).mean(axis=0)[1:]


def _spectrogram_drawing(name: str, hertz: FloatArray, times: FloatArray, power: FloatArray) -> Raw:
    """Draw power on a scale of decibels, frequencies on a logarithmic axis."""
    shade = 1 + 10 / _DECIBELS * np.log10(np.maximum(power, 10 ** (-_DECIBELS / 10)))
    whole, (axes,) = drawings.panels(5.2, 2.9)
    axes.pcolormesh(times, hertz, shade, cmap="Blues", vmin=0.0, vmax=1.0, shading="nearest", rasterized=True)
    axes.set_yscale("log")
    axes.set_ylim(min(40.0, hertz[-1] / 50), hertz[-1])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(f"{name[:1].upper()}{name[1:]}", color=drawings.INK, fontsize=11, parse_math=False)
    drawings.label(axes, "seconds", "Hz", grid=False)
    return drawings.drawing(whole, f"Spectrogram: {name}")
