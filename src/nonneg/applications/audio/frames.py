"""Frames of signals: windowed pieces from which no sample is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import get_window

from nonneg._arguments import checked_count
from nonneg._typing import FloatArray
from nonneg.exceptions import DataTypeError, InvalidDataError, InvalidParameterError, ShapeError

# A sample whose windows sum to less than this share of the largest sum could not be recovered.
_LEAST_WEIGHT = 1e-12


@dataclass(frozen=True)
class Framing:
    """Division of signals into overlapping frames.

    Parameters
    ----------
    frame_length : int
        Samples per frame, at least 2.
    hop : int or None
        Samples from one frame to the next, at most `frame_length`; None is half a frame.
    window : str, tuple or array of shape (frame_length,)
        What frames are multiplied by: "sine", "rectangular", a name or tuple that `scipy.signal.get_window`
        knows, such as "hann" or ("tukey", 0.1), or the weights themselves. Windows by name are periodic.
    centered : bool, default False
        Whether frames are centered at multiples of the hop, as in ``librosa.stft``: half a frame of zeros is
        added before and after a signal. Otherwise ``frame_length - hop`` zeros, and at the end what the last
        frame lacks, so that the first and last samples lie in as many frames as all others.

    Notes
    -----
    `join` multiplies by the window once more and divides by the sum of the squared windows: this gives the
    signal whose frames are nearest to those given, and the original signal if the frames of `split` are
    unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> framing = Framing(200, 100, ("tukey", 0.1))
    >>> frames = framing.split(np.sin(np.arange(15000)))
    >>> frames.shape
    (1, 151, 200)
    >>> bool(np.allclose(framing.join(frames, 15000), np.sin(np.arange(15000))))
    True
    """

    frame_length: int
    hop: Any = None
    window: Any = "sine"
    centered: bool = False

    def __post_init__(self) -> None:
        checked_count("frame_length", self.frame_length, 2)
        if self.hop is None:
            object.__setattr__(self, "hop", self.frame_length // 2)
        if checked_count("hop", self.hop) > self.frame_length:
            raise InvalidParameterError(f"hop={self.hop} exceeds frame_length={self.frame_length}.")
        if self.centered and self.hop > max(self.frame_length // 2, 1):
            raise InvalidParameterError(
                f"hop={self.hop} is more than half of frame_length={self.frame_length}: samples at the end "
                "would be lost. Use a quarter."
            )
        squares = np.square(self.weights)
        # The sums repeat every hop.
        whole = np.zeros(-(-self.frame_length // self.hop) * self.hop)
        whole[: self.frame_length] = squares
        sums = whole.reshape(-1, self.hop).sum(axis=0)
        if sums.min() <= _LEAST_WEIGHT * sums.max():
            raise InvalidParameterError(
                f"With window {self.window!r} and hop {self.hop} sample {int(sums.argmin())} of every hop "
                f"has weight zero in all frames and would be lost. Use a smaller hop, such as "
                f"{self.frame_length // 2}, or a window without zeros, such as 'sine'."
            )

    @property
    def weights(self) -> FloatArray:
        """The window, found by its name or checked."""
        length = self.frame_length
        if isinstance(self.window, str) and self.window == "sine":
            # scipy's "cosine" is the same, but only since it can be periodic.
            return np.sin(np.pi * (np.arange(length) + 0.5) / length)
        if isinstance(self.window, str | tuple):
            try:
                return np.asarray(get_window(self.window, length, fftbins=True), dtype=np.float64)
            except (ValueError, TypeError) as error:
                raise InvalidParameterError(
                    f"window={self.window!r} is not known: {str(error).rstrip('.!')}. Use 'sine', "
                    "'rectangular', 'hann' or ('tukey', 0.1), or give the weights."
                ) from error
        weights = np.asarray(self.window)
        if weights.shape != (length,) or weights.dtype.kind not in "iuf" or not np.isfinite(weights).all():
            raise ShapeError(
                f"Expected a window of frame_length = {length} finite numbers, got {weights.dtype} of "
                f"shape {weights.shape}."
            )
        return weights.astype(np.float64)

    @property
    def padding(self) -> int:
        """Zeros before a signal."""
        return self.frame_length // 2 if self.centered else self.frame_length - self.hop

    def n_frames(self, n_samples: int) -> int:
        """Return how many frames a signal has.

        Parameters
        ----------
        n_samples : int
            Its length.

        Returns
        -------
        int
            At least 1.
        """
        if self.centered:
            return 1 + n_samples // self.hop
        return 1 + -(-max(n_samples + 2 * self.padding - self.frame_length, 0) // self.hop)

    def split(self, signals: Any) -> FloatArray:
        """Cut signals into frames.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples)
            Real numbers; not changed.

        Returns
        -------
        array of shape (n_recordings, n_frames, frame_length)
            The frames, times the window.
        """
        recordings = as_recordings(signals)
        n_recordings, n_samples = recordings.shape
        n_frames = self.n_frames(n_samples)
        padded = np.zeros(
            (n_recordings, (n_frames - 1) * self.hop + self.frame_length), dtype=recordings.dtype
        )
        padded[:, self.padding : self.padding + n_samples] = recordings
        views = np.lib.stride_tricks.sliding_window_view(padded, self.frame_length, axis=1)[:, :: self.hop]
        return views * self.weights.astype(recordings.dtype)

    def join(self, frames: Any, n_samples: int) -> FloatArray:
        """Add overlapping frames to obtain signals.

        Parameters
        ----------
        frames : array-like of shape (..., n_frames, frame_length)
            As `split` returns them; not changed.
        n_samples : int
            The length of the signals.

        Returns
        -------
        array of shape (..., n_samples)
            The signals whose frames are nearest to those given.
        """
        frames = np.asarray(frames)
        if frames.dtype.kind not in "biuf":
            raise DataTypeError(f"Expected frames of real numbers, got dtype {frames.dtype}.")
        # The weights are fractions, whatever the frames are.
        frames = frames if frames.dtype == np.float32 else frames.astype(np.float64)
        checked_count("n_samples", n_samples)
        expected = (self.n_frames(n_samples), self.frame_length)
        if frames.ndim < 2 or frames.shape[-2:] != expected:
            raise ShapeError(
                f"Expected frames of shape (..., {expected[0]}, {expected[1]}) for a signal of {n_samples} "
                f"samples, got {frames.shape}. Pass frames as split returns them, and the signal's length."
            )
        weights = self.weights.astype(frames.dtype)
        signals = self.overlapped(frames * weights)
        total = self.overlapped(np.broadcast_to(weights * weights, expected))
        inside = slice(self.padding, self.padding + n_samples)
        return signals[..., inside] / total[inside]

    def overlapped(self, frames: FloatArray) -> FloatArray:
        """Add frames up, each a hop after the one before."""
        # Each frame is cut into parts of one hop; part i of frame n is added at hop n + i.
        *leading, n_frames, length = frames.shape
        n_parts = -(-length // self.hop)
        added = np.zeros((*leading, n_frames + n_parts - 1, self.hop), dtype=frames.dtype)
        for part in range(n_parts):
            piece = frames[..., part * self.hop : (part + 1) * self.hop]
            added[..., part : part + n_frames, : piece.shape[-1]] += piece
        return added.reshape(*leading, -1)


def as_recordings(signals: Any) -> FloatArray:
    """Check signals of equal length and return them as an array."""
    try:
        recordings = np.asarray(signals)
    except ValueError as error:
        raise ShapeError(
            "Expected recordings of equal length. Cut them to the same part of the piece, or fit one and "
            "separate the others with the same model."
        ) from error
    if recordings.dtype.kind not in "biuf":
        hint = " Read the file with read_sound." if recordings.dtype.kind == "U" else ""
        raise DataTypeError(f"Expected signals of real numbers, got dtype {recordings.dtype}.{hint}")
    if recordings.ndim == 1:
        recordings = recordings[None, :]
    if recordings.ndim != 2 or recordings.shape[0] == 0:
        raise ShapeError(
            f"Expected a signal of shape (n_samples,) or recordings of shape (n_recordings, n_samples), got "
            f"{np.shape(signals)}."
        )
    if recordings.shape[1] == 0:
        raise InvalidDataError("Expected a signal with at least one sample, got an empty one.")
    return recordings if recordings.dtype == np.float32 else recordings.astype(np.float64)
