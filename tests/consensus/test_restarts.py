"""Restarts of a task: what each of them returns depends on its seed alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.consensus.planted import planted

from nonneg.consensus import restarts as consensus_restarts
from nonneg.consensus.restarts import RestartData, RestartOptions, restart_seed, run_batch
from nonneg.data import as_data_matrix
from nonneg.losses.penalties import Penalties
from nonneg.solvers import restarts


@pytest.mark.parametrize("single", [False, True])
def test_a_restart_on_sparse_counts_does_not_depend_on_those_beside_it(monkeypatch, single):
    monkeypatch.setattr(consensus_restarts, "SINGLE_PRECISION", 0 if single else np.inf)
    monkeypatch.setattr(restarts, "COLUMNS", 10)  # three at a time
    counts = as_data_matrix(sp.csr_array(planted(4)[0]))
    data = RestartData.of(counts, counts, None, 0, 2.0)
    options = RestartOptions(2.0, Penalties())
    batch = [(number, restart_seed(0, 3, number)) for number in range(7)]
    together = run_batch(data, 3, batch, options)
    assert len({each.n_iter for each in together}) > 1  # those that wait begin at different times
    for one, other in zip(batch, together, strict=True):
        alone = run_batch(data, 3, [one], options)[0]
        np.testing.assert_array_equal(alone.spectra, other.spectra)
        assert (alone.loss, alone.n_iter, alone.number) == (other.loss, other.n_iter, other.number)
