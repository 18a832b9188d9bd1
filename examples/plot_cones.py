"""
Cones of directions
===================

Points in three dimensions lie in three cones. `ConeNMF` finds them, `partial_fit` finds those of a shuffled
stream in more dimensions, and the certificates bound the error.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg import ConeNMF, metrics
from nonneg.datasets import circular_cones

# %%
# Fit
# ---
# The points of `circular_cones` satisfy the geometric assumption of the paper, so the clusters are exact.

planted = circular_cones(600, 3, 3, size_angle=0.15, rng=0)
model = ConeNMF(n_components=3).fit(planted.X)
print(f"accuracy of the clusters: {metrics.clustering_accuracy(planted.labels, model.labels_):.3f}")
for name in ("cluster-bound", "geometric-assumption"):
    print(model.certificate_[name])

# %%
# A stream
# --------
# Points of six cones in 200 dimensions arrive in batches, in random order; none is stored.

wide = circular_cones(3000, 200, 6, size_angle=0.2, rng=0)
order = np.random.default_rng(0).permutation(len(wide.X))
stream = ConeNMF(n_components=6)
errors, bounds = [], []
for start in range(0, len(order), 250):
    stream.partial_fit(wide.X[order[start : start + 250]])
    seen = wide.X[order[: start + 250]]
    left = np.linalg.norm(seen - stream.inverse_transform(stream.transform(seen)))
    errors.append(left / np.linalg.norm(seen))
    bounds.append(stream.certificate_["streamed-error"].number)
accuracy = metrics.clustering_accuracy(wide.labels, stream.predict(wide.X))
print(f"accuracy after the stream: {accuracy:.3f}")
print(stream.certificate_["streamed-error"])

# %%
# Figures
# -------
# Left: directions of the points in the plane where their entries sum to 1, with the axes of the cones.
# Right: the error of the stream so far, below its certified bound.

figure = plt.figure(figsize=(10, 4.5), layout="constrained")
left, right = figure.subplots(1, 2)
corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


def in_plane(points: np.ndarray) -> np.ndarray:
    return (points / points.sum(axis=1, keepdims=True)) @ corners


left.scatter(*in_plane(planted.X).T, c=model.labels_, s=6, cmap="tab10", vmax=9)
left.scatter(*in_plane(model.basis_).T, marker="x", c="black", label="axes of the smallest cones")
left.plot(*corners[[0, 1, 2, 0]].T, color="gray", linewidth=0.8)
left.set_aspect("equal")
left.set_axis_off()
left.set_title("Directions, colored by cluster")
left.legend(loc="upper left", fontsize=8)

batches = np.arange(1, len(errors) + 1)
right.plot(batches, bounds, label="certified bound", color="tab:red")
right.plot(batches, errors, label="error", color="tab:blue")
right.set_ylim(0, 1.15 * max(bounds))
right.set_xlabel("batches of 250 points")
right.set_ylabel("relative error of all points so far")
right.set_title("A stream")
right.legend()
plt.show()
