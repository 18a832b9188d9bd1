"""Simulated single cells: the planted truth is what the counts follow."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import single_cells
from nonneg.exceptions import InvalidParameterError


def test_counts_have_the_planted_means_and_dispersion():
    cells = single_cells(4000, 20, 3, n_activities=1, library_size=400, dispersion=0.5, rng=0)
    X = cells.X.toarray()
    assert cells.X.dtype == np.float32
    np.testing.assert_array_equal(X, np.round(X))
    np.testing.assert_allclose(cells.H.sum(axis=1), 1.0)
    np.testing.assert_allclose(cells.W.sum(axis=1), 1.0)
    expected = cells.W @ cells.H
    share = X.sum(axis=0) / X.sum()
    np.testing.assert_allclose(share, expected.mean(axis=0), rtol=0.1)
    pure = cells.W[:, 0] == 1.0
    means = X[pure].mean(axis=0)
    # Depth varies, too: log-normal with deviation 0.3.
    spread = (X[pure].var(axis=0) - means) / means**2
    assert np.median(spread) == pytest.approx(1.5 * np.exp(0.09) - 1, rel=0.25)
    again = single_cells(4000, 20, 3, n_activities=1, library_size=400, dispersion=0.5, rng=0)
    assert (cells.X != again.X).nnz == 0


def test_data_sets_differ_as_they_are_told():
    alike = single_cells(100, 30, 3, n_batches=2, batch_effect=0.0, rng=1)
    np.testing.assert_allclose(alike.batch_H[0], alike.batch_H[1])
    np.testing.assert_allclose(alike.batch_H[0], alike.H)
    by_gene = single_cells(100, 30, 3, n_batches=2, batch_effect=0.5, rng=1)
    ratio = by_gene.batch_H / by_gene.H
    np.testing.assert_allclose(ratio[0, 0] / ratio[0, 0, 0], ratio[0, 1] / ratio[0, 1, 0])
    own = single_cells(100, 400, 3, n_batches=2, batch_effect=0.0, program_effect=1.0, rng=1)
    ratio = own.batch_H[0] / own.H
    assert 0.01 < np.mean(ratio > 1.5 * np.median(ratio)) < 0.1
    assert set(own.batch) == {0, 1}


def test_one_data_set_has_no_programs_of_its_own():
    plain, asked = (single_cells(50, 20, 3, program_effect=effect, rng=2) for effect in (0.0, 1.0))
    np.testing.assert_array_equal(plain.batch_H, asked.batch_H)
    assert (plain.X != asked.X).nnz == 0


def test_impossible_numbers_are_refused():
    with pytest.raises(InvalidParameterError, match="n_programs=2, n_activities=2"):
        single_cells(10, 10, 2, n_activities=2)
    with pytest.raises(InvalidParameterError, match="dispersion"):
        single_cells(10, 10, 2, n_activities=0, dispersion=-1)
