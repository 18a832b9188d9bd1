"""Sound files: .wav, .flac and other formats of libsndfile."""

from __future__ import annotations

import io
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_count, checked_path, is_count
from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import (
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    OutputError,
    ShapeError,
)
from nonneg.io.memory import checked_memory

WRITABLE = {".wav": ("WAV", "FLOAT"), ".flac": ("FLAC", "PCM_24")}
"""Endings of files that can be written -> format and default kind of samples."""
EXACT = {"PCM_16": 16, "PCM_24": 24, "PCM_32": 32}
"""Kinds of samples that are whole numbers, and their bits."""
MOST_CHANNELS = 1024


@dataclass(frozen=True)
class Sound:
    """A sound that was read.

    Attributes
    ----------
    samples : array of shape (n_samples,) or (n_channels, n_samples)
        In [-1, 1] unless the file contains larger floats; one row per channel if all were read.
    rate : int
        Sampling rate in hertz.
    n_channels : int
        Channels of the file.
    source : str
        Name of the file, without its folders.
    subtype : str or None
        The kind of samples in libsndfile's words, such as "PCM_16" or "FLOAT".
    """

    samples: FloatArray
    rate: int
    n_channels: int
    source: str
    subtype: str | None = None


def read_sound(
    path: str | os.PathLike[str], *, channel: int | str = "mean", rate: int | None = None
) -> Sound:
    """Read a sound file.

    Parameters
    ----------
    path : str or path
        Such as a .wav or .flac file.
    channel : int, "mean" or "all", default "mean"
        Which channel of several, from 0, or their mean, or all of them.
    rate : int, optional
        Resample to this rate in hertz; by default the rate of the file is kept.

    Returns
    -------
    Sound
        One channel in double precision, or one row per channel.

    Raises
    ------
    FileFormatError
        If the file does not exist or is not a sound file.
    InvalidDataError
        If it contains no samples, or one that is NaN or infinite.
    """
    from scipy.signal import resample_poly

    name = Path(path).name
    samples, own_rate, subtype = _decoded(checked_path(path))
    n_samples, n_channels = samples.shape
    if n_samples == 0:
        raise InvalidDataError(
            f"{name} contains no samples: expected a sound, got an empty file. Record again."
        )
    if channel in ("all", "mean"):
        rows = samples.T if channel == "all" else samples.mean(axis=1, keepdims=True).T
        one = rows[0].copy() if len(rows) == 1 else np.ascontiguousarray(rows)
    elif is_count(channel, 0) and int(channel) < n_channels:
        one = samples[:, int(channel)].copy()
    else:
        raise InvalidParameterError(
            f"channel={channel!r}: {name} has {n_channels} channel{'s' * (n_channels > 1)}. Expected 'all', "
            f"'mean' or a number from 0 to {n_channels - 1}."
        )
    if not np.isfinite(one).all():
        at = int(np.argwhere(~np.isfinite(np.atleast_2d(one)))[:, 1].min())
        raise NonFiniteDataError(
            f"{name}: sample {at} ({at / own_rate:.3f} s) is {one[..., at]}. Expected finite numbers. Write "
            "the file again with integer samples, or cut the damaged part out."
        )
    if rate is not None and rate != own_rate:
        common = math.gcd(own_rate, checked_count("rate", rate))
        # Eight bytes per sample: the result, the filter, its spectrogram and the models of it.
        if 32.0 * one.size * rate / own_rate > checked_memory(None):
            raise InvalidParameterError(
                f"rate={rate}: {name} has {own_rate} Hz, and this takes too much memory. Choose a lower rate."
            )
        one = np.asarray(resample_poly(one, int(rate) // common, own_rate // common, axis=-1))
    return Sound(one, own_rate if rate is None else int(rate), n_channels, name, subtype)


def write_sound(path: str | os.PathLike[str], samples: Any, rate: int, *, subtype: str | None = None) -> None:
    """Write a sound file; an existing one is replaced when the new one is complete.

    Parameters
    ----------
    path : str or path
        Ends in .wav or .flac.
    samples : array-like of shape (n_samples,) or (n_samples, n_channels)
        In [-1, 1], where full scale is 1; a .wav file of floats may contain larger values. A `Sound` with all
        channels has them in rows: pass ``samples.T``.
    rate : int
        Sampling rate in hertz.
    subtype : str, optional
        The kind of samples in libsndfile's words, such as "PCM_16". By default 32-bit floats (.wav), so that
        nothing is clipped, or 24 bits (.flac).

    Raises
    ------
    InvalidParameterError
        If the file name has another ending, the format has no such subtype, or the rate is not a positive
        whole number.
    InvalidDataError
        If samples are not finite, or would be clipped.
    OutputError
        If the file cannot be written; an existing one is kept.
    """
    soundfile = _soundfile()
    place = Path(path)
    form, usual = WRITABLE.get(place.suffix.lower(), (None, ""))
    if form is None:
        raise InvalidParameterError(
            f"Expected a file name that ends in {' or '.join(WRITABLE)}, got {place.name!r}."
        )
    subtype = usual if subtype is None else subtype
    if not soundfile.check_format(form, subtype):
        raise InvalidParameterError(
            f"{place.suffix} files do not support samples of type {subtype!r}. Expected one of "
            f"{', '.join(soundfile.available_subtypes(form))}."
        )
    checked_count("rate", rate)
    entries = _checked_samples(samples)
    peak = float(np.abs(entries).max())
    if peak > 1 and subtype not in ("FLOAT", "DOUBLE"):
        raise InvalidDataError(
            f"The largest sample is {peak:.3g}: {place.suffix} with {subtype} is limited to [-1, 1] and "
            f"would clip it. Write a .wav file of floats, or divide the samples by {peak:.3g}."
        )
    temporary = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        # libsndfile does not say that the disk is full while it writes .flac.
        encoded = io.BytesIO()
        soundfile.write(encoded, _encoded(entries, subtype), int(rate), format=form, subtype=subtype)
        temporary.write_bytes(encoded.getbuffer())
        temporary.replace(place)
    except (OSError, soundfile.SoundFileError) as error:
        temporary.unlink(missing_ok=True)
        raise OutputError(f"{path} could not be written: {error}. Choose another path.") from error


def _checked_samples(samples: Any) -> FloatArray:
    entries = np.asarray(samples)
    fits = entries.ndim == 1 or (entries.ndim == 2 and entries.shape[1] <= MOST_CHANNELS)
    if not fits or 0 in entries.shape or entries.dtype.kind != "f":
        raise ShapeError(
            "Expected floats of shape (n_samples,) or (n_samples, n_channels) with at least one sample and "
            f"at most {MOST_CHANNELS} channels, got {entries.dtype} of shape {entries.shape}. Divide whole "
            "numbers by the largest of their type, and pass samples.T if rows are channels."
        )
    if not np.isfinite(entries).all():
        raise NonFiniteDataError("Expected finite samples, got NaN or infinity.")
    return entries.astype(np.float64)


def _decoded(path: Path) -> tuple[FloatArray, int, str]:
    soundfile = _soundfile()
    if not path.is_file():
        raise FileFormatError(f"{path} does not exist, or is not a file. Check the name of the sound file.")
    try:
        with soundfile.SoundFile(path) as opened:
            rate, subtype = opened.samplerate, opened.subtype
            samples = opened.read(dtype="float64", always_2d=True)
    except (OSError, soundfile.SoundFileError) as error:
        reason = str(getattr(error, "error_string", error)).strip().rstrip(".")
        raise FileFormatError(
            f"{path.name} could not be read as sound ({reason}). Expected .wav, .flac or another format of "
            "libsndfile. Convert it first, for example with: ffmpeg -i IN OUT.wav"
        ) from error
    return samples, int(rate), str(subtype)


def _encoded(samples: FloatArray, subtype: str) -> Any:
    """Return what libsndfile writes without rounding: it reads and writes floats with different scales."""
    if subtype not in EXACT:
        return samples
    bits = EXACT[subtype]
    largest = 2.0 ** (bits - 1)
    whole = np.clip(np.rint(samples * largest), -largest, largest - 1).astype(np.int64)
    return (whole << (32 - bits)).astype(np.int32)


def _soundfile() -> Any:
    return import_optional("soundfile", extra="audio", purpose="Reading and writing sound files")
