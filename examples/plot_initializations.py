"""
Initializations and restarts
============================

NMF is not convex: where a fit ends depends on where it starts. The figure shows the loss of four
initializations and of the best of five random ones.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from nonneg import NMF

X = load_digits().data
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
settings = {
    "default": {},
    "cones": {"init": "cr1"},
    "random": {"init": "random"},
    "best of 5 random": {"init": "random", "n_init": 5},
}
for name, parameters in settings.items():
    model = NMF(n_components=16, random_state=0, **parameters).fit(X)
    axes.loglog(model.history_.n_iter, model.history_.loss, label=name)
    print(f"{name}: loss {model.history_.loss[-1]:.0f} after {model.n_iter_} iterations")
axes.set(xlabel="iteration", ylabel="loss")
axes.legend()
plt.show()
