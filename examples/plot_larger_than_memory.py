"""
A file larger than memory
=========================

The matrix stays in its file and is read block by block, once per iteration (out of core). The loss is that of
a fit in memory, iteration by iteration.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nonneg import NMF, open_matrix

rng = np.random.default_rng(0)
path = Path("big.npy")
X = rng.random((20_000, 6), dtype=np.float32) @ rng.random((6, 100), dtype=np.float32)
np.save(path, X + 0.1 * rng.random(X.shape, dtype=np.float32))

# %%
# A budget of 2 MB plays the role of a machine with little memory.

stored = open_matrix(path, memory="2MB")
print(f"{path.stat().st_size / 1e6:.0f} MB on disk; fits in memory: {stored.fits()}")
settings = {"n_components": 6, "init": "random", "random_state": 0, "max_iter": 40, "tol": 1e-2}
from_file = NMF(**settings).fit(stored)
in_memory = NMF(**settings).fit(np.load(path))

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.semilogy(in_memory.history_.n_iter, in_memory.history_.loss, linewidth=5, alpha=0.35, label="in memory")
axes.semilogy(from_file.history_.n_iter, from_file.history_.loss, label="from the file, block by block")
axes.set_xlabel("iteration")
axes.set_ylabel("loss")
axes.legend()
plt.show()
path.unlink()
