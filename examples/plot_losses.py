"""
A loss for counts
=================

The noise of counts grows with their mean. The Kullback-Leibler divergence accounts for that; the squared
error is dominated by the largest counts.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg import NMF

# %%
# Poisson counts with a strong and three weak components
# ------------------------------------------------------

rng = np.random.default_rng(0)
H = rng.gamma(0.4, size=(4, 60))
H[0] *= 20
X = rng.poisson(rng.gamma(1.0, size=(300, 4)) @ H).astype(float)


def recovery(components: np.ndarray) -> np.ndarray:
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (H, components)]
    return (unit[0] @ unit[1].T).max(axis=1)


cosines = {
    loss: recovery(NMF(4, beta_loss=loss, random_state=0).fit(X).components_)
    for loss in ("frobenius", "kullback-leibler")
}
for loss, values in cosines.items():
    print(f"{loss}: cosines with the true components {np.round(values, 3)}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for shift, (loss, values) in zip((-0.2, 0.2), cosines.items(), strict=True):
    axes.bar(np.arange(4) + shift, values, width=0.4, label=loss)
axes.set_xticks(np.arange(4), ["strong", "weak", "weak", "weak"])
axes.set_ylabel("cosine with the true component")
axes.legend(loc="lower right")
plt.show()
