"""`nonneg separate FILE...`: the sources of a recording, or of several."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonneg.cli import arguments, terminal
from nonneg.exceptions import InvalidDataError, InvalidParameterError

if TYPE_CHECKING:
    from nonneg._typing import FloatArray
    from nonneg.applications.audio import Sound
    from nonneg.report.record import Record

OPTIONS = """
files FILE+: sound files: .wav .flac .ogg ...; several are recordings of the same piece, aligned sample by
    sample
-k/--sources N: number of sources (default: the number that --train names, but at least 2)
--train [NAME=]FILE+: solo recording of a source, which is named after the file or NAME; repeat for each
    source, or for several recordings of the same NAME. Further sources (-k) are learned from the recording
    itself
--group NAME=N,N,...+: components of a source by hand, numbered from 1 as in the report; repeat for each
    source. Components that are not listed form a source called rest

[sound]
--rate N: resample to this rate first, in hertz
--seconds P: use only this many seconds, from the beginning
--frame-length N: samples per frame (default: 46 to 372 ms, as concentrates the energy; 512 for
    transforms)

[model]
--method stft|transform|tl|jd|dct: the short-time Fourier transform (stft, default); a transform learned with
    the components (tl) or before them (jd), the cosine transform (dct), or the learned or the cosine
    transform, whichever explains held-out frames better (transform)
--components N: total number of components (default: eight per source; one for transforms)
--grouping auto|timbre|timbre-dynamics: how components are grouped into sources: by their spectra
    (timbre), by spectra up to a transposition and dynamics (timbre-dynamics), or by the one of these that
    leaves the least of the differences within sources (auto, default)

[search]
--max-iter
--tol
--seed
--n-jobs
--checkpoint
"""
KINDS: dict[str, Any] = {"group": {"type": arguments.named_counts}, "train": {"type": str}}


def run(options: argparse.Namespace) -> None:
    """Read, separate, write."""
    import numpy as np

    from nonneg.applications import SourceSeparation
    from nonneg.report import sounds

    folder = arguments.output_folder(options, options.files[0], "sources")
    first, *others = options.files
    recordings = [read_at(first, options.rate, options.seconds)]
    recordings += [read_at(path, recordings[0].rate, options.seconds) for path in others]
    training, trained_on = _read_training(options, recordings[0].rate)
    model = SourceSeparation(options.sources, **_parameters(options))
    signals = [np.atleast_2d(sound.samples) for sound in recordings]
    sources, seconds = terminal.timed(
        model.fit_separate,
        [channel for signal in signals for channel in signal] if others else recordings[0].samples,
        recordings[0].rate,
        training=training or None,
    )
    parts = [sources]
    if others:
        # As many channels for every recording as it has.
        ends = np.cumsum([len(signal) for signal in signals])[:-1]
        parts = [
            part if sound.samples.ndim > 1 else part[:, 0]
            for part, sound in zip(np.split(np.asarray(sources), ends, axis=1), recordings, strict=True)
        ]
    record = sounds.describe(model, recordings, parts, seconds, trained_on)
    add_sounds(record, recordings, parts)
    terminal.finish(folder, record)


def read_at(path: Path, rate: int | None, seconds: float | None = None) -> Sound:
    """Read a sound with all channels at a rate, and of it the part that was asked for."""
    from nonneg.applications.audio import read_sound

    sound = read_sound(path, channel="all")
    if rate is not None and sound.rate != rate:
        own, sound = sound.rate, read_sound(path, channel="all", rate=rate)
        terminal.note(f"note: {sound.source} was resampled from {own} to {rate} Hz")
    if seconds is not None:
        sound = replace(sound, samples=sound.samples[..., : max(1, round(seconds * sound.rate))])
    if not sound.samples.any():
        raise InvalidDataError(f"{sound.source}: nothing but silence. Check the file and --seconds.")
    channels = "" if sound.n_channels == 1 else f", {sound.n_channels} channels"
    length = sound.samples.shape[-1] / sound.rate
    terminal.progress(f"read {sound.source}: {length:.2f} s, {sound.rate} Hz{channels}")
    return sound


def _read_training(options: argparse.Namespace, rate: int) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the training recordings of each source at a rate, and the names of their files."""
    signals: dict[str, Any] = {}
    files: dict[str, list[str]] = {}
    for text in options.train or ():
        name, sign, rest = text.partition("=")
        is_named = bool(sign and name.strip()) and not Path(text).exists()
        name, path = (name.strip(), Path(rest)) if is_named else (Path(text).stem, Path(text))
        sound = read_at(path, rate)
        signals.setdefault(name, []).append(sound.samples)
        files.setdefault(name, []).append(sound.source)
    return signals, files


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `SourceSeparation`."""
    params = arguments.parameters(
        options, "frame_length", "method", "max_iter", "tol", "checkpoint", "grouping",
        n_components="components",
    )  # fmt: skip
    if options.group:
        if options.grouping is not None:
            raise InvalidParameterError(
                "--group says which components belong to which source, and --grouping how to find out: leave "
                "one of them out."
            )
        names = [name for name, _ in options.group]
        for name in names:
            if names.count(name) > 1:
                raise InvalidParameterError(
                    f"--group {name}=... was given twice. List all components of {name} in one."
                )
        # From 0 as in Python; on the command line components begin at 1.
        params["grouping"] = {name: [number - 1 for number in own] for name, own in options.group}
    return params


def add_sounds(record: Record, sounds: Sequence[Sound], parts: Sequence[FloatArray]) -> None:
    """Add the sources to the files of a record, with the samples of each recording where they fit."""
    import numpy as np

    from nonneg.applications.audio import write_sound
    from nonneg.applications.audio.files import EXACT

    entries = record.details["sources"]
    stems: list[str] = []
    for at, entry in enumerate(entries):
        stem = re.sub(r"[^\w.+-]+", "-", entry["name"]).strip("-.") or f"source-{at + 1}"
        stems.append(stem if stem.lower() not in [other.lower() for other in stems] else f"{stem}-{at + 1}")
    peak = max(float(np.abs(sources).max()) for sources in parts)
    for number, (sound, sources) in enumerate(zip(sounds, parts, strict=True), 1):
        # Whole numbers end at full scale, which a source may exceed where the recording does not.
        subtype = sound.subtype if sound.subtype in EXACT and peak <= 1 else "FLOAT"
        for entry, stem, source in zip(entries, stems, sources, strict=True):
            name = f"recording-{number}-{stem}.wav" if len(sounds) > 1 else f"{stem}.wav"
            entry.setdefault("files", []).append(name)
            record.files[name] = partial(write_sound, samples=source.T, rate=sound.rate, subtype=subtype)
