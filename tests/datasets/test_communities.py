"""The mixed membership stochastic blockmodel."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import mixed_membership_graph
from nonneg.exceptions import InvalidParameterError, ShapeError


def test_the_graph_is_symmetric_simple_and_the_same_for_the_same_seed():
    first, second = (mixed_membership_graph(400, 3, n_pure=2, rng=5) for _ in range(2))
    A = first.adjacency
    assert (second.adjacency != A).nnz == 0
    assert (A != A.T).nnz == 0
    assert not A.diagonal().any()
    assert set(np.unique(A.data)) == {1.0}
    np.testing.assert_allclose(first.memberships.sum(axis=1), 1.0)
    pure = first.memberships[first.pure_nodes]
    assert (pure.max(axis=1) == 1).all()
    assert np.bincount(pure.argmax(axis=1), minlength=3).min() >= 2


def test_pairs_are_joined_as_often_as_the_model_says():
    # Two kinds of pairs, many draws: the share of joined pairs beside 1 - exp(-t B t').
    shares = []
    for seed in range(60):
        planted = mixed_membership_graph(40, 2, mean_degree=8, alpha=0.5, between=0.2, rng=seed)
        expected = -np.expm1(-planted.memberships @ planted.connectivity @ planted.memberships.T)
        upper = np.triu_indices(40, 1)
        joined = planted.adjacency.toarray()[upper]
        expected = expected[upper]
        high = expected > np.median(expected)
        shares.append(
            [joined[high].mean() - expected[high].mean(), joined[~high].mean() - expected[~high].mean()]
        )
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(len(shares))
    assert (np.abs(mean) < 4 * error).all()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidParameterError, match="n_pure=3"):
        mixed_membership_graph(5, 2, n_pure=3)
    with pytest.raises(InvalidParameterError, match="mean_degree"):
        mixed_membership_graph(10, 2, mean_degree=10)


def test_communities_of_different_sizes_and_degrees_of_their_own():
    planted = mixed_membership_graph(3000, 2, mean_degree=20, alpha=[0.2, 0.8], n_pure=5, rng=0)
    assert planted.memberships.mean(axis=0) == pytest.approx([0.2, 0.8], abs=0.03)
    theta = np.repeat([1.0, 3.0], 1500)
    planted = mixed_membership_graph(3000, 2, mean_degree=20, degree_parameters=theta, rng=0)
    degrees = planted.adjacency.sum(axis=1)
    assert degrees[1500:].mean() / degrees[:1500].mean() == pytest.approx(3.0, rel=0.1)
    assert degrees.mean() == pytest.approx(20, rel=0.05)
    scaled = mixed_membership_graph(3000, 2, mean_degree=20, degree_parameters=1e3 * theta, rng=0)
    assert scaled.adjacency.sum() == pytest.approx(planted.adjacency.sum(), rel=0.02)
    with pytest.raises(ShapeError, match="alpha"):
        mixed_membership_graph(30, 3, alpha=[0.1, 0.2])
    for bad in (np.ones(20), np.zeros(30)):
        with pytest.raises(InvalidParameterError, match="degree_parameters must be 30 positive numbers"):
            mixed_membership_graph(30, 3, degree_parameters=bad)
