"""Figures of sounds: spectrograms, atoms of a transform, activations over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.report.figures import ACCENT, FAINT, INK, averaged, scaled_rows, svg_text

DECIBELS = 60.0
"""Range of a spectrogram, in decibels below the maximum."""
_N_TIMES, _N_FREQUENCIES = 500, 160
LOWEST = 40.0
"""Frequency in hertz at the bottom of a spectrogram, unless the sampling rate is low."""


def frequency_bands(rate: float) -> FloatArray:
    """Return the edges of bands that are equally wide on a logarithmic axis."""
    nyquist = rate / 2
    return np.geomspace(min(LOWEST, nyquist / 50), nyquist, _N_FREQUENCIES + 1)


def in_bands(values: FloatArray, frequencies: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the means of columns over bands; bands between two columns are interpolated."""
    order = np.argsort(frequencies, kind="stable")
    values, frequencies = np.asarray(values, dtype=np.float64)[:, order], frequencies[order]
    centers = np.sqrt(edges[:-1] * edges[1:])
    first, last = np.searchsorted(frequencies, edges[:-1]), np.searchsorted(frequencies, edges[1:])
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    found = (sums[:, last] - sums[:, first]) / np.maximum(last - first, 1)
    empty = np.flatnonzero(first == last)
    for row, line in zip(found, values, strict=True):
        row[empty] = np.interp(centers[empty], frequencies, line)
    return np.maximum(found, 0.0)


def power_spectrogram(signal: FloatArray, rate: float) -> tuple[FloatArray, float]:
    """Return the power of a signal by time and logarithmic frequency, the mean of its channels."""
    if signal.ndim > 1:
        powers = [power_spectrogram(channel, rate)[0] for channel in signal]
        return np.mean(powers, axis=0), signal.shape[1] / rate
    length = min(1 << int(np.ceil(np.log2(max(rate / 12, 16)))), max(len(signal), 16))
    hop = max(length // 8, 1)
    padded = np.concatenate([np.zeros(length // 2), signal, np.zeros(length)])
    n_frames = 1 + len(signal) // hop
    starts = np.arange(n_frames) * hop
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    frequencies, edges = np.fft.rfftfreq(length, 1 / rate), frequency_bands(rate)
    power = np.empty((_N_FREQUENCIES, n_frames))
    # A block of frames at a time: a long recording has many.
    for first in range(0, n_frames, 1024):
        chosen = starts[first : first + 1024]
        frames = padded[chosen[:, None] + np.arange(length)] * window
        spectra = np.square(np.abs(np.fft.rfft(frames, axis=1)))
        power[:, first : first + 1024] = in_bands(spectra, frequencies, edges).T
    return averaged(power, _N_TIMES), len(signal) / rate


def spectrogram(power: FloatArray, duration: float, rate: float, loudest: float, title: str) -> str:
    """Draw a spectrogram."""
    figure, (axes,) = _panels(5.2, 2.9, 1, 1)
    loudest = loudest if loudest > 0 else 1.0
    decibels = 10 * np.log10(np.maximum(power / loudest, 10 ** (-DECIBELS / 10)))
    edges = frequency_bands(rate)
    axes.imshow(
        decibels,
        cmap="Blues",
        vmin=-DECIBELS,
        vmax=0.0,
        aspect="auto",
        origin="lower",
        interpolation="none",
        extent=(0.0, duration, np.log10(edges[0]), np.log10(edges[-1])),
    )
    _frequency_ticks(axes.yaxis, edges[0], edges[-1])
    axes.set_xlabel("seconds", color=INK)
    axes.set_ylabel("Hz", color=INK)
    return svg_text(figure, title)


def templates(components: FloatArray, frequencies: FloatArray, rate: float, names: Sequence[str]) -> str:
    """Draw the spectra of components, each scaled to its own maximum."""
    edges = frequency_bands(rate)
    cells = scaled_rows(in_bands(components, frequencies, edges))
    k = len(cells)
    figure, (axes,) = _panels(10.4, float(np.clip(0.17 * k + 1.0, 1.9, 8.0)), 1, 1)
    axes.imshow(
        cells,
        cmap="Blues",
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        interpolation="none",
        extent=(np.log10(edges[0]), np.log10(edges[-1]), k - 0.5, -0.5),
    )
    shown = range(0, k, max(1, -(-k // 20)))
    axes.set_yticks(shown, [names[at] for at in shown], parse_math=False)
    axes.tick_params(axis="y", length=0)
    _frequency_ticks(axes.xaxis, edges[0], edges[-1])
    axes.set_xlabel("Hz", color=INK)
    return svg_text(figure, "Spectra of the components")


def _frequency_ticks(axis: Any, lowest: float, highest: float) -> None:
    """Label an axis of logarithms with frequencies: 100, 1k, 10k, and 2 and 5 of each where there is room."""
    decades = range(int(np.floor(np.log10(lowest))), int(np.ceil(np.log10(highest))) + 1)
    steps = [digit * 10.0**decade for decade in decades for digit in range(1, 10)]
    inside = [step for step in steps if lowest <= step <= highest]
    ones = [step for step in inside if f"{step:e}"[0] == "1"]
    # Lower sampling rates have few powers of ten.
    labeled = ones if len(ones) >= 3 else [step for step in inside if f"{step:e}"[0] in "125"]
    axis.set_ticks(np.log10(labeled), [_hertz(step) for step in labeled])
    axis.set_ticks(np.log10(inside), minor=True)


def _hertz(frequency: float) -> str:
    return f"{frequency / 1000:g}k" if frequency >= 1000 else f"{frequency:g}"


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
