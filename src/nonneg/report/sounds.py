"""Sections of separated sounds: sources to listen to, spectrograms, atoms, components; and their files."""

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

_N_ATOMS = 8  # atoms listed and drawn: the strongest
_PLAYER_BYTES = 6_000_000  # of the sounds in the report; of longer sounds the beginning is kept
_N_PEAKS = 4
_LEAST_SHARE = 0.01  # atoms with less of a source's power are not named
_N_PANELS = 16  # components whose activations are drawn one by one
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
    fit, rate, fitted = model.model_, sounds[0].rate, model.model_.result_
    divergence, n_frames = float(fit.reconstruction_err_) ** 2 / 2, model.activations_.shape[0]
    choice, restarts = getattr(fit, "choice_", None), getattr(fitted, "restarts", None)
    shares = separated.energy_shares()
    data = {
        "files": [sound.source for sound in sounds],
        "rate": rate,
        "n_samples": [sound.samples.shape[-1] for sound in sounds],
        "n_channels": [sound.n_channels for sound in sounds],
        "subtypes": [sound.subtype for sound in sounds],
        "seconds": sum(sound.samples.shape[-1] for sound in sounds) / rate,
        "training": {name: list(files) for name, files in separated.training.items()},
    }
    result = {
        "method": model.method,
        "n_sources": len(model.source_names_),
        "n_components": fit.n_components_,
        "objective": fitted.objective if _has_atoms(model) else fitted.loss,
        "likelihood": getattr(fitted, "likelihood", None),
        "divergence": divergence,
        "divergence_per_entry": divergence / (n_frames * fit.n_features_in_),
        "eps0": getattr(fit, "eps0_", None),
        "transform_choice": None if choice is None else choice.as_dict() | {"name": choice.name},
        "n_frames": n_frames,
        "frame_length": model.framing_.frame_length,
        "hop": model.framing_.step,
        "n_iter": fit.n_iter_,
        "stop_reason": records.stop_facts(fitted),
        "restarts": None if restarts is None else restarts.objective,
        "seconds": separated.seconds,
    }
    sources = [
        {
            "name": name,
            "energy_share": float(shares[at]),
            "components": 1 + np.flatnonzero(model.groups_ == at),  # numbered from 1, as for --group
            "frequencies": _frequencies(model, at, rate),
        }
        for at, name in enumerate(model.source_names_)
    ]
    title = sounds[0].source if len(sounds) == 1 else f"{len(sounds)} recordings"
    return Record(
        "separate",
        f"Sources of {title}",
        _answer(title, sources),
        _lead(data, result),
        {
            "sources": result["n_sources"],
            "components": result["n_components"],
            "divergence per coefficient": wording.number(result["divergence_per_entry"], digits=3),
            "time": separated.seconds,
        },
        data,
        result,
        details={"sources": sources, "atoms": _atoms(model, rate)},
        shown={"separated": separated, "players": players},
        **records.of_estimator(model),
    )


def _answer(title: str, sources: Sequence[Mapping[str, Any]]) -> str:
    if len(sources) == 1:
        return f"1 source: all of {title}."
    shares = [wording.percent(entry["energy_share"]) for entry in sources]
    names = [entry["name"] for entry in sources]
    if all(name == f"source {at + 1}" for at, name in enumerate(names)):
        return f"{len(shares)} sources with {wording.listed(shares)} of the energy of {title}."
    said = [f"{name} with {share}" for name, share in zip(names, shares, strict=True)]
    return f"{len(shares)} sources of {title}: {wording.listed(said)} of the energy."


def _lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    trained = chosen = ""
    if data["training"]:
        listed = ", ".join(f"{name} ({', '.join(files)})" for name, files in data["training"].items())
        trained = f", with templates learned from training recordings: {listed}"
    if choice := result["transform_choice"]:
        judged = zip(choice["candidates"], choice["held_out"], strict=False)
        told = ", ".join(f"{name} {wording.number(value)}" for name, value in judged)
        chosen = f" ({choice['name']}; C per coefficient of held-out frames: {told})"
    method = _METHODS.get(result["method"], result["method"])
    return (
        f"{wording.seconds(data['seconds'])} of sound sampled at {wording.number(data['rate'])} Hz from "
        f"{', '.join(data['files'])}, in {wording.number(result['n_frames'])} frames of "
        f"{wording.number(result['frame_length'])} samples. Separated in {method}{chosen}{trained}. The fit "
        f"took {wording.ending(result)}."
    )


def _is_cosine(result: Mapping[str, Any]) -> bool:
    choice = result["transform_choice"]
    return choice is not None and choice["name"] != "learned"


def _has_atoms(model: Any) -> bool:
    """Tell whether the transform has atoms of its own; those of the STFT are known."""
    return hasattr(model.model_, "transform_")


def _power_by_source(model: Any) -> FloatArray:
    """Return the power of each source in every atom or bin."""
    components, W = model.model_.components_, model.activations_
    groups = [model.groups_ == at for at in range(len(model.source_names_))]
    return np.stack([W[:, own].sum(axis=0) @ components[own] for own in groups])


def _frequencies(model: Any, source: int, rate: int) -> list[float]:
    """Return frequencies at which a source has most of its power, each partial once."""
    power, length = _power_by_source(model)[source], model.framing_.frame_length
    strongest = np.argsort(-power, kind="stable")[: 4 * _N_PEAKS]
    strongest = strongest[power[strongest] > _LEAST_SHARE * power.sum()]
    if length < 4 or len(strongest) == 0:  # too short for a sinusoid, or silent
        return []
    if _has_atoms(model):
        # Atoms nearer than the resolution of a frame are one partial in two phases.
        hertz = fit_sinusoids(model.model_.transform_[strongest], sample_rate=rate).frequency
        places, resolution = hertz, rate / length / 2
    else:
        # A Hann window spreads a partial over 4 bins.
        hertz = bin_frequencies(model.framing_, model.model_, rate)[strongest]
        places, resolution = strongest, 2
    distinct: list[int] = []
    for at, place in enumerate(places):
        if all(abs(place - places[other]) > resolution for other in distinct):
            distinct.append(at)
    return [float(value) for value in hertz[distinct[:_N_PEAKS]]]


def _atoms(model: Any, rate: int) -> list[dict[str, Any]]:
    if not _has_atoms(model):
        return []
    chosen, by_source = model.strongest_atoms(_N_ATOMS), _power_by_source(model)
    power, long_enough = by_source.sum(axis=0), model.model_.n_features_in_ >= 4
    sinusoids = fit_sinusoids(model.model_.transform_[chosen], sample_rate=rate) if long_enough else None
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


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    separated = record.shown["separated"]
    model, sound, sources = separated.model, separated.sounds[0], separated.sources[0]
    entries, atoms = record.details["sources"], record.details["atoms"]
    rate, components = sound.rate, model.model_.components_
    activations = model.activations_[: model.framing_.n_frames(sound.samples.shape[-1])]
    names = _component_names(record)
    by_source = len(components) > _N_PANELS
    lines, line_names = activations, names
    if by_source:
        weighted = activations * components.sum(axis=1)
        lines = np.stack([weighted[:, model.groups_ == at].sum(axis=1) for at in range(len(entries))], axis=1)
        line_names = [entry["name"] for entry in entries]
    frequencies = bin_frequencies(model.framing_, model.model_, rate)
    seconds = sound.samples.shape[-1] / rate
    return [
        _source_section(record, sound, sources),
        _spectrograms(sound, sources, entries),
        _atom_section(record, model) if atoms else None,
        html.section(
            "The components",
            html.legend("0 to the maximum of each component"),
            html.figure(
                _templates(components, frequencies, rate, names),
                [
                    f"Templates: the {'variance' if atoms else 'magnitude'} that a component gives to each "
                    f"{'atom, atoms by frequency' if atoms else 'frequency'}. Components are numbered as in ",
                    html.element("code", "--group"),
                    ".",
                ],
            ),
            html.figure(
                _activations(lines, seconds, line_names),
                f"Activations: how strong each {'source' if by_source else 'component'} is over time, on a "
                f"scale of {_DECIBELS:.0f} dB below its strongest moment.",
            ),
        ),
    ]


def _source_section(record: Record, sound: Sound, sources: FloatArray) -> Raw:
    players, note = _players(sound.samples, sources, sound.rate) if record.shown["players"] else ([], "")
    n_recordings = len(record.data["files"])
    if n_recordings > 1:
        note = f"This is the first of {n_recordings} recordings. {note}".rstrip()
    rows: list[list[Any]] = [
        [
            entry["name"], wording.percent(entry["energy_share"]), wording.ranges(entry["components"]),
            ", ".join(f"{value:.0f} Hz" for value in entry["frequencies"]),
        ]
        for entry in record.details["sources"]
    ]  # fmt: skip
    headings = ["source", ">energy", ">components", "strongest frequencies"]
    if players:
        rows.insert(0, ["recording", "", "", ""])
        rows = [[row[0], player, *row[1:]] for row, player in zip(rows, players, strict=True)]
        headings.insert(1, "listen")
    return html.section(
        "The sources",
        html.paragraph(
            "The sources sum to the recording, sample by sample. Percentages are shares of the energy."
        ),
        html.table(headings, rows),
        html.paragraph(note, note=True) if note else None,
    )


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


def _component_names(record: Record) -> list[str]:
    """Name components by number, from 1, and source; by the source alone where each has one component."""
    names = {int(at): entry["name"] for entry in record.details["sources"] for at in entry["components"]}
    n_components = record.result["n_components"]
    alone = n_components == record.result["n_sources"]
    return [names[at] if alone else f"{at} ({names[at]})" for at in range(1, n_components + 1)]


def _atom_section(record: Record, model: Any) -> Raw:
    entries = record.details["atoms"]
    fixed = record.result["method"] == "dct" or _is_cosine(record.result)
    said = "The cosines that carry most of the power. Their frequencies lie on a fixed grid."
    if not fixed:
        said = (
            "The atoms that carry most of the power, with the frequency of the sinusoid that fits each best, "
            "and the share of the atom that is not that sinusoid. A learned transform is not bound to a "
            "grid: two atoms at the same frequency are one partial in two phases."
        )
    headings = [">atom", ">power", ">frequency, Hz", ">not a sinusoid", "source"]
    rows = [
        [
            wording.number(entry["atom"]), wording.percent(entry["power_share"]),
            wording.number(None) if entry["frequency"] is None else f"{entry['frequency']:.1f}",
            wording.percent(entry["residual_share"]), entry["source"],
        ]
        for entry in entries
    ]  # fmt: skip
    return html.section(
        "The atoms" if fixed else "What the transform has learned",
        html.paragraph(said),
        html.table(headings, rows),
    )


def _row_label(axes: Any, text: str) -> None:
    axes.set_yticks([])
    axes.set_ylabel(text, color=drawings.INK, rotation=0, ha="right", va="center", parse_math=False)


def _activations(W: FloatArray, seconds: float, labels: Sequence[str]) -> Raw:
    """Draw how strong each component is over time, in decibels."""
    lines = drawings.scaled_rows(drawings.averaged(W.T, 1000))
    lines = np.maximum(_DECIBELS + 10 * np.log10(np.maximum(lines, np.finfo(float).tiny)), 0.0)
    whole, grid = drawings.panels(10.4, 0.9 * len(lines) + 0.6, len(lines))
    for axes, line, name in zip(grid, lines, labels, strict=True):
        axes.fill_between(np.linspace(0.0, seconds, len(line)), line, color=drawings.ACCENT, linewidth=0)
        axes.set_xlim(0.0, seconds if seconds > 0 else 1.0)
        axes.set_ylim(0.0, 1.05 * _DECIBELS)
        _row_label(axes, name)
        if axes is not grid[-1]:
            axes.set_xticklabels([])
    grid[-1].set_xlabel("seconds", color=drawings.INK)
    return drawings.drawing(whole, "Activations of the components over time")


def _templates(components: FloatArray, frequencies: FloatArray, rate: float, names: Sequence[str]) -> Raw:
    """Draw the spectra of components, each scaled to its own maximum."""
    k, order = len(components), np.argsort(frequencies, kind="stable")
    whole, (axes,) = drawings.panels(10.4, float(np.clip(0.17 * k + 1.0, 1.9, 8.0)))
    _shades(axes.pcolormesh, frequencies[order], np.arange(k), drawings.scaled_rows(components)[:, order])
    axes.invert_yaxis()
    ticks = range(0, k, max(1, -(-k // 20)))
    axes.set_yticks(ticks, [names[at] for at in ticks], parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    axes.set_xlim(_lowest(rate), rate / 2)
    axes.xaxis.set_major_formatter("{x:g}")
    drawings.label(axes, "Hz", grid=False)
    return drawings.drawing(whole, "Spectra of the components")


def _spectrograms(sound: Sound, sources: FloatArray, entries: Sequence[Mapping[str, Any]]) -> Raw:
    names = ["the recording", *(entry["name"] for entry in entries)]
    spectra = [_spectrogram(signal, sound.rate) for signal in (sound.samples, *sources)]
    # One scale for all: where sources cancel each other, they are louder than the recording.
    loudest = max(max(float(power.max()) for _, _, power in spectra), 1e-300)
    cards = []
    for name, (hertz, times, power) in zip(names, spectra, strict=True):
        shade = 1 + 10 / _DECIBELS * np.log10(np.maximum(power / loudest, 10 ** (-_DECIBELS / 10)))
        whole, (axes,) = drawings.panels(5.2, 2.9)
        _shades(axes.pcolormesh, times, hertz, shade)
        axes.set_yscale("log")
        axes.set_ylim(_lowest(sound.rate), sound.rate / 2)
        axes.yaxis.set_major_formatter("{x:g}")
        drawings.label(axes, "seconds", "Hz", grid=False)
        heading = f"{name[:1].upper()}{name[1:]}"
        cards.append(html.figure(drawings.drawing(whole, f"Spectrogram: {heading}"), heading, wide=False))
    return html.section(
        "Before and after",
        html.paragraph("Spectrograms of the recording and of its sources, in the same shades."),
        html.legend("0 dB, the loudest of all", f"-{_DECIBELS:.0f} dB"),
        html.side_by_side(*cards),
    )


def _spectrogram(signal: FloatArray, rate: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return frequencies, times and the power, the mean of the channels."""
    length = min(1 << int(np.ceil(np.log2(max(rate / 12, 16)))), signal.shape[-1])
    hop = max(length // 8, signal.shape[-1] // 2000, 1)  # a long recording has no more frames than pixels
    overlap = max(length - hop, 0)
    hertz, times, power = spectrogram(signal, rate, "hann", length, overlap, detrend=False)
    return hertz[1:], times, power.reshape(-1, *power.shape[-2:]).mean(axis=0)[1:]


def _lowest(rate: float) -> float:
    """Return the frequency at the end of a logarithmic axis."""
    return min(40.0, rate / 100)


def _shades(mesh: Any, x: Any, y: Any, cells: FloatArray) -> None:
    """Draw cells from 0 (light) to 1 (dark) as one picture inside the drawing."""
    mesh(x, y, cells, cmap="Blues", vmin=0.0, vmax=1.0, shading="nearest", rasterized=True)
