"""
Sparse components
=================

An L1 penalty sets entries of the factors to zero; `alpha_H` is the same as `alpha_W` by default. A stronger
one gives sparser parts and a larger error.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from nonneg import NMF

X = load_digits().data
weights = [0.0, 0.1, 0.2, 0.5]
models = [NMF(16, random_state=0, alpha_W=weight, l1_ratio=1.0, max_iter=1000).fit(X) for weight in weights]
figure, panels = plt.subplots(len(weights), 8, figsize=(8, 4.4), layout="constrained")
for row, model, weight in zip(panels, models, weights, strict=True):
    zeros = np.mean(model.components_ == 0)
    error = np.linalg.norm(X - model.inverse_transform(model.transform(X))) / np.linalg.norm(X)
    print(f"alpha_W={weight}: {zeros:.0%} zeros, relative error {error:.3f}")
    for axes, component in zip(row, model.components_, strict=False):
        axes.imshow(component.reshape(8, 8), cmap="gray_r")
        axes.set_xticks([])
        axes.set_yticks([])
    row[0].set_ylabel(f"{weight}")
plt.show()
