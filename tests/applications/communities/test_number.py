"""The number of communities: found where it is planted, with a reason and curves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import load
from nonneg.applications import MixedMembership
from nonneg.applications.communities import number
from nonneg.applications.communities.number import bethe_hessian_count, count_communities
from nonneg.datasets import mixed_membership_graph
from nonneg.datasets.real import networkx_graph
from nonneg.exceptions import InvalidParameterError

NAMES = (number.EIGENGAP, number.BETHE, number.HELD_OUT)


@pytest.mark.parametrize(
    ("n", "k", "degree", "options"),
    [(400, 3, 40, {}), (500, 5, 60, {}), (400, 3, 80, {"between": 4.0})],
    ids=["three", "five", "disassortative"],
)
def test_the_planted_number_is_found(n, k, degree, options):
    planted = mixed_membership_graph(n, k, mean_degree=degree, alpha=0.15, rng=3, **options)
    found = count_communities(planted.adjacency, rng=0)
    assert found.n_communities == k
    assert bethe_hessian_count(planted.adjacency, 20) == k
    assert str(k) in found.reason
    assert found.curves["held-out edges"][0] == 1.0
    assert len(found.candidates) == len(found.curves["eigengap"])


def test_a_random_graph_is_one_community():
    rng = np.random.default_rng(0)
    upper = sp.csr_array(np.triu(rng.random((300, 300)) < 0.1, 1).astype(float))
    assert count_communities(upper + upper.T, rng=0).n_communities == 1


def test_auto_is_a_number_of_communities_of_the_estimator(tmp_path):
    planted = mixed_membership_graph(300, 3, mean_degree=40, alpha=0.15, rng=0)
    model = MixedMembership("auto", random_state=0).fit(planted.adjacency)
    assert model.n_communities_ == 3 == model.memberships_.shape[1]
    assert set(model.number_.estimates) == {"eigengap", "non-backtracking", "held-out edges"}
    same = MixedMembership("auto", random_state=0).fit(planted.adjacency)
    np.testing.assert_array_equal(
        same.number_.curves["held-out edges"], model.number_.curves["held-out edges"]
    )
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert again.number_.as_dict() == model.number_.as_dict()
    assert MixedMembership(3).fit(planted.adjacency).number_ is None
    with pytest.raises(InvalidParameterError, match="n_communities"):
        MixedMembership("many").fit(planted.adjacency)


def test_a_bipartite_graph_and_a_pair_have_a_number_too():
    pytest.importorskip("networkx")
    assert MixedMembership("auto", random_state=0).fit(networkx_graph("southern-women").X).n_communities_ == 2
    assert MixedMembership("auto", random_state=0).fit(np.array([[0, 1], [1, 0]])).n_communities_ == 1


def ring(sizes, rng, extra=0):
    """Return cliques in a ring, each joined to the next by one edge, and some further edges."""
    n = sum(sizes)
    A, starts = np.zeros((n, n)), np.cumsum([0, *sizes])
    for first, last in pairwise(starts):
        A[first:last, first:last] = 1.0
        A[first, last % n] = 1.0
    for _ in range(extra):
        A[tuple(rng.integers(n, size=2))] = 1.0
    A = np.maximum(A, A.T)
    np.fill_diagonal(A, 0.0)
    return sp.csr_array(A)


@pytest.mark.parametrize(
    ("sizes", "extra"), [([3] * 8, 0), ([2] * 9, 4), ([4, 3, 2] * 3, 6), ([5] * 4, 0), ([1, 1, 1], 0)]
)
def test_the_bethe_hessian_is_that_of_the_papers(sizes, extra, rng):
    A = ring(sizes, rng, extra)
    degrees, n = A.sum(axis=1), A.shape[0]
    r = np.sqrt(max((degrees**2).sum() / degrees.sum() - 1.0, 1.0))
    below = [
        int(np.sum(np.linalg.eigvalsh((r**2 - 1) * np.eye(n) - s * r * A.toarray() + np.diag(degrees)) < 0))
        for s in (1, -1)
    ]
    weighted = sp.csr_array(A * 7.0)  # edges are counted, not weights
    assert bethe_hessian_count(weighted, n) == max(1, sum(below))
    assert bethe_hessian_count(A, n, 1) == max(1, below[0])
    assert bethe_hessian_count(A, 2) <= 2


def test_the_number_is_the_median_of_the_estimates():
    for counts, most, k, words in (
        ((3, 3, 3), 9, 3, "All three estimates say 3."),
        ((2, 4, 4), 9, 4, "Two of three estimates say 4 (eigengap 2, non-backtracking 4, held-out edges 4)."),
        (
            (5, 2, 7),
            9,
            5,
            "The estimates differ (eigengap 5, non-backtracking 2, held-out edges 7); 5 is their",
        ),
        ((3, 3, 3), 3, 3, "All three estimates say 3. Larger numbers were not tried."),
    ):
        found, reason = number._recommended(dict(zip(NAMES, counts, strict=True)), most)
        assert found == k
        assert reason.startswith(words)
        assert ("not tried" in reason) == (most == 3)


def test_candidates_are_limited_by_the_nodes(monkeypatch):
    def most(n):
        edges = sp.csr_array(np.ones((n, n)) - np.eye(n))
        return count_communities(edges, rng=0).candidates[-1]

    assert [most(n) for n in (2, 5, 6, 8, 9, 96)] == [1, 1, 2, 2, 3, number.MOST]
    monkeypatch.setattr(number, "MANY_NODES", 96)
    assert most(96) == number.MOST
    monkeypatch.setattr(number, "MANY_NODES", 95)
    assert most(96) == number.MOST // 2
    found = count_communities(sp.csr_array(np.ones((5, 5)) - np.eye(5)))
    assert (found.n_communities, found.estimates, found.curves) == (1, {}, {})
    assert "too small" in found.reason


def test_gaps_are_differences_of_eigenvalues_of_the_normalized_matrix(rng):
    A = sp.csr_array(ring([4, 4, 4], rng) * 2.0)
    degrees = A.sum(axis=1)
    scale = 1.0 / np.sqrt(degrees + degrees.mean())
    values = np.sort(np.linalg.eigvalsh(scale[:, None] * A.toarray() * scale))[::-1]
    found = count_communities(A, rng=0)
    np.testing.assert_allclose(found.curves["eigengap"], values[:4] - values[1:5])
    assert found.estimates["eigengap"] == 2 + int(np.argmax(found.curves["eigengap"][1:]))
    apart = sp.csr_array(sp.block_diag([sp.coo_array(np.ones((4, 4)) - np.eye(4))] * 3))
    assert count_communities(apart, rng=0).estimates["eigengap"] == 3
    # Eigenvalues that are all equal have no gap: at least as many as were tried.
    pairs = sp.csr_array(sp.block_diag([sp.coo_array([[0.0, 1.0], [1.0, 0.0]])] * 6))
    assert count_communities(pairs, rng=0).estimates["eigengap"] == 4


def test_eigenvalues_by_iteration_are_those_of_the_whole_matrix(rng, monkeypatch):
    A = ring([5] * 6, rng, 20)
    values = np.sort(np.linalg.eigvalsh(A.toarray()))[::-1]
    for k in (3, 29, 30):
        np.testing.assert_allclose(number._largest(A, k), values[:k], atol=1e-12)
    monkeypatch.setattr(number, "DENSE_NODES", 0)
    monkeypatch.setattr(number, "ROUGH", 0.0)
    for k in (3, 29, 30):
        np.testing.assert_allclose(number._largest(A, k), values[:k], atol=1e-10)


@pytest.mark.parametrize("n_first", [None, 14])
@pytest.mark.parametrize("dense", [True, False])
def test_hidden_pairs_are_predicted_by_the_leading_eigenvectors(n_first, dense, rng, monkeypatch):
    n, most = 30, 4
    weights = np.triu(rng.integers(1, 4, (n, n)) * (rng.random((n, n)) < 0.4), 1).astype(float)
    if n_first is not None:
        weights[:n_first, :n_first] = weights[n_first:, n_first:] = 0.0
    upper = sp.coo_array(weights)
    A = sp.csr_array(weights + weights.T)
    hidden = rng.random(upper.nnz) < 0.2
    if not dense:
        monkeypatch.setattr(number, "DENSE_NODES", 0)
        monkeypatch.setattr(number, "ROUGH", 0.0)
    found = number._split_errors(upper, hidden, A, most, n_first, np.random.default_rng(5))
    shown = np.zeros((n, n))
    shown[upper.row[~hidden], upper.col[~hidden]] = upper.data[~hidden]
    shown += shown.T
    scale = 1.0 / np.sqrt(shown.sum(axis=1) + shown.sum(axis=1).mean())
    values, vectors = np.linalg.eigh(scale[:, None] * shown * scale)
    order = np.argsort(-np.abs(values) if n_first is None else -values)[:most]
    truth = scale[:, None] * A.toarray() * scale
    rows, columns, n_free = number._pairs_without_edge(A, n_first, np.random.default_rng(5))
    for k in range(1, most + 1):
        lead = order[:k]
        # Of the two sides of a bipartite graph half of the eigenvalues mirror the others.
        factor = (1.0 if n_first is None else 2.0) / (1.0 - number.HIDDEN)
        guess = factor * (vectors[:, lead] * values[lead]) @ vectors[:, lead].T
        at = upper.row[hidden], upper.col[hidden]
        free = np.mean(guess[rows, columns] ** 2) * number.HIDDEN * n_free
        assert found[k - 1] == pytest.approx(np.sum((truth - guess)[at] ** 2) + free, rel=1e-8)
    nothing = number._split_errors(upper, np.ones(upper.nnz, dtype=bool), A, most, n_first, rng)
    np.testing.assert_array_equal(nothing, np.zeros(most))


def test_errors_are_relative_to_one_community(rng, monkeypatch):
    A = ring([5] * 4, rng, 10)
    seen = []

    def errors(upper, hidden, adjacency, most, n_first, rng):
        seen.append(hidden)
        assert (upper.row < upper.col).all()
        assert upper.nnz == len(hidden) == A.nnz // 2
        return np.arange(4.0, 4.0 - most, -1.0) * len(seen)

    monkeypatch.setattr(number, "_split_errors", errors)
    found = number._held_out_errors(A, 3, None, np.random.default_rng(0))
    np.testing.assert_allclose(found, [1.0, 0.75, 0.5])
    assert len(seen) == number.N_SPLITS
    monkeypatch.setattr(number, "_split_errors", lambda *given: np.zeros(3))
    np.testing.assert_array_equal(number._held_out_errors(A, 3, None, np.random.default_rng(0)), np.zeros(3))
