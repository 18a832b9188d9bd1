"""A constant-Q transform with perfect reconstruction: a nonstationary Gabor frame in frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft

from nonneg._typing import Array, FloatArray
from nonneg.applications.audio.frames import as_recordings, check_whole
from nonneg.exceptions import InvalidParameterError, ShapeError

# librosa's lowest note (C1) and hop of 512 samples at 22050 Hz, in hertz and seconds.
LOWEST, HOP_SECONDS = 32.70319566257483, 512 / 22050


@dataclass(frozen=True)
class ConstantQ:
    """The constant-Q transform of signals, and signals from it.

    Parameters
    ----------
    rate : float
        Sampling rate in hertz.
    bins_per_octave : int
        Bands per octave; 24 are half a semitone apart.
    fmin : float
        Center of the lowest band in hertz; C1 by default, as in librosa. One more band covers everything
        below it.
    hop : int, optional
        Samples from one frame to the next; about 23 ms by default, as in librosa.

    Notes
    -----
    Bands are Hann windows in frequency that reach from the center of one neighbor to that of the other,
    widened by a constant as in ``librosa.vqt(gamma=None)``, so that the time resolution of low bands is not
    coarser than that of hearing. A frame has as many subframes as the widest band needs samples. The bands
    then form a frame in the mathematical sense, with an explicit dual: the inverse is exact, whereas
    ``librosa.icqt`` is approximate.

    References
    ----------
    .. [1] Velasco, Holighaus, Dorfler & Grill (2011), Constructing an invertible constant-Q transform with
       non-stationary Gabor frames.
    .. [2] Schorkhuber, Klapuri, Holighaus & Dorfler (2014), A Matlab toolbox for efficient perfect
       reconstruction time-frequency transforms with log-frequency resolution.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.applications.audio import ConstantQ
    >>> transform = ConstantQ(8000)
    >>> signal = np.random.default_rng(0).standard_normal(3000)
    >>> coefficients = transform.analyze(signal)
    >>> coefficients.shape[1:] == (transform.n_frames(3000), transform.n_bins)
    True
    >>> bool(np.allclose(transform.synthesize(coefficients, 3000)[0], signal))
    True
    """

    rate: float
    bins_per_octave: int = 24
    fmin: float = LOWEST
    hop: int | None = None

    def __post_init__(self) -> None:
        check_whole("bins_per_octave", self.bins_per_octave, 1, None)
        if self.hop is None:
            object.__setattr__(self, "hop", max(round(HOP_SECONDS * self.rate), 1))
        check_whole("hop", self.hop, 1, None)
        if not 0 < self.fmin < self.rate / 4:
            raise InvalidParameterError(
                f"fmin must lie between 0 and a quarter of the rate {self.rate:g}, got {self.fmin!r}."
            )

    @property
    def step(self) -> int:
        """The hop as a number."""
        return int(self.hop or 1)

    @property
    def frame_length(self) -> int:
        """Samples from one frame to the next: a signal is not shorter."""
        return self.step

    @property
    def frequencies(self) -> FloatArray:
        """Centers of the bands in hertz: zero, the geometric ones, and half the sampling rate."""
        n_bands = int(np.ceil(self.bins_per_octave * np.log2(self.rate / 2 / self.fmin)))
        inner = self.fmin * 2.0 ** (np.arange(n_bands) / self.bins_per_octave)
        return np.array([0.0, *inner, self.rate / 2])

    @property
    def n_bins(self) -> int:
        """Bands."""
        return len(self.frequencies)

    @property
    def n_subframes(self) -> int:
        """Subframes per frame, so that the widest band is sampled fast enough."""
        lows, highs = self._supports()
        # Two more bins for rounding.
        return int(np.ceil((highs - lows).max() * self.step / self.rate)) + 1

    def n_frames(self, n_samples: int) -> int:
        """Return how many frames a signal has.

        Parameters
        ----------
        n_samples : int
            Its length.

        Returns
        -------
        int
            At least 4, with two empty ones after the signal.
        """
        return max(-(-n_samples // self.step) + 2, 4)

    def analyze(self, signals: Any) -> Array:
        """Return the coefficients of signals.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples)
            Real numbers; not changed.

        Returns
        -------
        complex array of shape (n_recordings * n_subframes, n_frames, n_bins)
            The subframes of a recording come first: their mean square is the power in a frame.
        """
        recordings = as_recordings(signals)
        n_frames, n_subframes = self.n_frames(recordings.shape[1]), self.n_subframes
        spectrum = scipy.fft.rfft(recordings, n_frames * self.step, axis=-1)
        found = np.empty((len(recordings), n_subframes, n_frames, self.n_bins), dtype=spectrum.dtype)
        n_points = n_frames * n_subframes
        for band, (first, window) in enumerate(self._windows(n_frames * self.step)):
            places = (first + np.arange(len(window))) % n_points
            buffer = np.zeros((len(recordings), n_points), dtype=spectrum.dtype)
            buffer[:, places] = spectrum[:, first : first + len(window)] * window.astype(recordings.dtype)
            values = scipy.fft.ifft(buffer, axis=-1) * (n_subframes / self.step)
            found[..., band] = values.reshape(len(recordings), n_frames, n_subframes).swapaxes(1, 2)
        return found.reshape(-1, n_frames, self.n_bins)

    def synthesize(self, coefficients: Any, n_samples: int) -> FloatArray:
        """Return the signals of coefficients.

        Parameters
        ----------
        coefficients : complex array of shape (n_recordings * n_subframes, n_frames, n_bins)
            As `analyze` returns them, masked or not.
        n_samples : int
            The length of the signals.

        Returns
        -------
        array of shape (n_recordings, n_samples)
            The signals.
        """
        given = np.asarray(coefficients)
        n_frames, n_subframes = self.n_frames(n_samples), self.n_subframes
        if given.ndim != 3 or given.shape[1:] != (n_frames, self.n_bins) or given.shape[0] % n_subframes:
            raise ShapeError(
                f"Expected coefficients of shape (n_recordings * {n_subframes}, {n_frames}, {self.n_bins}) "
                f"for a signal of {n_samples} samples, got {given.shape}."
            )
        given = given.reshape(-1, n_subframes, n_frames, self.n_bins).swapaxes(1, 2)
        n_points, length = n_frames * n_subframes, n_frames * self.step
        windows = list(self._windows(length))
        total = np.zeros(length // 2 + 1)
        for first, window in windows:
            total[first : first + len(window)] += window * window
        spectrum = np.zeros((len(given), len(total)), dtype=given.dtype)
        for band, (first, window) in enumerate(windows):
            inside = slice(first, first + len(window))
            places = (first + np.arange(len(window))) % n_points
            values = scipy.fft.fft(given[..., band].reshape(len(given), n_points), axis=-1)[:, places]
            spectrum[:, inside] += values * (window / total[inside] * (self.step / n_subframes)).astype(
                values.real.dtype
            )
        return scipy.fft.irfft(spectrum, length, axis=-1)[:, :n_samples]

    def _supports(self) -> tuple[FloatArray, FloatArray]:
        """Return where bands begin and end, in hertz."""
        centers = self.frequencies
        lows, highs = np.r_[0.0, centers[:-1]], np.r_[centers[1:], self.rate / 2]
        # librosa's gamma: with it, bandwidths are proportional to equivalent rectangular ones (ERB).
        wider = 24.7 * (2 ** (2 / self.bins_per_octave) - 1) / (2 ** (2 / self.bins_per_octave) + 1) / 0.108
        return np.maximum(lows - wider, 0.0), np.minimum(highs + wider, self.rate / 2)

    def _windows(self, length: int) -> Any:
        """Yield the first bin and the window of each band, for signals of a length."""
        n_bins = length // 2 + 1
        grid = np.arange(n_bins) * (self.rate / length)
        for center, low, high in zip(self.frequencies, *self._supports(), strict=True):
            first, last = np.searchsorted(grid, [low, high], side="right")
            first, last = max(int(first) - 1, 0), min(int(last) + 1, n_bins)
            at = grid[first:last]
            # At the two ends of the axis the windows are flat outwards.
            left = np.ones_like(at) if center == 0 else (at - low) / (center - low)
            right = np.ones_like(at) if center >= self.rate / 2 else (high - at) / (high - center)
            inner = np.clip(np.where(at <= center, left, right), 0.0, 1.0)
            yield first, np.square(np.sin(0.5 * np.pi * inner)) + 1e-6
