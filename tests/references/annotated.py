"""A small AnnData object, for tests that need one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

N_CELLS, N_GENES, K = 40, 15, 3
HIGHLY_VARIABLE = np.arange(N_GENES) % 2 == 0


def annotated_counts(seed=0, dtype=np.float32):
    """Return cells with log-normalized X, counts in a layer and a column of highly variable genes."""
    anndata, pandas = (pytest.importorskip(name) for name in ("anndata", "pandas"))
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 4, size=(N_CELLS, K)) @ rng.gamma(0.5, size=(K, N_GENES)))
    return anndata.AnnData(
        sp.csr_matrix(np.log1p(counts).astype(dtype)),
        obs=pandas.DataFrame(index=[f"cell{at}" for at in range(N_CELLS)]),
        var=pandas.DataFrame(
            {"highly_variable": HIGHLY_VARIABLE}, index=[f"gene{at}" for at in range(N_GENES)]
        ),
        layers={"counts": sp.csr_matrix(counts.astype(dtype))},
    )
