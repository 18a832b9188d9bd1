"""
Gene programs from single cells
===============================

Consensus NMF of simulated counts, 10,000 cells by 2,000 genes: how many programs there are, which genes they
involve, and which cells use them. The panels show stability and error over the number of programs, the found
programs next to the planted ones, and the usages of the cells of each type.
"""

import importlib.util

import matplotlib.pyplot as plt
import numpy as np

from nonneg import ConsensusNMF
from nonneg.datasets import single_cells

# %%
# Eight cell types, and two activities that a third of the cells run in addition to the program of their type.
# Counts are negative binomial; most of them are zero.
cells = single_cells(10_000, 2_000, n_programs=10, n_activities=2, library_size=150, rng=0)
depth = cells.X.sum(axis=1)
X = cells.X.multiply(np.median(depth) / depth[:, None]).tocsr().astype(np.float32)

# %%
# Few restarts, so that the example is done in a minute. The default is 100.
model = ConsensusNMF([8, 10, 12], n_init=3, random_state=0)
W = model.fit_transform(X)
print(model.rank_reason_)
print(model.certificate_)

# %%
# Programs are compared in scaled units, in which every gene counts equally.
found, true = (H / model.column_scale_ for H in (model.components_, cells.H))
similarity = np.corrcoef(true, found)[: len(true), len(true) :]
order = np.argsort(-similarity, axis=1, kind="stable")[:, 0]
top = [[cells.gene_names[at] for at in np.argsort(-row, kind="stable")[:5]] for row in found]
usages = W * np.linalg.norm(found, axis=1)
usages /= usages.sum(axis=1, keepdims=True)

# %%
# In an AnnData object (``pip install 'nonneg[singlecell]'``) scanpy's plots find the result.
if importlib.util.find_spec("anndata") is not None:
    import anndata

    from nonneg.integrations.anndata import store

    adata = anndata.AnnData(X)
    store(adata, model, W)
    print(adata)

# %%
by_type = np.array([usages[cells.labels == one].mean(axis=0) for one in range(8)])
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
ranks = [one.n_components for one in model.ranks_]
left.plot(ranks, [one.stability.min() for one in model.ranks_], "o-", label="least stable program")
left.plot(ranks, [one.error / model.ranks_[0].error for one in model.ranks_], "s--", label="relative error")
left.set_xlabel("number of programs")
left.set_xticks(ranks)
left.legend()
image = middle.imshow(similarity[:, order[: similarity.shape[1]]], vmin=0, vmax=1, cmap="Blues")
middle.set_xlabel("found program, matched")
middle.set_ylabel("planted program")
middle.set_title(f"top genes of the first: {', '.join(top[order[0]])}", fontsize=7)
figure.colorbar(image, ax=middle, label="correlation")
right.imshow(by_type[:, order], cmap="Blues", aspect="auto")
right.set_xlabel("found program, matched")
right.set_ylabel("cell type")
right.set_title("mean usage", fontsize=9)
plt.show()
