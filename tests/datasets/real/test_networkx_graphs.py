"""Graphs that come with networkx."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import load_karate, load_les_miserables, load_southern_women
from nonneg.datasets.real.networkx_graphs import NETWORKX_GRAPHS, networkx_karate
from nonneg.datasets.store import is_available

pytest.importorskip("networkx")


def test_les_miserables():
    graph = load_les_miserables()
    assert graph.X.shape == (77, 77)
    assert graph.X.nnz == 2 * 254
    at = {name: place for place, name in enumerate(graph.sample_names)}
    assert graph.X[at["Valjean"], at["Cosette"]] == 31
    assert load_les_miserables(dtype=np.float32).X.dtype == np.float32


def test_southern_women_are_bipartite():
    graph = load_southern_women()
    assert (graph.X.shape, graph.X.nnz) == ((32, 32), 2 * 89)
    assert np.bincount(graph.y).tolist() == [18, 14]
    assert graph.X[graph.y == 0][:, graph.y == 0].nnz == 0


def test_the_karate_club_is_there_without_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("NONNEG_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = load_karate()
    assert (graph.X.shape, graph.X.nnz) == ((34, 34), 156)
    assert np.bincount(graph.y).tolist() == [17, 17]


@pytest.mark.skipif(not is_available("karate"), reason="the data set is not on this machine")
def test_the_karate_club_is_the_one_of_the_store():
    stored, embedded = load_karate(), networkx_karate()
    assert (stored.X != embedded.X).nnz == 0
    np.testing.assert_array_equal(stored.y, embedded.y)


def test_all_embedded_graphs_are_symmetric():
    for name, load in NETWORKX_GRAPHS.items():
        X = load().X
        assert (X != X.T).nnz == 0, name
