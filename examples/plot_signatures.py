"""
Mutational signatures
=====================

The mutations of simulated tumors, 96 types x 500, are sums of five planted signatures. Restarts on resampled
counts agree on them, and stability and error show how many there are.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg.applications import MutationalSignatures
from nonneg.metrics import match_components
from nonneg.plotting import plot_consensus, plot_signatures

TUMORS, SIGNATURES = 500, 5

# %%
# Tumors
# ------
# Most tumors have few mutations of most signatures, and a few have very many.

rng = np.random.default_rng(1)
planted = rng.dirichlet(np.full(96, 0.12), size=SIGNATURES)
exposures = rng.gamma(0.4, 1500.0, size=(TUMORS, SIGNATURES))
catalog = rng.poisson(exposures @ planted).T  # 96 x 500, in COSMIC's order

# %%
# Signatures
# ----------
# Five restarts per number are enough here; real data deserve the default of 100.

model = MutationalSignatures(range(4, 7), n_init=5, random_state=0).fit(catalog)
print(model.rank_reason_)
print(model.certificate_)
found = match_components(planted, model.signatures_)
print(f"cosines with the planted signatures: {np.round(found.cosines, 4)}")

# %%
# Exposures
# ---------
# Intervals of the number of mutations that each signature explains in the first tumor.

low, high = model.exposure_intervals(catalog[:, :1], n_bootstrap=100)
for at, (one, other) in enumerate(zip(low[0], high[0], strict=True)):
    print(f"signature {at}: {model.exposures_[0, at]:.0f} mutations ({one:.0f} to {other:.0f})")

# %%
# Figures
# -------
# The signatures in the usual six colors.

plot_signatures(model)
plt.show()

# %%
# How the restarts agree.

plot_consensus(model)
plt.show()
