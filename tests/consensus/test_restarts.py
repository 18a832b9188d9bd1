"""Restarts of a task: what each of them returns depends on its seed alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.consensus.planted import planted

from nonneg import ConsensusNMF
from nonneg.consensus import restarts as consensus_restarts
from nonneg.consensus.resampling import check_resampling
from nonneg.consensus.restarts import RestartData, RestartOptions, restart_seed, run_batch
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError


@pytest.mark.parametrize("single", [False, True])
def test_a_restart_on_sparse_counts_does_not_depend_on_those_beside_it(monkeypatch, single):
    monkeypatch.setattr(consensus_restarts, "SINGLE_PRECISION", 0 if single else np.inf)
    counts = as_data_matrix(sp.csr_array(planted(4)[0]))
    data = RestartData.of(counts, counts, None, 0, 2.0)
    options = RestartOptions(2.0)
    batch = [(number, restart_seed(0, 3, number)) for number in range(7)]
    together = run_batch(data, 3, batch, options)
    assert len({each.n_iter for each in together}) > 1  # those that wait begin at different times
    for one, other in zip(batch, together, strict=True):
        alone = run_batch(data, 3, [one], options)[0]
        np.testing.assert_array_equal(alone.spectra, other.spectra)
        assert (alone.loss, alone.n_iter, alone.number) == (other.loss, other.n_iter, other.number)


@pytest.mark.parametrize("sparse", [False, True])
def test_counts_can_be_drawn_and_other_numbers_cannot(sparse):
    wrap = sp.csr_array if sparse else np.asarray
    counts = np.array([[1.0, 0.0, 3.0], [2.0, 5.0, 0.0]])
    for kind in (None, "bootstrap", "poisson"):
        check_resampling(as_data_matrix(wrap(counts)), kind)
    halves = counts.copy()
    halves[0, 0] = 0.5
    for wrong in (halves, np.where(counts == 5.0, 2e15, counts)):
        check_resampling(as_data_matrix(wrap(wrong)), "bootstrap")
        with pytest.raises(InvalidDataError, match="needs counts"):
            check_resampling(as_data_matrix(wrap(wrong)), "poisson")
    chunked = pytest.importorskip("dask.array").from_array(counts, chunks=(1, -1))
    check_resampling(as_data_matrix(chunked), None)
    with pytest.raises(UnsupportedInputError, match="in memory"):
        check_resampling(as_data_matrix(chunked), "bootstrap")


def test_ranks_up_to_the_smaller_side_are_taken():
    X = np.random.default_rng(0).random((6, 4)) + 0.1
    for shaped in (X, X.T):
        with pytest.raises(
            InvalidParameterError, match="n_components=5 is larger than the smaller side of X"
        ):
            ConsensusNMF([2, 5], n_init=2).fit(shaped)
