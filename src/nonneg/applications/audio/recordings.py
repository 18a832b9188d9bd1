"""Recordings as users pass them: checked, and their sources in the same form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio.frames import as_recordings
from nonneg.exceptions import InvalidDataError, NonFiniteDataError, ShapeError

KINDS = ("aligned", "consecutive")


@dataclass(frozen=True)
class Recordings:
    """Signals that were checked."""

    # Aligned recordings, and the channels of one, are one array of shape (n_recordings, n_samples);
    # consecutive recordings are several, with one row per channel.
    parts: list[FloatArray]
    listed: bool  # whether they came as a list, and sources are returned as one
    single: tuple[bool, ...]  # for each part, whether it came as one signal

    @property
    def lengths(self) -> list[int]:
        """Samples of every part."""
        return [part.shape[1] for part in self.parts]

    @property
    def shortest(self) -> int:
        """Samples of the shortest part."""
        return min(self.lengths)

    def like_given(self, sources: list[FloatArray]) -> Any:
        """Bring the sources of parts, (n_sources, n_recordings, n_samples), into the form of the input."""
        found = [part[:, 0] if single else part for part, single in zip(sources, self.single, strict=True)]
        if self.listed:
            return found
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


def checked_recordings(signals: Any, kind: str) -> Recordings:
    """Check recordings: finite numbers, of the shapes that go together."""
    # A sequence of signals rather than one array or one signal.
    ragged = isinstance(signals, Sequence) and len(signals) > 0 and np.ndim(signals[0]) > 0
    if ragged and kind == "aligned" and len({len(signal) for signal in signals}) > 1:
        raise ShapeError(
            f"Aligned recordings have the same length, got {[len(signal) for signal in signals]} samples. "
            "Cut them to the same part of the piece, or pass recordings='consecutive' (--recordings "
            "consecutive)."
        )
    one_by_one = ragged and kind == "consecutive"
    parts = [as_recordings(signal) for signal in signals] if one_by_one else [as_recordings(signals)]
    for part in parts:
        if not np.isfinite(part).all():
            row, at = np.argwhere(~np.isfinite(part))[0]
            raise NonFiniteDataError(
                f"Sample {at} of recording {row} is {part[row, at]}. Expected finite numbers. Replace it, or "
                "cut that part out."
            )
        # Files of floats may hold such samples; the fifth root leaves room for sums over a frame.
        if (peak := float(np.abs(part).max(initial=0.0))) > float(np.finfo(part.dtype).max) ** 0.2:
            raise InvalidDataError(
                f"The largest sample is {peak:.3g}: products of powers overflow in {part.dtype}. Divide the "
                "recording by its largest sample, or read the file again if it is damaged."
            )
    if one_by_one:
        return Recordings(parts, True, tuple(np.ndim(signal) == 1 for signal in signals))
    single = not ragged and np.ndim(signals) == 1
    if kind == "consecutive" and not single:
        parts = [row[None] for row in parts[0]]
    return Recordings(parts, False, (single,) * len(parts))


def check_sound(recordings: Recordings, frame_length: int, called: str = "recording") -> None:
    """Reject recordings that are shorter than a frame, or silent."""
    for at, part in enumerate(recordings.parts):
        n_recordings, n_samples = part.shape
        if n_samples >= frame_length:
            continue
        name = f"The {called}" if len(recordings.parts) == 1 else f"{called.capitalize()} {at}"
        hint = "Record more, or use a shorter frame_length."
        if n_recordings >= frame_length:
            hint = "Recordings are rows: pass signals.T, whose rows are the channels."
        raise InvalidDataError(
            f"{name} has {n_samples} samples, less than one frame of {frame_length}. {hint}"
        )
    if all((part == part[:, :1]).all() for part in recordings.parts):
        what = "constant: expected sound, got the same number throughout"
        if not any(part.any() for part in recordings.parts):
            what = "silent: expected sound, got zeros only"
        raise InvalidDataError(f"The {called} is {what}. Check the file and its channel.")
