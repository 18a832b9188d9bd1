"""
Communities of Les Miserables
=============================

`MixedMembership` estimates the number of communities and the memberships. Then methods are compared on a
random graph with known memberships.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from nonneg.applications import MixedMembership
from nonneg.datasets import load_les_miserables, mixed_membership_graph
from nonneg.metrics import averaged_rank_correlation, overlapping_modularity

# %%
# A novel
# -------

novel = load_les_miserables()
model = MixedMembership(n_communities="auto", random_state=0).fit(novel.X, names=novel.sample_names)
print(f"{model.n_communities_} communities: {model.number_['reason']}")
for pure, top in zip(model.pure_nodes_, model.top_nodes(6), strict=True):
    print(f"{model.node_names_[pure]}: " + ", ".join(f"{name} {share:.0%}" for name, share in top))
modularity = overlapping_modularity(novel.X, model.memberships_)
print(f"found by {model.method_}; overlapping modularity {modularity:.2f}")

# %%
# A graph with known memberships
# ------------------------------
# Spearman's rank correlation with the truth, against the mean degree.

degrees = (20, 40, 80)
methods = ("auto", "nmf", "poisson", "regularized-spa", "merit", "spa", "spoc")
scores: dict[str, list[float]] = {name: [] for name in methods}
for degree in degrees:
    planted = mixed_membership_graph(400, 3, mean_degree=degree, n_pure=10, rng=degree)
    for name in methods:
        found = MixedMembership(3, method=name, random_state=0).fit_transform(planted.adjacency)
        scores[name].append(averaged_rank_correlation(planted.memberships, found, nan="omit"))
for name, values in scores.items():
    print(f"{name:15} " + " ".join(f"{value:.3f}" for value in values))

# %%
# Figures
# -------
# Left: the memberships of the characters with the most connections. Right: the comparison.

figure = plt.figure(figsize=(11, 6), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
busiest = np.argsort(-model.graph_.degrees)[:25][::-1]
base = np.zeros(len(busiest))
for at, pure in enumerate(model.pure_nodes_):
    shares = model.memberships_[busiest, at]
    left.barh([model.node_names_[node] for node in busiest], shares, left=base, label=model.node_names_[pure])
    base += shares
left.set_xlim(0, 1)
left.set_xlabel("membership")
left.legend(loc="upper center", bbox_to_anchor=(0.5, 1.08), ncols=5, fontsize=8, frameon=False)
for name, values in scores.items():
    right.plot(degrees, values, marker="o", label=name)
right.set_xscale("log")
right.set_xticks(degrees, [str(degree) for degree in degrees])
right.set_xlabel("mean degree")
right.set_ylabel("rank correlation with the truth")
right.legend()
plt.show()
