"""
Missing entries
===============

A third of the pixels of the digits are hidden. A fit to the visible ones fills in the others.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from nonneg import NMF

# %%
# Hide pixels
# -----------

X = load_digits().data[:600]
hidden = np.random.default_rng(0).random(X.shape) < 1 / 3
holes = np.where(hidden, np.nan, X)

# %%
# Fit and fill
# ------------

model = NMF(n_components=10, missing="mask", tol=1e-3, max_iter=500, random_state=0)
filled = model.inverse_transform(model.fit_transform(holes))
error = np.sqrt(np.mean(np.square(filled - X)[hidden]))
guess = np.sqrt(np.mean(np.square(np.nanmean(holes, axis=0) - X)[hidden]))
print(f"root mean squared error of the hidden pixels: {error:.2f}; with the mean of each pixel: {guess:.2f}")

figure, panels = plt.subplots(3, 8, figsize=(8, 3.2), layout="constrained")
for row, (images, name) in enumerate([(X, "true"), (holes, "visible"), (filled, "filled in")]):
    for axes, image in zip(panels[row], images, strict=False):
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axes.set_xticks([])
        axes.set_yticks([])
    panels[row, 0].set_ylabel(name)
plt.show()
