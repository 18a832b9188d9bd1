"""Leading eigenvectors: exact, ordered, the same in every run."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import threads
from nonneg.applications.communities import eigenvectors as module
from nonneg.applications.communities import leading_eigenvectors
from nonneg.datasets import mixed_membership_graph
from nonneg.exceptions import InvalidParameterError, UnknownNameError


@pytest.fixture(scope="module")
def adjacency():
    return mixed_membership_graph(250, 3, mean_degree=15, rng=1).adjacency


@pytest.mark.parametrize("spectrum", ["magnitude", "algebraic"])
def test_both_ways_give_the_same_vectors(adjacency, spectrum, monkeypatch):
    whole = leading_eigenvectors(adjacency, 4, spectrum=spectrum)
    monkeypatch.setattr(module, "DENSE_NODES", 0)
    iterated = leading_eigenvectors(adjacency, 4, spectrum=spectrum)
    np.testing.assert_allclose(iterated.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(iterated.vectors, whole.vectors, atol=1e-10)
    assert max(iterated.residual, whole.residual) < 1e-13
    assert iterated.next_value is None
    assert abs(whole.next_value) <= abs(whole.values[-1])


def test_the_same_graph_gives_the_same_bytes(adjacency, monkeypatch):
    monkeypatch.setattr(module, "DENSE_NODES", 0)
    first, second = (leading_eigenvectors(adjacency, 3) for _ in range(2))
    np.testing.assert_array_equal(first.vectors, second.vectors)
    other = leading_eigenvectors(adjacency, 3, rng=5)
    np.testing.assert_allclose(first.vectors, other.vectors, atol=1e-10)


def test_threads_do_not_change_the_bytes():
    # Large enough that the rows are shared out.
    large = mixed_membership_graph(20_000, 2, mean_degree=60, rng=0).adjacency
    found = []
    for n_threads in (1, 2):
        with threads(n_threads):
            found.append(leading_eigenvectors(large, 2).vectors)
    np.testing.assert_array_equal(*found)


def test_magnitude_finds_the_sides_of_a_bipartite_graph():
    sides = np.zeros((6, 6))
    sides[:3, 3:] = sides[3:, :3] = 1.0
    pairs = leading_eigenvectors(sp.csr_array(sides), 2)
    np.testing.assert_allclose(np.sort(pairs.values), [-3, 3], atol=1e-12)
    with pytest.raises(InvalidParameterError, match="only 2 nonzero eigenvalues"):
        leading_eigenvectors(sp.csr_array(sides), 3)


def test_what_cannot_be_is_refused(adjacency):
    with pytest.raises(InvalidParameterError, match="more than the 2 nodes"):
        leading_eigenvectors(sp.csr_array(np.ones((2, 2))), 3)
    with pytest.raises(UnknownNameError, match="spectrum"):
        leading_eigenvectors(adjacency, 2, spectrum="smallest")


def test_progress_is_shown(adjacency, capsys, monkeypatch):
    monkeypatch.setattr(module, "DENSE_NODES", 0)
    leading_eigenvectors(adjacency, 2, verbose=1)
    assert "products in all" in capsys.readouterr().err


def test_of_a_pair_of_opposite_sign_the_positive_value_comes_first():
    path = sp.csr_array(np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1))
    pairs = leading_eigenvectors(path, 1)
    np.testing.assert_allclose(pairs.values, [np.sqrt(2)])
    assert (pairs.vectors > 0).all()


def test_a_large_bipartite_graph_keeps_the_positive_value_of_a_pair():
    rng = np.random.default_rng(0)
    table = sp.csr_array((rng.random((400, 600)) < 0.02).astype(float))
    graph = sp.csr_array(sp.block_array([[None, table], [table.T, None]]))
    assert graph.shape[0] > module.DENSE_NODES
    first = leading_eigenvectors(graph, 1)
    assert first.values[0] > 0
    assert first.residual < 1e-12
    three = leading_eigenvectors(graph, 3)
    np.testing.assert_allclose(three.values[:2], [first.values[0], -first.values[0]])
    assert three.values[2] > 0
