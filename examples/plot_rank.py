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
from nonneg.plotting import plot_rank

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
plot_rank(found)
plt.show()
