"""Record of separated sounds: sources to listen to, spectrograms, components."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.io import wavfile
from scipy.signal import spectrogram

from nonneg._typing import FloatArray
from nonneg.applications.audio import Sound
from nonneg.applications.audio.methods import bin_frequencies
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, run_facts

_PLAYER_BYTES = 6_000_000  # of the sounds in the report; of longer sounds the beginning is kept
_DECIBELS = 60.0  # range of a spectrogram below the maximum
_N_TIMES, _N_PITCHES = 500, 120  # cells of a spectrogram
_COLUMNS = {
    "name": "source",
    "listen": "listen",
    "energy_share": ("energy", words.percent),
    "components": ("components", lambda numbers: ", ".join(map(str, numbers))),
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
    model, sounds, sound = separated.model, separated.sounds, separated.sounds[0]
    fit, rate, names, files = model.model_, sound.rate, model.source_names_, [one.source for one in sounds]
    choice, restarts = getattr(fit, "choice_", None), getattr(fit.result_, "restarts", None)
    lengths, n_frames = [one.samples.shape[-1] for one in sounds], len(model.activations_)
    length = sum(lengths) / rate
    data = {
        "source": ", ".join(files),
        "files": files,
        "rate": rate,
        "n_samples": lengths,
        "n_channels": [one.n_channels for one in sounds],
        "seconds": length,
        "training": {name: list(solos) for name, solos in separated.training.items()},
    }
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
    sources = words.entries_of(
        name=names,
        energy_share=separated.energy_shares().tolist(),
        # Numbered from 1, as for --group.
        components=[(1 + np.flatnonzero(model.groups_ == at)).tolist() for at in range(len(names))],
    )
    solos = ", ".join(f"{name} ({', '.join(own)})" for name, own in separated.training.items())
    method = f"{model.method} with templates learned from {solos}" if solos else model.method
    title = files[0] if len(sounds) == 1 else f"{len(sounds)} recordings"
    energies = [f"{one['name']} with {words.percent(one['energy_share'])}" for one in sources]
    signals = np.concatenate([sound.samples[None], separated.sources[0]])
    heard, notes = _listened(signals, rate) if players else ([None] * len(signals), [])
    rows = [
        entry | {"listen": player}
        for entry, player in zip([{"name": "recording"}, *sources], heard, strict=True)
    ]
    pictures, axes = _spectrograms(signals, rate, ["recording", *names])
    if len(sounds) > 1:
        notes = [f"This is the first of {len(sounds)} recordings.", *notes]
    return Record(
        "separate",
        f"Sources of {title}",
        f"{words.counted(len(names), 'source')} of {title}: {words.listed(energies)} of the energy.",
        words.lead(f"{words.seconds(length)} of sound at {words.number(rate)} Hz", data, method, result),
        {name: result[name] for name in ("n_sources", "n_components", "divergence", "seconds")},
        data,
        result,
        details={"sources": sources},
        table=words.rows_of(sources, _COLUMNS),
        sections=[
            [
                "The sources",
                "The sources sum to the recording, sample by sample. Percentages are shares of the energy.",
                words.rows_of(rows, _COLUMNS),
                *notes,
            ],
            [
                "Before and after",
                f"Spectrograms of the recording and of its sources, all in the same shades: white is "
                f"{_DECIBELS:.0f} dB below the loudest. {axes}",
                block("pictures", pictures=pictures, kind="huge"),
            ],
            ["The components", *_components(model, sound)],
        ],
        **of_estimator(model),
    )


def _components(model: Any, sound: Sound) -> list[Any]:
    """Return the blocks of templates and activations."""
    order = np.argsort(bin_frequencies(model.framing_, model.model_, sound.rate), kind="stable")
    lines = [f"{at + 1} ({model.source_names_[group]})" for at, group in enumerate(model.groups_)]
    n_frames = model.framing_.n_frames(sound.samples.shape[-1])
    return [
        drawings.factor_map(
            model.model_.components_[:, order], "frequency", None,
            "Templates: what a component gives to each frequency. Components are numbered as in --group",
            sort=False, lines=lines,
        ),
        drawings.factor_map(
            model.activations_[:n_frames].T, "frame", None,
            "Activations: how strong each component is over time", sort=False, lines=lines,
        ),
    ]  # fmt: skip


def _listened(signals: FloatArray, rate: int) -> tuple[list[Any], list[str]]:
    """Return sounds as .wav files of 16 bits, and a note where they are not whole."""
    # Browsers play two channels.
    signals = signals if signals.ndim == 2 or signals.shape[1] == 2 else signals.mean(axis=1)
    most = _PLAYER_BYTES // (2 * signals[..., 0].size)
    players = []
    for signal in signals[..., :most] / max(1.0, float(np.abs(signals).max())):
        stream = io.BytesIO()
        wavfile.write(stream, rate, np.rint(32767 * signal.T).astype(np.int16))
        players.append(stream.getvalue())
    whole = signals.shape[-1] <= most
    return players, [] if whole else [
        f"The players have the first {most / rate:.0f} s; the files are complete."
    ]


def _spectrograms(signals: FloatArray, rate: int, names: Sequence[str]) -> tuple[list[Any], str]:
    """Return pictures of power in decibels, in the same shades for all, and what their axes are."""
    n = signals.shape[-1]
    length = min(1 << int(np.ceil(np.log2(max(rate / 12, 16)))), n)
    overlap = max(length - max(length // 8, n // _N_TIMES, 1), 0)  # no more frames than cells
    hertz, _, power = spectrogram(signals, rate, "hann", length, overlap, detrend=False)
    # The mean of the channels.
    power = power.reshape(len(signals), -1, *power.shape[-2:]).mean(axis=1)
    pitches = np.geomspace(max(min(40.0, hertz[-1] / 50), hertz[1]), hertz[-1], _N_PITCHES)
    power = power[:, np.abs(hertz[:, None] - pitches[::-1]).argmin(axis=0)]
    # Where sources cancel each other, they are louder than the recording.
    power = np.maximum(power / max(float(power.max()), 1e-300), 10 ** (-_DECIBELS / 10))
    pictures = [drawings.shades(1 + 10 / _DECIBELS * np.log10(cells), 1.0) for cells in power]
    return [(picture, name, None) for picture, name in zip(pictures, names, strict=True)], (
        f"Time runs to the right, {n / rate:.3g} s; frequencies upward, from {pitches[0]:.0f} to "
        f"{pitches[-1]:.0f} Hz on a logarithmic scale."
    )
