"""Figures of sounds: spectrograms, atoms of a transform, activations over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.report.figures import ACCENT, FAINT, INK, averaged, scaled_rows, svg_text

DECIBELS = 60.0
"""A spectrogram shows so much below the loudest."""
_N_TIMES, _N_FREQUENCIES = 500, 160


def power_spectrogram(signal: FloatArray, rate: float) -> tuple[FloatArray, float]:
    """Return the power of a signal by time and frequency, small enough for a page."""
    length = min(1 << int(np.ceil(np.log2(max(rate / 20, 16)))), max(len(signal), 16))
    padded = np.concatenate([np.zeros(length // 2), signal, np.zeros(length)])
    n_frames = 1 + len(signal) // max(length // 4, 1)
    starts = np.arange(n_frames) * max(length // 4, 1)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    power = np.empty((length // 2 + 1, n_frames))
    # A block of frames at a time: a long recording has many.
    for first in range(0, n_frames, 1024):
        chosen = starts[first : first + 1024]
        frames = padded[chosen[:, None] + np.arange(length)] * window
        power[:, first : first + 1024] = np.square(np.abs(np.fft.rfft(frames, axis=1))).T
    return averaged(averaged(power, _N_TIMES).T, _N_FREQUENCIES).T, len(signal) / rate


def spectrogram(power: FloatArray, duration: float, rate: float, loudest: float, title: str) -> str:
    """Draw a spectrogram."""
    figure, (axes,) = _panels(5.2, 2.6, 1, 1)
    loudest = loudest if loudest > 0 else 1.0
    decibels = 10 * np.log10(np.maximum(power / loudest, 10 ** (-DECIBELS / 10)))
    axes.imshow(
        decibels,
        cmap="Blues",
        vmin=-DECIBELS,
        vmax=0.0,
        aspect="auto",
        origin="lower",
        interpolation="none",
        extent=(0.0, duration, 0.0, rate / 2),
    )
    axes.set_xlabel("seconds", color=INK)
    axes.set_ylabel("Hz", color=INK)
    return svg_text(figure, title)


def atoms(shown: FloatArray, labels: Sequence[str], rate: float, frequencies: FloatArray) -> str:
    """Draw atoms as waves beside their spectra."""
    n_atoms, length = shown.shape
    figure, panels = _panels(10.4, 0.95 * n_atoms + 0.5, n_atoms, 2)
    time = 1000 * np.arange(length) / rate
    size = 1 << int(np.ceil(np.log2(8 * length)))
    grid = np.arange(size // 2 + 1) * rate / size
    for at in range(n_atoms):
        wave, spectrum = panels[2 * at], panels[2 * at + 1]
        wave.plot(time, shown[at], color=ACCENT, linewidth=1.0)
        wave.set_yticks([])
        wave.set_ylabel(labels[at], color=INK, rotation=0, ha="right", va="center", parse_math=False)
        spectrum.axvline(float(frequencies[at]), color=FAINT, linewidth=1.2)
        spectrum.plot(grid, np.abs(np.fft.rfft(shown[at], size)), color=ACCENT, linewidth=1.0)
        spectrum.set_yticks([])
        spectrum.set_xlim(0.0, rate / 2)
        if at < n_atoms - 1:
            wave.set_xticklabels([])
            spectrum.set_xticklabels([])
    panels[-2].set_xlabel("milliseconds", color=INK)
    panels[-1].set_xlabel("Hz", color=INK)
    return svg_text(figure, "The strongest atoms and their spectra")


def activations(W: FloatArray, seconds: float, labels: Sequence[str]) -> str:
    """Draw how strong each component is over time."""
    lines = scaled_rows(averaged(W.T, 1000))
    lines = np.maximum(DECIBELS + 10 * np.log10(np.maximum(lines, np.finfo(float).tiny)), 0.0)
    figure, panels = _panels(10.4, 0.9 * len(lines) + 0.6, len(lines), 1)
    time = np.linspace(0.0, seconds, lines.shape[1])
    for axes, line, label in zip(panels, lines, labels, strict=True):
        axes.fill_between(time, line, color=ACCENT, linewidth=0)
        axes.set_xlim(0.0, seconds if seconds > 0 else 1.0)
        axes.set_ylim(0.0, 1.05 * DECIBELS)
        axes.set_yticks([])
        axes.set_ylabel(label, color=INK, rotation=0, ha="right", va="center", parse_math=False)
        if axes is not panels[-1]:
            axes.set_xticklabels([])
    panels[-1].set_xlabel("seconds", color=INK)
    return svg_text(figure, "Activations of the components over time")


def _panels(width: float, height: float, n_rows: int, n_columns: int) -> tuple[Any, list[Any]]:
    module = import_optional("matplotlib.figure", extra="report", purpose="The report")
    figure = module.Figure(figsize=(width, height), layout="constrained", facecolor="none")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    for axes in panels:
        axes.set_facecolor("none")
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)
        axes.tick_params(colors=INK, which="both", labelsize=9)
    return figure, panels
