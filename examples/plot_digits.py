"""
Parts of handwritten digits
===========================

NMF finds pieces of pen strokes in 1797 images. The certificate says what can be verified about the fit.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from nonneg import NMF
from nonneg.plotting import plot_components

# %%
# Fit
# ---
# One image per row, 64 pixels each.

X = load_digits().data
model = NMF(n_components=16, random_state=0)
W = model.fit_transform(X)
print(model.certificate_)

# %%
# Components
# ----------

plot_components(model, image_shape=(8, 8))

# %%
# An image and its approximation
# ------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(4, 2), layout="constrained")
left.imshow(X[3].reshape(8, 8), cmap="gray_r")
left.set_title("image")
right.imshow((W[3] @ model.components_).reshape(8, 8), cmap="gray_r")
right.set_title("approximation")
for axes in (left, right):
    axes.set_axis_off()

# %%
# Loss
# ----

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.semilogy(model.history_.n_iter, model.history_.loss)
axes.set(xlabel="iteration", ylabel="loss")
plt.show()
