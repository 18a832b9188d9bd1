"""
Materials in an image
=====================

A synthetic image is mixed from four spectra, and `Unmixing` recovers them from its purest pixels.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import SpectralLibrary, rgb_preview
from nonneg.datasets import scene_like

ROWS, COLUMNS, BANDS, MATERIALS = 60, 80, 100, 4

# %%
# An image
# --------
# Every pixel is a mixture of four smooth spectra; illumination makes it brighter or darker.

made = scene_like(ROWS, COLUMNS, BANDS, MATERIALS, noise=0.01, rng=3)
cube = made.X.reshape(ROWS, COLUMNS, BANDS)
wavelengths = np.linspace(400, 2400, BANDS)

# %%
# Fit
# ---
# The default abundances are proportions, which ignore brightness.

model = Unmixing(MATERIALS, random_state=0).fit(cube, wavelengths=wavelengths)
names = tuple(f"material {at}" for at in range(MATERIALS))
found = model.match(SpectralLibrary(names, made.H, wavelengths))
for name, angle, (row, column) in zip(found.names, found.angles, model.pure_pixels_, strict=True):
    print(f"{name}: {angle:.2f} degrees from the truth, in the pixel at row {row}, column {column}")
truth = (made.W / made.W.sum(axis=1, keepdims=True))[:, found.chosen].reshape(ROWS, COLUMNS, -1)
print(f"error of the maps: {np.sqrt(np.mean((model.abundances_ - truth) ** 2)):.3f} (root mean square)")
print(model.certificate_)

# %%
# Figures
# -------
# The image with its pure pixels, the spectra with the true ones (dashed), and the abundance maps.

figure = plt.figure(figsize=(11, 6), layout="constrained")
upper, lower = figure.subfigures(2, 1)
photo, spectra = upper.subplots(1, 2, width_ratios=[1, 2])
photo.imshow(rgb_preview(cube))
photo.set_title("the image and its pure pixels")
photo.set_axis_off()
for at, (row, column) in enumerate(model.pure_pixels_):
    photo.plot(column, row, "o", markerfacecolor="none", markeredgecolor=f"C{at}", markeredgewidth=2)
    spectra.plot(wavelengths, model.endmembers_[at], color=f"C{at}", label=found.names[at])
    true = made.H[found.chosen[at]]
    scale = true @ model.endmembers_[at] / (true @ true)
    spectra.plot(wavelengths, scale * true, color=f"C{at}", linestyle="--", linewidth=1)
spectra.set_xlabel("wavelength, nm")
spectra.legend()
for at, axes in enumerate(lower.subplots(1, MATERIALS)):
    axes.imshow(model.abundances_[:, :, at], cmap="gray_r", vmin=0, vmax=1)
    axes.set_title(found.names[at])
    axes.set_axis_off()
plt.show()
