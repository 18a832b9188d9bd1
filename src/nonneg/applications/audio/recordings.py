"""Recordings as users pass them, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio.frames import as_recordings
from nonneg.applications.audio.sources import checked_names
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonFiniteDataError


def checked_recordings(signals: Any) -> FloatArray:
    """Return recordings of equal length or the channels of one, (n_recordings, n_samples)."""
    recordings = as_recordings(signals)
    if not np.isfinite(recordings).all():
        row, at = np.argwhere(~np.isfinite(recordings))[0]
        raise NonFiniteDataError(
            f"Sample {at} of recording {row} is {recordings[row, at]}. Expected finite numbers. Replace it, "
            "or cut that part out."
        )
    # Files of floats may hold such samples; the fifth root leaves room for sums over a frame.
    limit = float(np.finfo(recordings.dtype).max) ** 0.2
    if (peak := float(np.abs(recordings).max())) > limit:
        raise InvalidDataError(
            f"The largest sample is {peak:.3g}: products of powers overflow in {recordings.dtype}. Divide "
            "the recording by its largest sample, or read the file again if it is damaged."
        )
    return recordings


def checked_training(training: Any) -> dict[str, list[FloatArray]]:
    """Return the solo recordings of each source, by its name."""
    if training is None:
        return {}
    if not isinstance(training, Mapping) or not training:
        raise InvalidParameterError(
            "training: expected solo recordings by the names of their sources, such as {'drums': signal, "
            f"'bass': signal}}, got {'none' if isinstance(training, Mapping) else type(training).__name__}."
        )
    checked_names(list(training), "training")
    return {
        name: [checked_recordings(one) for one in (solo if _is_list(solo) else [solo])]
        for name, solo in training.items()
    }


def _is_list(signals: Any) -> bool:
    """Tell a list of signals from one array or one signal."""
    return isinstance(signals, Sequence) and len(signals) > 0 and np.ndim(signals[0]) > 0


def check_sound(recordings: FloatArray, frame_length: int, called: str = "recording") -> None:
    """Reject recordings that are shorter than a frame, or silent."""
    n_recordings, n_samples = recordings.shape
    if n_samples < frame_length:
        hint = "Record more, or use a shorter frame_length."
        if n_recordings >= frame_length:
            hint = "Recordings are rows: pass signals.T, whose rows are the channels."
        raise InvalidDataError(
            f"The {called} has {n_samples} samples, less than one frame of {frame_length}. {hint}"
        )
    if (recordings == recordings[:, :1]).all():
        what = "constant: expected sound, got the same number throughout"
        if not recordings.any():
            what = "silent: expected sound, got zeros only"
        raise InvalidDataError(f"The {called} is {what}. Check the file and its channel.")
