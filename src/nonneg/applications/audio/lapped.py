"""Lapped frames: overlapping windows folded to frames that overlap no more, as in the MDCT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio.frames import Framing, as_recordings, window_weights
from nonneg.exceptions import InvalidParameterError, ShapeError

# Rounding of a window's squares, and of windows given with a few digits.
PRINCEN_BRADLEY = 1e-6


@dataclass(frozen=True)
class LappedFraming:
    """How signals are folded to frames, and how frames become signals again: an orthogonal transform.

    Parameters
    ----------
    frame_length : int
        Samples per folded frame, which is also the hop; windows are twice as long. Even.
    window : str, tuple or array
        Of length ``2 * frame_length``, symmetric, and the squares of its halves sum to one (Princen and
        Bradley); "sine" by default.

    Notes
    -----
    Time-domain aliasing cancellation (TDAC): around every border between frames, sample ``i`` to the right
    and its mirror image to the left are rotated by the angle whose cosine and sine the window gives. A frame
    times a DCT of type IV is then a local cosine transform, the MDCT up to a reversal of time; times any
    other orthogonal matrix, another lapped orthogonal transform with perfect reconstruction. Signals and
    frames have the same energy.

    References
    ----------
    .. [1] Princen & Bradley (1986), Analysis/synthesis filter bank design based on time domain aliasing
       cancellation.
    .. [2] Malvar (1992), Signal processing with lapped transforms.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.applications.audio import LappedFraming
    >>> framing = LappedFraming(16)
    >>> signal = np.random.default_rng(0).standard_normal(100)
    >>> frames = framing.split(signal)
    >>> frames.shape
    (1, 8, 16)
    >>> bool(np.allclose(framing.join(frames, 100)[0], signal))
    True
    """

    frame_length: int
    window: Any = "sine"

    def __post_init__(self) -> None:
        Framing(self.frame_length, self.frame_length, "rectangular")  # checks the length
        if self.frame_length % 2:
            raise InvalidParameterError(
                f"frame_length of lapped frames must be even, got {self.frame_length}."
            )
        weights, m = self.weights, self.frame_length
        error = max(
            float(np.abs(weights - weights[::-1]).max()),
            float(np.abs(np.square(weights[:m]) + np.square(weights[m:]) - 1).max()),
        )
        if not error <= PRINCEN_BRADLEY:
            raise InvalidParameterError(
                f"window={self.window!r} does not reconstruct: a window of lapped frames is symmetric, and "
                "the squares of its halves sum to one (Princen and Bradley); this one is off by "
                f"{error:.2g}. Use 'sine'."
            )

    @property
    def step(self) -> int:
        """The hop."""
        return self.frame_length

    @property
    def weights(self) -> FloatArray:
        """The window, twice as long as a frame."""
        return window_weights(self.window, 2 * self.frame_length)

    def n_frames(self, n_samples: int) -> int:
        """Return how many frames a signal has.

        Parameters
        ----------
        n_samples : int
            Its length.

        Returns
        -------
        int
            At least 2.
        """
        return 1 + -(-n_samples // self.frame_length)

    def split(self, signals: Any) -> FloatArray:
        """Fold signals to frames.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples)
            Real numbers; not changed.

        Returns
        -------
        array of shape (n_recordings, n_frames, frame_length)
            The frames, with the energy of the signals.
        """
        recordings = as_recordings(signals)
        n_recordings, n_samples = recordings.shape
        half, n_frames = self.frame_length // 2, self.n_frames(n_samples)
        # Half a frame of zeros before and after: the outermost borders lie in them.
        frames = np.zeros((n_recordings, n_frames * self.frame_length), dtype=recordings.dtype)
        frames[:, half : half + n_samples] = recordings
        return self._rotated(frames.reshape(n_recordings, n_frames, -1), 1.0)

    def join(self, frames: Any, n_samples: int) -> FloatArray:
        """Unfold frames to signals, the inverse of `split`.

        Parameters
        ----------
        frames : array-like of shape (..., n_frames, frame_length)
            As `split` returns them; not changed.
        n_samples : int
            The length of the signals.

        Returns
        -------
        array of shape (..., n_samples)
            The signals.
        """
        frames = np.asarray(frames)
        expected = (self.n_frames(n_samples), self.frame_length)
        if frames.ndim < 2 or frames.shape[-2:] != expected:
            raise ShapeError(
                f"Expected frames of shape (..., {expected[0]}, {expected[1]}) for a signal of {n_samples} "
                f"samples, got {frames.shape}. Pass frames as split returns them, and the signal's length."
            )
        half = self.frame_length // 2
        flat = self._rotated(frames, -1.0).reshape(*frames.shape[:-2], -1)
        return flat[..., half : half + n_samples]

    def _rotated(self, frames: FloatArray, sign: float) -> FloatArray:
        """Rotate the samples on both sides of every border; a copy."""
        m, half = self.frame_length, self.frame_length // 2
        weights = self.weights.astype(frames.dtype)
        # The values of a window at i samples from its border, inside and outside of its frame.
        inside, outside = weights[half:m], weights[:half][::-1]
        found = np.array(frames)
        left, right = frames[..., :-1, ::-1][..., :half], frames[..., 1:, :half]
        found[..., 1:, :half] = inside * right + sign * outside * left
        found[..., :-1, half:] = (inside * left - sign * outside * right)[..., ::-1]
        return found
