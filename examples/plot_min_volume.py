"""
Minimum volume
==============

A thousand pixels mix three spectra, and none is purer than 75%. Successive projections can only return
pixels; `MinVolNMF` finds the corners of the smallest simplex around them.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg import MinVolNMF, SeparableNMF
from nonneg.datasets import scene_like
from nonneg.metrics import spectral_angles

PIXELS, BANDS, MATERIALS, PURITY = 1000, 100, 3, 0.75

# %%
# Pixels
# ------
# Uniform mixtures of smooth spectra, without the pure corners, with noise of 30 dB.

rng = np.random.default_rng(0)
spectra = scene_like(2, 2, BANDS, MATERIALS, rng=rng).H
shares = rng.dirichlet(np.ones(MATERIALS), 8 * PIXELS)
shares = shares[shares.max(axis=1) <= PURITY][:PIXELS]
pixels = shares @ spectra
pixels += np.sqrt(np.mean(pixels**2)) * 10 ** (-30 / 20) * rng.standard_normal(pixels.shape)

# %%
# Fit
# ---
# The weight of the volume follows from the noise.

pure = SeparableNMF(MATERIALS, method="spa").fit(pixels)
model = MinVolNMF(MATERIALS).fit(pixels)
for name, found in (("purest pixels (SPA)", pure), ("minimum volume", model)):
    angles = spectral_angles(found.components_, spectra).min(axis=0)
    print(f"{name}: {angles.mean():.2f} degrees from the true spectra")
print(f"largest weights in a pixel: {np.round(model.purity_, 2)}")
print(model.certificate_)

# %%
# Figure
# ------
# The pixels in their two leading directions, with the true corners and those that were found.

mean = pixels.mean(axis=0)
directions = np.linalg.svd(pixels - mean, full_matrices=False)[2][:2].T
figure = plt.figure(figsize=(6, 5), layout="constrained")
axes = figure.subplots()
axes.plot(*((pixels - mean) @ directions).T, ".", color="0.7", markersize=3, label="pixels")
for points, style, label in (
    (spectra, "k--", "true spectra"),
    (pure.components_, "C1o-", "purest pixels (SPA)"),
    (model.components_, "C0o-", "minimum volume"),
):
    middle = (points - mean) @ directions
    turn = np.argsort(np.arctan2(*(middle - middle.mean(axis=0)).T))
    axes.plot(*middle[[*turn, turn[0]]].T, style, label=label)
axes.set_axis_off()
axes.legend()
plt.show()
