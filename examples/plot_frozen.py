"""
A known component
=================

A background spectrum is known. It is passed as a row of H and stays fixed, while the other components are
learned.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg import NMF

rng = np.random.default_rng(0)
grid = np.linspace(0, 1, 120)
background = 0.5 + 0.5 * np.exp(-3 * grid)
peaks = np.array([np.exp(-(((grid - center) / 0.05) ** 2)) for center in (0.3, 0.6)])
X = rng.gamma(2.0, size=(200, 1)) * background + rng.gamma(0.5, size=(200, 2)) @ peaks
X = np.maximum(X + 0.05 * rng.standard_normal(X.shape), 0)

start = np.vstack([background, rng.random((2, 120))])
model = NMF(3, random_state=0).fit(X, H=start, frozen_components=[0])
free = NMF(3, random_state=0).fit(X)
print("the background is unchanged:", np.array_equal(model.components_[0], background))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), sharex=True, layout="constrained")
for axes, fitted, title in ((left, model, "background frozen"), (right, free, "all components free")):
    for component in fitted.components_:
        axes.plot(grid, component / component.max())
    axes.set_title(title)
plt.show()
