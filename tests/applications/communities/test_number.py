"""The number of communities: found where it is planted, with a reason and curves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import load
from nonneg.applications import MixedMembership
from nonneg.applications.communities.number import bethe_hessian_count, count_communities
from nonneg.datasets import load_southern_women, mixed_membership_graph
from nonneg.exceptions import InvalidParameterError


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
    assert MixedMembership("auto", random_state=0).fit(load_southern_women().X).n_communities_ == 2
    assert MixedMembership("auto", random_state=0).fit(np.array([[0, 1], [1, 0]])).n_communities_ == 1
