"""Rank correlation of memberships."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import spearmanr

from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.metrics import averaged_rank_correlation


def tables(seed=0):
    rng = np.random.default_rng(seed)
    true = np.round(rng.dirichlet(np.full(3, 0.4), 60), 1)  # rounded, so that there are many ties
    found = true[:, [2, 0, 1]] ** 2 + 0.1 * rng.random((60, 3))
    return true, found


def test_pairs_and_values_are_those_of_scipy():
    true, found = tables()
    expected = [spearmanr(true[:, i], found[:, j])[0] for i, j in enumerate([1, 2, 0])]
    assert averaged_rank_correlation(true, found) == pytest.approx(np.mean(expected), rel=1e-12)


def test_only_ranks_matter_and_sparse_tables_are_taken():
    true, found = tables(1)
    value = averaged_rank_correlation(true, found)
    assert averaged_rank_correlation(sp.csr_array(true), np.exp(3 * found)) == pytest.approx(value, rel=1e-12)
    assert averaged_rank_correlation(true, true[:, ::-1]) == pytest.approx(1.0)


def test_nodes_without_memberships_are_refused_or_left_out():
    true, found = tables()
    holes = found.copy()
    holes[[3, 8]] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"2 of 60 nodes .* nan='omit'"):
        averaged_rank_correlation(true, holes)
    rest = np.delete(np.arange(60), [3, 8])
    assert averaged_rank_correlation(true, holes, nan="omit") == pytest.approx(
        averaged_rank_correlation(true[rest], found[rest])
    )
    with pytest.raises(
        InvalidParameterError, match=r"nan=.* is not known. Expected one of \['error', 'omit'\]"
    ):
        averaged_rank_correlation(true, found, nan="raise")


def test_tables_of_other_shapes_are_refused():
    true, found = tables()
    with pytest.raises(ShapeError, match=r"same nodes .*got \(60, 3\) and \(59, 3\)"):
        averaged_rank_correlation(true, found[1:])
    with pytest.raises(ShapeError, match=r"one community per column|of shape .n_nodes, n_communities"):
        averaged_rank_correlation(true[:, 0], found)


def test_no_node_is_left():
    """A correlation of nothing has no value."""
    with pytest.raises(NonFiniteDataError, match="3 of 3 nodes"):
        averaged_rank_correlation(np.full((3, 2), np.nan), np.ones((3, 2)), nan="omit")


def test_two_nodes_have_ranks_too():
    assert averaged_rank_correlation([[0.0], [1.0]], [[2.0], [3.0]]) == pytest.approx(1.0)
    assert averaged_rank_correlation([[0.0], [1.0]], [[3.0], [2.0]]) == pytest.approx(-1.0)
    with pytest.raises(ShapeError, match="got"):
        averaged_rank_correlation(np.ones((2, 0)), np.ones((2, 1)))


def test_a_constant_community_or_one_without_a_partner_counts_as_nothing():
    true, _ = tables()
    constant = true.copy()
    constant[:, 1] = 0.5
    assert averaged_rank_correlation(true, constant) == pytest.approx(2 / 3)
    assert averaged_rank_correlation(true, true[:, :2]) == pytest.approx(2 / 3)
