"""The default method and the default number of communities: what decides, and what is said of it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import load
from nonneg.applications import MixedMembership
from nonneg.datasets import mixed_membership_graph
from nonneg.datasets.real import networkx_graph
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonnegError
from nonneg.metrics import averaged_rank_correlation

ESTIMATES = {"eigengap", "non-backtracking"}


def test_communities_that_avoid_themselves_are_left_to_pure_nodes():
    k = 3
    apart = mixed_membership_graph(500, k, mean_degree=100, alpha=0.2, between=4.0, rng=1)
    model = MixedMembership(k).fit(apart.adjacency)
    # NMF starts from communities that hold together.
    assert model.method_ == "regularized-spa"
    assert model.scores_["regularized-spa"] > model.scores_["nmf"] + 0.02
    found = averaged_rank_correlation(apart.memberships, model.memberships_)
    assert found > 0.5
    lost = MixedMembership(k, method="nmf").fit_transform(apart.adjacency)
    assert averaged_rank_correlation(apart.memberships, lost) < found - 0.2
    assert model.certificate_["method"].number >= 0


def test_the_score_of_every_candidate_is_in_the_certificate(tmp_path):
    planted = mixed_membership_graph(400, 6, mean_degree=20, alpha=0.02, rng=0)
    model = MixedMembership(6).fit(planted.adjacency)
    statement = model.certificate_["method"]
    assert set(model.scores_) == {"nmf", "regularized-spa", "poisson"}
    for name, score in model.scores_.items():
        assert statement.quantities[name] == score
        assert f"{name} {score:.4g}" in statement.sentence
    # Hidden edges are more likely within planted communities than anywhere.
    assert model.scores_[model.method_] > 0.3
    model.save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").scores_ == model.scores_
    again = MixedMembership(6).fit(planted.adjacency)
    np.testing.assert_array_equal(again.memberships_, model.memberships_)
    assert MixedMembership(6, method="nmf").fit(planted.adjacency).scores_ == {}


def test_nmf_is_used_where_hidden_edges_do_not_tell():
    # Of two edges none or one is hidden.
    model = MixedMembership(2).fit(nx.to_scipy_sparse_array(nx.path_graph(5)))
    assert model.method_ == "nmf"


@pytest.mark.parametrize(
    ("n", "k", "degree", "options"),
    [(500, 5, 60, {}), (400, 3, 80, {"between": 4.0})],
    ids=["five", "disassortative"],
)
def test_the_planted_number_is_found(n, k, degree, options, tmp_path):
    planted = mixed_membership_graph(n, k, mean_degree=degree, alpha=0.15, rng=3, **options)
    model = MixedMembership("auto").fit(planted.adjacency)
    count = model.number_
    assert model.n_communities_ == count["n_communities"] == k == model.memberships_.shape[1]
    assert count["estimates"] == dict.fromkeys(ESTIMATES, k)
    assert model.certificate_["number-of-communities"].holds
    gaps = count["curves"]["eigengap"]
    assert len(count["candidates"]) == len(gaps)
    # The first gap does not count.
    assert np.argmax(gaps[1:]) == k - 2
    model.save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").number_ == count


def test_noise_has_no_communities():
    # The non-backtracking matrix sees none, and gaps of noise are somewhere.
    rng = np.random.default_rng(0)
    upper = sp.csr_array(np.triu(rng.random((300, 300)) < 0.1, 1).astype(float))
    model = MixedMembership("auto").fit(upper + upper.T)
    gap = model.number_["estimates"]["eigengap"]
    assert model.number_["estimates"]["non-backtracking"] == 1 == model.n_communities_ < gap
    statement = model.certificate_["number-of-communities"]
    assert f"disagree: eigengap {gap}, non-backtracking 1. Hidden edges" in statement.sentence
    assert statement.quantities["ahead"] >= -2 * statement.quantities["standard_error"]
    assert "number-of-communities" not in MixedMembership(2).fit(upper + upper.T).certificate_


def test_hidden_edges_judge_estimates_that_disagree():
    shares = {"alpha": [0.1, 0.15, 0.25, 0.4], "n_pure": 5}
    planted = mixed_membership_graph(1000, 4, mean_degree=100, **shares, rng=0)
    model = MixedMembership("auto", method="regularized-spa").fit(planted.adjacency)
    assert model.number_["estimates"] == {"eigengap": 2, "non-backtracking": 4}
    assert model.n_communities_ == 4
    assert model.certificate_["number-of-communities"].holds
    assert "Hidden edges are more likely with 4" in model.number_["reason"]


def test_a_network_with_two_sides_and_uneven_degrees_has_two_communities():
    # The median of three estimates was 9 of 2 on a network of political blogs.
    rng = np.random.default_rng(0)
    strengths = 1.0 + rng.pareto(1.4, 600)
    planted = mixed_membership_graph(
        600, 2, mean_degree=25, alpha=0.1, degree_parameters=strengths, between=0.1, rng=rng
    )
    assert MixedMembership("auto").fit(planted.adjacency).n_communities_ == 2


def test_small_and_bipartite_graphs_have_a_number_too():
    assert MixedMembership("auto").fit(networkx_graph("southern-women").X).n_communities_ == 2
    pair = MixedMembership("auto").fit(np.array([[0, 1], [1, 0]]))
    assert pair.n_communities_ == 1
    assert pair.number_["reason"] == "The graph is too small to estimate the number."
    assert pair.number_["ahead"] == []
    with pytest.raises(InvalidParameterError, match="n_communities"):
        MixedMembership("many").fit(np.array([[0, 1], [1, 0]]))


CLIQUES = nx.to_scipy_sparse_array(nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6)))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 11, "auto"])
@pytest.mark.parametrize("method", ["auto", "nmf", "poisson", "regularized-spa", "spa", "spoc", "merit"])
def test_two_cliques_are_answered_for_every_number(k, method):
    # `MixedMembership(3)` ended in a bare exception.
    try:
        model = MixedMembership(k, method=method).fit(CLIQUES)
    except NonnegError:
        assert k not in (1, 2, "auto")
        return
    assert np.isfinite(model.memberships_).all()
    if k in (2, "auto"):
        assert sorted(np.bincount(model.labels_)) == [6, 6]


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("k", [1, 2, "auto"])
def test_a_graph_of_self_loops_alone_has_no_edges(k):
    with pytest.raises(InvalidDataError, match="from a node to itself"):
        MixedMembership(k).fit(sp.csr_array(np.eye(4)))
    try:
        kept = MixedMembership(k, self_loops="keep").fit(sp.csr_array(np.eye(4)))
    except NonnegError:
        return
    assert np.isfinite(kept.memberships_).all()


@pytest.mark.parametrize("kind", ["ring", "complete"])
def test_equal_eigenvalues_are_no_gap(kind):
    adjacency = np.ones((30, 30)) - np.eye(30) if kind == "complete" else np.roll(np.eye(30), 1, axis=1)
    model = MixedMembership("auto", random_state=0).fit(np.maximum(adjacency, adjacency.T))
    assert model.n_communities_ == 1
    assert "have no gap" in model.certificate_["number-of-communities"].sentence


def test_hidden_edges_that_a_single_community_explains_as_well_are_told():
    upper = np.triu(np.random.default_rng(1).random((300, 300)) < 0.05, 1)
    model = MixedMembership(2, random_state=0).fit((upper | upper.T).astype(float))
    assert max(model.scores_.values()) < 0.001
    assert "A single community" in model.certificate_["method"].sentence
