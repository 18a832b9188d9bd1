"""
On a Dask cluster
=================

The rows of X live on the workers, and so do the rows of W. Only small arrays travel. The result is that of
one machine, however the rows are distributed.
"""

from __future__ import annotations

import importlib.util

import matplotlib.pyplot as plt
import numpy as np

from nonneg import NMF

rng = np.random.default_rng(0)
X = rng.gamma(1.0, size=(6000, 5)) @ rng.gamma(1.0, size=(5, 80))
X += 0.2 * rng.random(X.shape)
settings = {"n_components": 5, "init": "random", "random_state": 0, "max_iter": 40, "tol": 1e-2}
fits = {"NumPy array": NMF(**settings).fit(X)}

# %%
# A cluster inside this process, to try it out; ``Client("tcp://scheduler:8786")`` uses a real one.

if importlib.util.find_spec("distributed") is not None:
    import dask.array as da
    from dask.distributed import Client

    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
        for rows in (3000, 1000):
            chunked = da.from_array(X, chunks=(rows, -1))
            fits[f"{len(X) // rows} chunks on 2 workers"] = NMF(**settings).fit(chunked)

# %%
# The three curves coincide.

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for (label, model), (style, width) in zip(fits.items(), [("-", 6), ("--", 3), (":", 2)], strict=False):
    axes.semilogy(model.history_.n_iter, model.history_.loss, style, linewidth=width, label=label)
    print(f"{label}: loss {model.history_.loss[-1]:.6f} after {model.n_iter_} iterations")
axes.set_xlabel("iteration")
axes.set_ylabel("loss")
axes.legend()
plt.show()
