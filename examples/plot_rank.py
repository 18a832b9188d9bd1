"""
How many components?
====================

The singular values propose a number of components for data with five planted ones, the held-out error judges
it, and `compare_ranks` gives the reason.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg import compare_ranks

# %%
# Data
# ----
# Products of sparse factors, with noise of a tenth of the norm.

rng = np.random.default_rng(0)
W = rng.gamma(0.3, size=(150, 5))
H = rng.gamma(0.3, size=(5, 40))
clean = W @ H
noise = rng.standard_normal(clean.shape)
X = np.maximum(clean + 0.1 * noise * np.linalg.norm(clean) / np.linalg.norm(noise), 0)

# %%
# Estimates
# ---------

found = compare_ranks(X, k_max=8, rng=0)
print(f"{found.rank} components. {found.reason}")
figure, grid = plt.subplots(1, len(found.estimates), figsize=(9, 3.2), layout="constrained")
for axes, (name, estimate) in zip(grid, found.estimates.items(), strict=True):
    curve = estimate.curve
    axes.errorbar(curve.candidates, curve.mean, yerr=curve.spread, marker=".", capsize=2)
    axes.axvline(found.rank, linestyle="--", color="gray", linewidth=1)
    axes.set(title=name, xlabel="components", ylabel=f"{curve.name} ({curve.better} is better)")
plt.show()
