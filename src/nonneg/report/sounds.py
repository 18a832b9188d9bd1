"""Record of separated sounds: sources to listen to, spectrograms, components."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
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
_SHOWN = ("name", "listen", "energy_share", "components")


def energy_shares(parts: Sequence[FloatArray]) -> list[float]:
    """Return the share of the energy that each source has, over all recordings."""
    energies = np.sum([np.square(part).reshape(len(part), -1).sum(axis=1) for part in parts], axis=0)
    return list((energies / max(float(np.sum(energies)), np.finfo(float).tiny)).tolist())


def describe(
    model: Any,
    sounds: Sequence[Sound],
    parts: Sequence[FloatArray],
    seconds: float,
    training: Mapping[str, Sequence[str]] | None = None,
) -> Record:
    """Return the record of a separation: recordings, the sources of each, and files of training by source."""
    fit, sound, names, files = model.model_, sounds[0], model.source_names_, [one.source for one in sounds]
    choice, n_frames, rate = getattr(fit, "choice_", None), len(model.activations_), sound.rate
    lengths = [one.samples.shape[-1] for one in sounds]
    data = {
        "source": ", ".join(files),
        "rate": rate,
        "n_samples": lengths,
        "training": training or {},
    }
    result = {
        "method": model.method,
        "n_sources": len(names),
        "n_components": fit.n_components_,
        "divergence": fit.reconstruction_err_**2 / (2 * n_frames * fit.n_features_in_),
        "transform_choice": None if choice is None else choice.as_dict() | {"name": choice.name},
        "n_frames": n_frames,
        "frame_length": model.framing_.frame_length,
        **run_facts(fit, fit.result_, seconds),
    }
    sources = words.entries_of(
        name=names,
        energy_share=energy_shares(parts),
        # Numbered from 1, as for --group.
        components=[(1 + np.flatnonzero(model.groups_ == at)).tolist() for at in range(len(names))],
    )
    title = files[0] if len(sounds) == 1 else f"{len(sounds)} recordings"
    energies = [f"{one['name']} with {words.percent(one['energy_share'])}" for one in sources]
    signals = np.concatenate([sound.samples[None], parts[0]])
    heard = zip([{"name": "recording"}, *sources], _players(signals, rate), strict=True)
    order = np.argsort(bin_frequencies(model.framing_, fit, rate), kind="stable")
    lines = [f"{at + 1} ({names[group]})" for at, group in enumerate(model.groups_)]
    activations = model.activations_[: model.framing_.n_frames(lengths[0])].T
    return Record(
        "separate",
        f"Sources of {title}",
        f"{words.counted(len(names), 'source')} of {title}: {', '.join(energies)} of the energy.",
        ["n_sources", "n_components", "divergence", "seconds"],
        data,
        result,
        details={"sources": sources},
        table=words.rows_of(sources, *_SHOWN),
        sections=[
            [
                "The sources",
                f"The sources sum to the recording, sample by sample. This is {files[0]}; long sounds are "
                "cut off here, and complete in the files.",
                words.rows_of([entry | {"listen": player} for entry, player in heard], *_SHOWN),
            ],
            ["Before and after", *_spectrograms(signals, rate, ["recording", *names])],
            [
                "The components",
                "Templates are what a component gives to each frequency, activations how strong it is over "
                "time. Components are numbered as in --group.",
                drawings.factor_map(
                    fit.components_[:, order], "template", "frequencies", sort=False, lines=lines
                ),
                drawings.factor_map(activations, "activation", "time", sort=False, lines=lines),
            ],
        ],
        **of_estimator(model),
    )


def _players(signals: FloatArray, rate: int) -> list[bytes]:
    """Return sounds as .wav files of 16 bits."""
    # Browsers play two channels.
    signals = signals if signals.ndim == 2 or signals.shape[1] == 2 else signals.mean(axis=1)
    most = _PLAYER_BYTES // (2 * signals[..., 0].size)
    players = []
    for signal in signals[..., :most] / max(1.0, float(np.abs(signals).max())):
        stream = io.BytesIO()
        wavfile.write(stream, rate, np.rint(32767 * signal.T).astype(np.int16))
        players.append(stream.getvalue())
    return players


def _spectrograms(signals: FloatArray, rate: int, names: Sequence[str]) -> list[Any]:
    """Return what the axes are, and pictures of power in decibels, in the same shades for all."""
    n = signals.shape[-1]
    length = min(1 << int(np.ceil(np.log2(max(rate / 12, 16)))), n)
    overlap = max(length - max(length // 8, n // _N_TIMES, 1), 0)  # no more frames than cells
    # The mean of the channels.
    hertz, _, power = spectrogram(signals, rate, "hann", length, overlap, detrend=False)
    power = power.reshape(len(signals), -1, *power.shape[-2:]).mean(axis=1)
    pitches = np.geomspace(max(min(40.0, hertz[-1] / 50), hertz[1]), hertz[-1], _N_PITCHES)
    power = power[:, np.abs(hertz[:, None] - pitches[::-1]).argmin(axis=0)]
    # Where sources cancel each other, they are louder than the recording.
    power = np.maximum(power / max(float(power.max()), 1e-300), 10 ** (-_DECIBELS / 10))
    pictures = [drawings.shades(1 + 10 / _DECIBELS * np.log10(cells), 1.0) for cells in power]
    note = (
        f"Spectrograms, all in the same shades: white is {_DECIBELS:.0f} dB below the loudest. Time runs to "
        f"the right, {n / rate:.3g} s; frequencies upward, from {pitches[0]:.0f} to {pitches[-1]:.0f} Hz on "
        "a logarithmic scale."
    )
    shown = [(picture, name, None) for picture, name in zip(pictures, names, strict=True)]
    return [note, block("pictures", pictures=shown, kind="huge")]
