"""
Mini-batches
============

`partial_fit` learns from data that arrive in batches, like scikit-learn's `MiniBatchNMF`. The error on all
data falls with every batch.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from nonneg import NMF

X = load_digits().data
norm = np.linalg.norm(X)


def relative_error(model: NMF) -> float:
    return float(np.linalg.norm(X - model.inverse_transform(model.transform(X))) / norm)


online, errors = NMF(n_components=16, random_state=0), []
for start in range(0, len(X), 200):
    online.partial_fit(X[start : start + 200])
    errors.append(relative_error(online))
whole = relative_error(NMF(n_components=16, random_state=0).fit(X))
print(f"one pass in batches: {errors[-1]:.4f}; all at once: {whole:.4f}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(np.arange(1, len(errors) + 1), errors, marker="o", label="mini-batches")
axes.axhline(whole, linestyle="--", color="gray", label="all at once")
axes.set_xlabel("batch of 200 images")
axes.set_ylabel("relative error on all images")
axes.legend()
plt.show()
