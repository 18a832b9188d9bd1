"""
Piano and drums
===============

A spectrogram is factorized into components, but which of them are the drums? Solo recordings of each
instrument answer this: their templates explain the mixture.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import spectrogram

from nonneg.applications import SourceSeparation
from nonneg.metrics import separation_scores

# %%
# A stereo mixture, and solo recordings
# -------------------------------------
# The piano is on the left and the drums are on the right. The solo recordings are not those of the mixture.

rate, names = 8000, ("piano", "drums")


def piano(seconds, rng):
    """Notes of a chord, drawn one by one, with six decaying partials each."""
    t = np.arange(rate) / rate
    sound = np.zeros(int((seconds + 1) * rate))
    for begin in range(0, int(seconds * rate), rate // 2):
        pitch = rng.choice([262.0, 330.0, 392.0, 523.0])
        partials = np.arange(1, 7)[:, None]
        sound[begin : begin + rate] += (
            np.exp(-(2 + partials) * t) * np.sin(2 * np.pi * partials * pitch * t) / partials
        ).sum(axis=0)
    return sound[: int(seconds * rate)]


def drums(seconds, rng):
    """Bursts of noise, four in a second."""
    t = np.arange(int(seconds * rate)) % (rate // 4) / rate
    return np.exp(-30 * t) * rng.standard_normal(len(t))


rng = np.random.default_rng(0)
parts = [piano(4.0, rng), drums(4.0, rng)]
true = np.stack([np.outer([0.9, 0.3], parts[0]), np.outer([0.2, 0.8], parts[1])])
mixture = true.sum(axis=0)  # (2 channels, n_samples)
solo = {"piano": piano(20.0, rng), "drums": drums(20.0, rng)}

# %%
# Separate
# --------
# The sources have the names of the solo recordings and the channels of the mixture, and sum to it.

model = SourceSeparation(random_state=0)
sources = model.fit_separate(mixture, rate, training=solo)
for name, wanted, found in zip(model.source_names_, true, sources, strict=True):
    print(
        f"{name}: {len(found)} channels, correlation {np.corrcoef(wanted.ravel(), found.ravel())[0, 1]:.3f}"
    )
scores = separation_scores(true.mean(axis=1), sources.mean(axis=1), distortion="gain")
print(f"SDR {scores.sdr.min():.1f} dB, sum off by {np.abs(sources.sum(axis=0) - mixture).max():.0e}")

# %%
# Figure
# ------
# Spectrograms on a logarithmic frequency axis.

figure = plt.figure(figsize=(9, 6), layout="constrained")
panels = figure.subplots(3, 1, sharex=True)
for axes, signal, title in zip(panels, (mixture, *sources), ("mixture", *names), strict=True):
    frequencies, time, power = spectrogram(signal, rate, nperseg=1024, noverlap=768, mode="magnitude")
    decibels = 20 * np.log10(power.mean(axis=0)[1:] + 1e-5)
    axes.pcolormesh(time, frequencies[1:], decibels, vmin=-70, vmax=-20, cmap="Blues", shading="nearest")
    axes.set_yscale("log")
    axes.set_ylim(40, rate / 2)
    axes.set_title(title)
    axes.set_ylabel("Hz")
panels[-1].set_xlabel("seconds")
plt.show()
