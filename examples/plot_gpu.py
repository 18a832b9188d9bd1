"""
Single and double precision
===========================

``device="cuda"`` moves the work to a GPU; the data and the results stay NumPy arrays. Without a GPU, as on
the machine that built this page, only the curves of the CPU are drawn.
"""

from __future__ import annotations

import importlib.util

import matplotlib.pyplot as plt
import numpy as np

from nonneg import NMF

rng = np.random.default_rng(0)
X = rng.gamma(1.0, size=(3000, 8)) @ rng.gamma(1.0, size=(8, 200)) + rng.random((3000, 200))
devices = ["cpu"]
if importlib.util.find_spec("torch") is not None:
    import torch

    devices += ["cuda"] * torch.cuda.is_available()

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for device in devices:
    for dtype, style in ((np.float64, "-"), (np.float32, "--")):
        model = NMF(n_components=8, init="random", random_state=0, device=device, max_iter=60, tol=1e-2)
        model.fit(X.astype(dtype))
        label = f"{device}, {np.dtype(dtype).name}"
        axes.semilogy(model.history_.n_iter, model.history_.loss, style, label=label)
        print(f"{label}: loss {model.history_.loss[-1]:.6g}, components in {model.components_.dtype}")
axes.set_xlabel("iteration")
axes.set_ylabel("loss")
axes.legend()
plt.show()
