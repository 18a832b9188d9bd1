"""Rank correlations where some nodes have no memberships."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from nonneg.exceptions import InvalidDataError, NonFiniteDataError
from nonneg.metrics import averaged_rank_correlation, match_memberships


@pytest.mark.parametrize("where", ["true", "found"])
def test_a_node_with_one_missing_membership_is_left_out(where, rng):
    tables = {name: rng.random((12, 3)) for name in ("true", "found")}
    tables[where][4, 1] = np.nan
    tables[where][7] = np.inf
    with pytest.raises(NonFiniteDataError, match="2 of 12 nodes"):
        match_memberships(*tables.values())
    known = np.delete(np.arange(12), [4, 7])
    found = match_memberships(*tables.values(), nan="omit")
    expected = match_memberships(*(each[known] for each in tables.values()))
    np.testing.assert_array_equal(found.permutation, expected.permutation)
    np.testing.assert_allclose(found.correlations, expected.correlations)
    pairs = zip(range(3), found.permutation, strict=True)
    by_hand = [
        scipy.stats.spearmanr(tables["true"][known, i], tables["found"][known, j])[0] for i, j in pairs
    ]
    np.testing.assert_allclose(found.correlations, by_hand)
    assert averaged_rank_correlation(*tables.values(), nan="omit") == pytest.approx(np.mean(by_hand))


def test_a_community_without_a_partner_and_constant_ones(rng):
    true, found = rng.random((9, 3)), rng.random((9, 2))
    matching = match_memberships(true, found)
    assert min(matching.permutation.tolist()) == -1
    assert matching.correlations[matching.permutation == -1] == 0.0
    constant = np.ones((9, 1))
    assert match_memberships(constant, found[:, :1]).correlations[0] == 0.0
    with pytest.raises(InvalidDataError, match="at least one node"):
        match_memberships(np.full((3, 1), np.nan), np.ones((3, 1)), nan="omit")
