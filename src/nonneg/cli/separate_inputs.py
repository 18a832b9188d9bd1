"""The sounds of `nonneg separate`: recordings, and training recordings of the sources."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio import Sound, read_sound
from nonneg.cli import terminal
from nonneg.exceptions import InvalidDataError, InvalidParameterError


def read_recordings(options: argparse.Namespace) -> list[Sound]:
    """Read the recordings, and of each the part that was asked for."""
    channel = int(options.channel) if options.channel.isdecimal() else options.channel
    sounds = [read_sound(path, channel=channel, rate=options.rate) for path in options.files]
    rates = sorted({sound.rate for sound in sounds})
    if len(rates) > 1:
        raise InvalidDataError(
            f"The files have sampling rates of {rates} Hz; they must be equal. Resample them with --rate, "
            f"such as --rate {rates[0]}."
        )
    if options.begin < 0:
        raise InvalidParameterError(f"--begin must be at least 0, got {options.begin}.")
    parts = []
    for sound in sounds:
        first = round(options.begin * sound.rate)
        last = None if options.seconds is None else first + round(options.seconds * sound.rate)
        part = sound.samples[..., first:last]
        if part.shape[-1] == 0:
            raise InvalidDataError(
                f"{sound.source} ends after {sound.samples.shape[-1] / sound.rate:.2f} s; nothing is left "
                f"after --begin {options.begin:g}."
            )
        parts.append(replace(sound, samples=part))
    if not any(part.samples.any() for part in parts):
        names = ", ".join(sound.source for sound in parts)
        raise InvalidDataError(f"{names}: nothing but silence. Check the file, --channel and --begin.")
    if not options.quiet:
        for sound in parts:
            used = "" if options.channel == "all" else f" ({options.channel})"
            _note_of(sound, "" if sound.n_channels == 1 else f", {sound.n_channels} channels{used}")
    return parts


def read_training(options: argparse.Namespace, rate: int) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the training recordings of each source at a rate, and the names of their files."""
    signals: dict[str, Any] = {}
    files: dict[str, list[str]] = {}
    for text in options.train or ():
        name, path, is_named = _name_and_path(text)
        if name in signals and not is_named:
            raise InvalidParameterError(
                f"--train {text}: a source called {name} already has a training recording. Give this one "
                f"its own name, --train NAME={text}, or add it to the same source, --train {name}={text}."
            )
        sound = read_sound(path, channel="all")
        if not sound.samples.any():
            raise InvalidDataError(f"The training file {sound.source} is silent: it contains only zeros.")
        if sound.rate != rate:
            terminal.note(f"note: {sound.source} was resampled from {sound.rate} to {rate} Hz")
            sound = read_sound(path, channel="all", rate=rate)
        if not options.quiet:
            _note_of(sound, f", training of {name}")
        signals.setdefault(name, []).append(sound.samples)
        files.setdefault(name, []).append(sound.source)
    return signals, files


def _name_and_path(text: str) -> tuple[str, Path, bool]:
    """Split NAME=FILE; without a name, a source is named after its file."""
    name, sign, rest = text.partition("=")
    if sign and name.strip() and not Path(text).exists():
        return name.strip(), Path(rest), True
    return Path(text).stem, Path(text), False


def _note_of(sound: Sound, more: str) -> None:
    terminal.note(f"read {sound.source}: {sound.samples.shape[-1] / sound.rate:.2f} s, {sound.rate} Hz{more}")


def grouping_by_hand(groups: Sequence[tuple[str, list[int]]]) -> dict[str, list[int]]:
    """Return the components of each source, from 0 as in Python; on the command line they begin at 1."""
    names = [name for name, _ in groups]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameterError(
                f"--group {name}=... was given twice. List all components of {name} in one."
            )
    return {name: [number - 1 for number in numbers] for name, numbers in groups}


def stacked(signals: Sequence[FloatArray], kind: str) -> Any:
    """Bring the signals of files into the form that `SourceSeparation` takes."""
    if kind == "consecutive":
        return list(signals)
    return signals[0] if len(signals) == 1 else [row for signal in signals for row in np.atleast_2d(signal)]


def separated_by_recording(sources: Any, sounds: Sequence[Sound], kind: str) -> list[FloatArray]:
    """Return the sources of every recording: one array each, with channels where the file has several."""
    if kind == "consecutive":
        return list(sources)
    if len(sounds) == 1:
        return [sources]
    ends = np.cumsum([len(np.atleast_2d(sound.samples)) for sound in sounds])[:-1]
    parts = np.split(sources, ends, axis=1)
    return [
        part[:, 0] if sound.samples.ndim == 1 else part for part, sound in zip(parts, sounds, strict=True)
    ]
