"""
Features under heavy noise
==========================

Samples are sparse combinations of features plus noise of zero mean. NMF cannot subtract and fits its
features to the noise; purification averages the noise out.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg import NMF, PurificationNMF
from nonneg.datasets import purification_data

# %%
# Data
# ----

data = purification_data(3000, 40, 6, sparsity=2, weights="uniform", rng=0)
rng = np.random.default_rng(1)
X = data.X + 2 * data.X.std() * rng.standard_normal(data.X.shape)

# %%
# Fits
# ----
# NMF needs nonnegative data: negative entries are set to zero.

purified = PurificationNMF(n_components=6, random_state=0).fit(X).components_
factorized = NMF(n_components=6, random_state=0).fit(np.maximum(X, 0)).components_


def similarities(features: np.ndarray) -> np.ndarray:
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (data.H, features)]
    return np.sort((unit[0] @ unit[1].T).max(axis=1))


for name, features in (("purification", purified), ("NMF", factorized)):
    print(f"{name}: mean cosine with the true features {similarities(features).mean():.3f}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(similarities(purified), marker="o", label="purification")
axes.plot(similarities(factorized), marker="o", label="NMF")
axes.set_xlabel("feature, worst first")
axes.set_ylabel("cosine with the nearest true feature")
axes.legend()
plt.show()
