"""
Anchors in noisy mixtures
=========================

Some samples show only one component, and all others are mixtures of them. The more noise there is, the
harder these anchors are to find. SPA selects them one by one; MERIT solves one convex problem for all of
them.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg import metrics, select_anchors
from nonneg.datasets import separable_dirichlet

# %%
# Share of the anchors found, over three draws for each signal-to-noise ratio
# ---------------------------------------------------------------------------

ratios = [0, 2, 4, 6, 8, 10]
found = {"spa": [], "merit": []}
for snr in ratios:
    draws = [separable_dirichlet(100, 40, 10, snr=snr, rng=seed) for seed in range(3)]
    for method, shares in found.items():
        selected = [select_anchors(draw.X, 10, method=method).anchors for draw in draws]
        shares.append(
            np.mean([metrics.anchors_found(draw.anchors, s) for draw, s in zip(draws, selected, strict=True)])
        )
for method, shares in found.items():
    print(
        f"{method}:", ", ".join(f"{share:.2f} at {snr} dB" for snr, share in zip(ratios, shares, strict=True))
    )

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for method, shares in found.items():
    axes.plot(ratios, shares, marker="o", label=method)
axes.set_xlabel("signal-to-noise ratio, dB")
axes.set_ylabel("share of anchors found")
axes.legend()
plt.show()
