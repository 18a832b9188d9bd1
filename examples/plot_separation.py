"""
Two notes a semitone apart
==========================

A4 and A#4 sound one after the other and then together. A cosine transform of 40 ms has lines 12.5 Hz apart;
`TransformNMF` puts its atoms where the notes are.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg.applications import SourceSeparation
from nonneg.datasets import music_notes
from nonneg.metrics import separation_scores

# %%
# Separate
# --------
# One recording of three seconds. Each method gets the same frames and two components.

notes = music_notes(rng=0)
mixture, true, rate = notes.signals[0], notes.notes[0], notes.sample_rate
found, models = {}, {}
for method, name in (("tl", "learned transform"), ("dct", "cosine transform")):
    model = SourceSeparation(
        2, frame_length=200, method=method, init="dct", n_init=2, max_iter=15, random_state=0
    )
    sources = model.fit_separate(mixture, rate)
    scores = separation_scores(true, sources, distortion="gain")
    found[name], models[name] = sources[scores.permutation], model
    print(
        f"{name}: SDR {scores.sdr.min():.1f} dB, sum off by {np.abs(sources.sum(axis=0) - mixture).max():.0e}"
    )

# %%
# What was learned
# ----------------
# Two atoms at each of the four partials: one partial in two phases.

learned = models["learned transform"]
power = learned.activations_.sum(axis=0) @ learned.model_.components_
atoms = learned.model_.transform_[np.argsort(-power)[:8]]
peaks = np.abs(np.fft.rfft(atoms, 2**14)).argmax(axis=1)
frequencies = np.fft.rfftfreq(2**14, 1 / rate)[peaks]
print("frequencies of the strongest atoms (Hz):", np.round(np.sort(frequencies), 1))

# %%
# Figure
# ------

figure = plt.figure(figsize=(9, 6), layout="constrained")
panels = figure.subplots(3, 2, sharex=True)
time = np.arange(len(mixture)) / rate
for column, (name, sources) in enumerate(found.items()):
    panels[0, column].set_title(name)
    for row, (signal, label) in enumerate(
        ((mixture, "mixture"), (sources[0], "source A4"), (sources[1], "source A#4"))
    ):
        axes = panels[row, column]
        axes.plot(time, signal, linewidth=0.4, color="#0072B2")
        if row:
            axes.plot(time, signal - true[row - 1], linewidth=0.4, color="#D55E00")
        axes.set_ylabel(label)
        axes.set_ylim(-0.8, 0.8)
    panels[2, column].set_xlabel("seconds (orange: the error)")
plt.show()
