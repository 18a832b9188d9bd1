"""The short-time Fourier transform and its inverse, in the conventions of librosa."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft

from nonneg._typing import Array, FloatArray
from nonneg.applications.audio.frames import Framing, as_recordings
from nonneg.exceptions import InvalidParameterError, ShapeError

# librosa's n_fft = 2048 at its default rate of 22050 Hz, in seconds.
SECONDS = 2048 / 22050


@dataclass(frozen=True)
class STFT:
    """The short-time Fourier transform of signals, and signals from it.

    Parameters
    ----------
    frame_length : int
        Samples per frame: `n_fft` of librosa.
    hop : int, optional
        Samples from one frame to the next (`hop_length`); a quarter of a frame by default.
    window : str, tuple or array
        As for `Framing`; "hann" by default, periodic.

    Notes
    -----
    As ``librosa.stft(center=True, pad_mode="constant")``: frames are centered at multiples of the hop, with
    half a frame of zeros before and after the signal. The inverse adds up the windowed frames and divides by
    the sum of the squared windows. It is exact, and gives the least-squares signal if frames were modified.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.applications.audio import STFT
    >>> stft = STFT(64)
    >>> signal = np.random.default_rng(0).standard_normal(1000)
    >>> coefficients = stft.analyze(signal)
    >>> coefficients.shape
    (1, 63, 33)
    >>> bool(np.allclose(stft.synthesize(coefficients, 1000)[0], signal))
    True
    """

    frame_length: int
    hop: int | None = None
    window: Any = "hann"

    def __post_init__(self) -> None:
        if self.hop is None:
            object.__setattr__(self, "hop", max(int(self.frame_length) // 4, 1))
        # Refuses what would lose samples.
        if isinstance(self.hop, int | np.integer) and self.hop > max(self.frame_length // 2, 1):
            raise InvalidParameterError(
                f"hop={self.hop} is more than half of frame_length={self.frame_length}: samples between two "
                "frames would be lost. Use a quarter."
            )
        _ = self._framing

    @property
    def _framing(self) -> Framing:
        return Framing(self.frame_length, self.hop, self.window)

    @property
    def step(self) -> int:
        """The hop as a number."""
        return int(self.hop or 1)

    @property
    def weights(self) -> FloatArray:
        """The window."""
        return self._framing.weights

    @property
    def n_bins(self) -> int:
        """Frequencies, from 0 to half the sampling rate."""
        return self.frame_length // 2 + 1

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
        return 1 + n_samples // self.step

    def analyze(self, signals: Any) -> Array:
        """Return the coefficients of signals.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples)
            Real numbers; not changed.

        Returns
        -------
        complex array of shape (n_recordings, n_frames, n_bins)
            One row per frame: the transpose of librosa's.
        """
        recordings = as_recordings(signals)
        n_frames = self.n_frames(recordings.shape[1])
        padded = np.pad(recordings, ((0, 0), (self.frame_length // 2, self.frame_length)))
        views = np.lib.stride_tricks.sliding_window_view(padded, self.frame_length, axis=1)
        frames = views[:, :: self.step][:, :n_frames] * self.weights.astype(recordings.dtype)
        return scipy.fft.rfft(frames, axis=-1)

    def synthesize(self, coefficients: Any, n_samples: int) -> FloatArray:
        """Return the signals whose coefficients are nearest to those given.

        Parameters
        ----------
        coefficients : complex array of shape (..., n_frames, n_bins)
            As `analyze` returns them, masked or not.
        n_samples : int
            The length of the signals.

        Returns
        -------
        array of shape (..., n_samples)
            The signals.
        """
        expected = (self.n_frames(n_samples), self.n_bins)
        if np.ndim(coefficients) < 2 or np.shape(coefficients)[-2:] != expected:
            raise ShapeError(
                f"Expected coefficients of shape (..., {expected[0]}, {expected[1]}) for a signal of "
                f"{n_samples} samples, got {np.shape(coefficients)}."
            )
        frames = scipy.fft.irfft(coefficients, n=self.frame_length, axis=-1)
        weights = self.weights.astype(frames.dtype)
        total = self._framing.overlapped(np.broadcast_to(weights * weights, (expected[0], self.frame_length)))
        inside = slice(self.frame_length // 2, self.frame_length // 2 + n_samples)
        return self._framing.overlapped(frames * weights)[..., inside] / total[inside]


def automatic_frame_length(n_samples: int, rate: float | None, seconds: float = SECONDS) -> int:
    """Return the power of two nearest to a duration; less for short signals, so that there are frames."""
    length = 2048 if rate is None else 1 << max(round(float(np.log2(seconds * rate))), 4)
    # At least four frames that share nothing.
    longest = 1 << max(int(np.log2(max(n_samples // 4, 1))), 4)
    return min(length, longest)
