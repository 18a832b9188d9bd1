"""Two synthetic music notes, each alone for a second and then both, as signals and as windowed frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._arguments import checked_count
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray

FREQUENCIES = (440.0, 466.16)  # of the fundamentals in Hz; each note has one more harmonic at twice that
SAMPLE_RATE = 5000
# Samples of the time that a note sounds, three of which make a signal.
STRETCH = 5000
FRAME_LENGTH, HOP, TAPER = 200, 100, 0.1


@dataclass(frozen=True)
class MusicNotesData:
    """Realizations of the two notes, which differ only in their phases.

    Attributes
    ----------
    Y : array of shape (n_realizations, 151, 200)
        Windowed frames of the signals, one per row.
    signals : array of shape (n_realizations, 15000)
        Sums of the two notes.
    notes : array of shape (n_realizations, 2, 15000)
        Each note alone.
    phases : array of shape (n_realizations, 2)
        Drawn uniformly from [0, 2 pi).
    sample_rate : int
        In Hz.
    """

    Y: FloatArray
    signals: FloatArray
    notes: FloatArray
    phases: FloatArray
    sample_rate: int


def music_notes(n_realizations: int = 1, *, rng: Seed = None) -> MusicNotesData:
    """Draw realizations of the notes A4 and A#4 with two harmonics each, three seconds at 5000 Hz.

    The first note sounds in the first second, the second one in the second, both in the third.

    Parameters
    ----------
    n_realizations : int, default 1
        Number S of realizations.
    rng : None, int or numpy.random.Generator
        Draws the phases.

    Returns
    -------
    MusicNotesData
        Signals and their frames of 200 samples, which overlap by half.

    Notes
    -----
    ``y[t] = sum_i sum_r 0.5^(r+1) cos(r (2 pi f_i t / fs + theta_i)) g_i[t]`` for t = 1, ..., 15000 and i, r
    = 1, 2, with smooth envelopes ``g_i`` made of bumps ``exp(1 - 1 / (1 - x^2))`` over a second each. Frames
    begin 100 samples before the signal, are 100 samples apart, and are multiplied by a periodic Tukey window
    with a taper of 0.1, divided by its sum.

    References
    ----------
    .. [1] Zhang, Soubies & Fevotte, Leveraging Joint-Diagonalization in Transform-Learning NMF, section V-A.
    """
    n_realizations = checked_count("n_realizations", n_realizations)
    phases = generator(rng).uniform(0.0, 2.0 * np.pi, size=(n_realizations, len(FREQUENCIES)))
    t = np.arange(1.0, 3 * STRETCH + 1)
    bumps = [_bump(t, k) for k in range(3)]
    envelopes = np.stack([bumps[0] + bumps[2], bumps[1] + bumps[2]])
    angles = 2.0 * np.pi * np.array(FREQUENCIES)[:, None] * t / SAMPLE_RATE + phases[:, :, None]
    notes = (0.25 * np.cos(angles) + 0.125 * np.cos(2.0 * angles)) * envelopes
    signals = notes.sum(axis=1)
    from scipy.signal.windows import tukey  # slow to import

    window = tukey(FRAME_LENGTH, TAPER, sym=False)
    window /= window.sum()
    padded = np.pad(signals, ((0, 0), (HOP, HOP)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME_LENGTH, axis=1)[:, ::HOP] * window
    return MusicNotesData(frames, signals, notes, phases, SAMPLE_RATE)


def _bump(t: FloatArray, k: int) -> FloatArray:
    """Return a smooth function that is positive in second k alone and 1 in its middle."""
    half = (STRETCH + 1) / 2
    x = (t - half - STRETCH * k) / half
    inside = np.abs(x) < 1
    return np.where(inside, np.exp(1.0 - 1.0 / np.where(inside, 1.0 - x**2, 1.0)), 0.0)
