"""Steps on real graphs: as many nodes are kept as the MERIT paper's Table III prints."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import load_dblp
from scipy.sparse.linalg import eigsh

from nonneg.data import as_data_matrix
from nonneg.datasets import DatasetNotFoundError
from nonneg.separable.preprocessing import prepared


@pytest.mark.parametrize(("name", "k", "n_kept"), [("dblp4", 3, 1032), ("dblp2", 3, 3248)])
def test_nodes_that_hold_99_percent_of_the_energy(name, k, n_kept):
    try:
        graph = load_dblp(name)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    A = graph.X.astype(float)
    _, vectors = eigsh(A, k=k, which="LM", tol=0, v0=np.ones(A.shape[0]))
    kept = prepared(as_data_matrix(vectors), energy=0.99)
    assert kept.data.shape == (n_kept, k)
