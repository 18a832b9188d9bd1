"""`nonneg separate FILE...`: the sources of a recording, or of several."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonneg.cli import arguments, terminal

if TYPE_CHECKING:
    from nonneg._typing import FloatArray
    from nonneg.applications.audio import Sound


OPTIONS = """
files FILE+: sound files: .wav .flac .ogg ...; several are realizations of the same piece, aligned sample by
    sample
-k/--sources K: number of sources (default: the number that --train or --group names, otherwise 2)
--train [NAME=]FILE+: solo recording of a source, which is named after the file or NAME; repeat for each
    source, or for several recordings of the same NAME. Further sources (-k) are learned from the recording
    itself
--group NAME=N,N,...+: components of a source by hand, numbered from 1 as in the report; repeat for each
    source. Components that are not listed form a source called rest
-o/--output DIR: output folder (default: name of the first FILE + -sources)

[sound]
--channel C [all]: channels to use: all (default), their mean, or one: 0, 1, ...
--rate N: resample to this rate first, in hertz
--begin X [0.0]: skip this many seconds at the beginning
--seconds P: use only this many seconds
--frame-length N: samples per frame (default: 46 to 372 ms, as concentrates the energy; 512 for
    transforms)
--hop N: samples from one frame to the next (default: a quarter of a frame; half for transforms)

[model]
--method stft|transform|tl|jd|dct: the short-time Fourier transform (stft, default); a transform learned with
    the components (tl) or before them (jd), the cosine transform (dct), or the learned or the cosine
    transform, whichever explains held-out frames better (transform)
--components N: total number of components (default: eight per source; one for transforms)
--grouping auto|timbre|timbre-dynamics|harmonic-percussive: how components are grouped into
    sources: by their spectra (timbre), by spectra and dynamics (timbre-dynamics), by the one of these whose
    sources have the more equal energies (auto, default), or into sustained and struck sounds
    (harmonic-percussive, two sources)

[search]
--n-init N: number of initializations (default: 1; 3 for transforms)
--init NAME: initialization of transforms: dct (default), jd or random
--max-iter
--tol
--seed
--n-jobs
--checkpoint

[output]
--format wav|flac [wav]: format of the sources (default: wav), with the samples of the recording where
    possible: 16, 24 or 32 bits, or floats
--[no-]players: include audio players in the report
--quiet
"""
"""The options, as the help shows them."""
KINDS: dict[str, Any] = {
    "group": {"type": arguments.named_counts}, "train": {"type": str}, "players": {"default": True},
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Read, separate, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import SourceSeparation
    from nonneg.cli import sound_files
    from nonneg.report import sounds

    folder = arguments.output_folder(options, options.files[0], "sources")
    with terminal.warnings_as_notes():
        recordings = _read_recordings(options)
        training, trained_on = _read_training(options, recordings[0].rate)
        model = SourceSeparation(options.sources, **_parameters(options))
        known_names = list(training or dict(options.group or ()))
        names = sound_files.file_names(known_names, len(recordings), options.format)
        sound_files.check_targets(folder, names)
        started = time.perf_counter()
        sources = model.fit_separate(_stacked(recordings), recordings[0].rate, training=training or None)
        seconds = time.perf_counter() - started
        parts = _by_recording(sources, recordings)
        separated = sounds.Separated(model, recordings, parts, seconds, trained_on)
        names = sound_files.file_names(model.source_names_, len(recordings), options.format)
        sound_files.check_targets(folder, names)
        record = sounds.describe(separated, players=options.players)
        for at, entry in enumerate(record.details["sources"]):
            entry["files"] = [own[at] for own in names]
        record.files = sound_files.sound_files(separated, names, options.format)
        terminal.finish(folder, record)
    return 0


def _read_recordings(options: argparse.Namespace) -> list[Sound]:
    """Read the recordings, and of each the part that was asked for."""
    from nonneg.applications.audio import read_sound
    from nonneg.exceptions import InvalidDataError, InvalidParameterError

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


def _read_training(options: argparse.Namespace, rate: int) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the training recordings of each source at a rate, and the names of their files."""
    from nonneg.applications.audio import read_sound
    from nonneg.exceptions import InvalidDataError, InvalidParameterError

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
    from nonneg.exceptions import InvalidParameterError

    names = [name for name, _ in groups]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameterError(
                f"--group {name}=... was given twice. List all components of {name} in one."
            )
    return {name: [number - 1 for number in numbers] for name, numbers in groups}


def _stacked(sounds: Sequence[Sound]) -> Any:
    """Bring the signals of files into the form that `SourceSeparation` takes."""
    import numpy as np

    if len(sounds) == 1:
        return sounds[0].samples
    return [row for sound in sounds for row in np.atleast_2d(sound.samples)]


def _by_recording(sources: Any, sounds: Sequence[Sound]) -> list[FloatArray]:
    """Return the sources of every recording: one array each, with channels where the file has several."""
    import numpy as np

    if len(sounds) == 1:
        return [sources]
    ends = np.cumsum([len(np.atleast_2d(sound.samples)) for sound in sounds])[:-1]
    parts = np.split(sources, ends, axis=1)
    return [
        part[:, 0] if sound.samples.ndim == 1 else part for part, sound in zip(parts, sounds, strict=True)
    ]


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `SourceSeparation`."""
    from nonneg.exceptions import InvalidParameterError

    said = arguments.chosen(
        options, "frame_length", "hop", "method", "n_init", "init", "max_iter", "tol",
        "n_jobs", "checkpoint", "grouping", n_components="components", random_state="seed",
    )  # fmt: skip
    if options.group:
        if options.grouping is not None:
            raise InvalidParameterError(
                "--group says which components belong to which source, and --grouping how to find out: leave "
                "one of them out."
            )
        said["grouping"] = grouping_by_hand(options.group)
    return said | {"verbose": 0 if options.quiet else 1}
