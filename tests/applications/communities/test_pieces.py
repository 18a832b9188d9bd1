"""Parts of the searches for communities against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications.communities import likelihood, number
from nonneg.applications.communities.likelihood import SPREAD, edge_likelihood
from nonneg.applications.communities.symnmf import (
    SymNMFOptions,
    _balanced,
    _memberships,
    _pure_nodes,
    normalized_adjacency,
)
from nonneg.exceptions import InvalidParameterError


def graph(n, rng, first=None):
    """Return a weighted graph without loops and isolated nodes; with `first`, a bipartite one."""
    A = np.triu(rng.integers(1, 5, (n, n)) * (rng.random((n, n)) < 0.6), 1).astype(float)
    A[np.arange(n - 1), np.arange(1, n)] += 1.0
    if first is not None:
        A[:first, :first], A[first:, first:] = 0.0, 0.0
        A[:first, first:] += 0.5
    return sp.csr_array(A + A.T)


def fitted_likelihood(A, memberships, first=None):
    """Return the mean log-likelihood of an edge, edge by edge."""
    m = SPREAD / memberships.shape[1] + (1 - SPREAD) * memberships
    L, R = (m, m) if first is None else (m[:first], m[first:])
    table = A.toarray() if first is None else A.toarray()[:first, first:]
    table = table / table.sum()
    t, u = table.sum(axis=1), table.sum(axis=0)
    out, into = t.copy(), u.copy()
    B = np.linalg.pinv(L.T @ np.diag(t) @ L) @ (L.T @ table @ R) @ np.linalg.pinv(R.T @ np.diag(u) @ R)
    B = np.maximum(B, SPREAD * np.abs(B).mean())
    share = np.triu(table) if first is None else table  # every edge once
    share = share / share.sum()
    for _ in range(likelihood.N_UPDATES):
        counts = L.T @ (share / (L @ B @ R.T)) @ R
        if first is None:
            counts = (counts + counts.T) / 2
        B = B * counts / np.outer(t @ L, u @ R)
        t = np.sqrt(t * out / (L @ (B @ (u @ R))))
        u = t if first is None else np.sqrt(u * into / (R @ ((t @ L) @ B)))
    i, j = np.nonzero(share)
    logs = np.log(t[i]) + np.log(u[j]) + np.log((L @ B @ R.T)[i, j])
    return share[i, j] @ logs - (t @ L) @ B @ (u @ R)


@pytest.mark.parametrize("first", [None, 5])
def test_the_likelihood_of_edges_is_that_of_the_blockmodel(first, rng):
    A, memberships = graph(12, rng, first), rng.dirichlet(np.ones(3), 12)
    assert edge_likelihood(A, memberships, first) == pytest.approx(
        fitted_likelihood(A, memberships, first), rel=1e-10
    )


def test_a_sample_of_many_edges_stands_for_all(rng, monkeypatch):
    A, memberships = graph(60, rng), rng.dirichlet(np.ones(2), 60)
    whole = edge_likelihood(A, memberships)
    monkeypatch.setattr(likelihood, "N_EDGES", A.nnz // 4)
    assert edge_likelihood(A, memberships) == pytest.approx(whole, abs=0.1)
    assert edge_likelihood(A, memberships) != whole
    rows, columns, weights = likelihood._edges(A, symmetric=False)
    assert weights.sum() == pytest.approx(1.0)
    found = A.toarray()[rows, columns]
    np.testing.assert_allclose(weights, found / found.sum())
    assert (likelihood._edges(A, symmetric=True)[0] <= likelihood._edges(A, symmetric=True)[1]).all()


def test_both_sides_of_a_community_get_the_same_norm_and_the_product_stays(rng):
    factor = rng.random((9, 3)) * [1.0, 5.0, 0.2]
    factor[:4, 2] = 0.0  # a community without one side stays as it is
    sides = (slice(0, 4), slice(4, 9))
    found, scales = _balanced(factor, sides)
    first, second = (np.linalg.norm(found[side], axis=0) for side in sides)
    np.testing.assert_allclose(first[:2], second[:2])
    np.testing.assert_allclose(found[:4] @ found[4:].T, factor[:4] @ factor[4:].T)
    np.testing.assert_allclose(found[4:], factor[4:] * scales)
    np.testing.assert_allclose(found[:, 2], factor[:, 2])


def test_memberships_are_shares_without_the_small_ones():
    factor = np.array([[4.0, 1.0, 0.1], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 3.0, 0.0]])
    found = _memberships(factor, 0.1)
    np.testing.assert_allclose(found.values, [[0.8, 0.2, 0], [0, 0, 0], [1 / 3] * 3, [0, 1, 0]])
    np.testing.assert_array_equal(found.reached, [True, False, True, True])
    assert found.clipped == 0.0
    # A threshold above the largest membership leaves that one.
    np.testing.assert_allclose(_memberships(factor, 0.9).values[0], [1, 0, 0])
    np.testing.assert_allclose(_memberships(factor, 0.9).values[2], [1 / 3] * 3)
    np.testing.assert_array_equal(_pure_nodes(found.values, factor)[:2], [0, 3])


def test_normalized_entries_are_divided_by_the_roots_of_degrees(rng):
    A = graph(8, rng)
    for extra in (0.0, 0.25, 1.0):
        degrees = A.toarray().sum(axis=1)
        scale = 1.0 / np.sqrt(degrees + extra * degrees.mean())
        np.testing.assert_allclose(
            normalized_adjacency(A, extra).toarray(), scale[:, None] * A.toarray() * scale
        )


@pytest.mark.parametrize("wrong", [{"regularization": -0.1}, {"threshold": 1.0}, {"threshold": -0.1}])
def test_options_outside_their_range_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match="at least 0 and threshold at least 0 and below 1"):
        SymNMFOptions(**wrong)
    assert SymNMFOptions(regularization=0.0, threshold=0.0).threshold == 0.0


def test_the_number_of_communities_is_limited_by_the_smaller_side(rng):
    A = graph(30, rng, first=9)
    assert number.count_communities(A, n_first=9, rng=0).candidates.tolist() == [1, 2, 3]
    assert number.count_communities(A, rng=0).candidates.tolist() == list(range(1, 11))


def test_pairs_without_an_edge_have_none_and_all_are_counted(rng):
    A = graph(10, rng)
    rows, columns, count = number._pairs_without_edge(A, None, rng)
    dense = A.toarray()
    assert (dense[rows, columns] == 0).all()
    assert (rows != columns).all()
    assert count == np.sum(np.triu(dense == 0, 1))
    pairs = {tuple(sorted(pair)) for pair in zip(rows.tolist(), columns.tolist(), strict=True)}
    missing = np.sum(np.triu(dense == 0, 1))
    assert len(pairs) > missing / 2
    two = graph(10, rng, first=4).tolil()
    two[0, 6] = two[6, 0] = 0.0
    two = sp.csr_array(two)
    two.eliminate_zeros()
    rows, columns, count = number._pairs_without_edge(two, 4, rng)
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == {(0, 6)}
    assert count == 1


def test_the_bethe_hessian_counts_eigenvalues_below_zero(rng):
    A = graph(14, rng)
    ones = (A.toarray() > 0).astype(float)
    degrees = ones.sum(axis=1)
    r = np.sqrt((degrees**2).sum() / degrees.sum() - 1)
    below = sum(
        int((np.linalg.eigvalsh((r**2 - 1) * np.eye(14) - s * r * ones + np.diag(degrees)) < 0).sum())
        for s in (1, -1)
    )
    assert number.bethe_hessian_count(A, 14) == max(1, below)
    assert number.bethe_hessian_count(A, 1) == 1
