"""Memberships by NMF, and graphs with directions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from reproduction.data import load_facebook_ego, load_football
from reproduction.data.store import is_available

from nonneg import load
from nonneg.applications import MixedMembership
from nonneg.datasets import mixed_membership_graph
from nonneg.metrics import averaged_rank_correlation, clustering_accuracy


def directed_graph(seed=0, n=120):
    """Group 0 sends to group 1, group 1 to group 2, group 2 to group 0, with some noise."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) % 3
    rates = np.where(groups[None, :] == (groups[:, None] + 1) % 3, 0.4, 0.02)
    np.fill_diagonal(rates, 0.0)
    return sp.csr_array((rng.random((n, n)) < rates).astype(float)), groups


@pytest.mark.parametrize("method", ["nmf", "poisson"])
def test_cliques_are_communities_and_the_loss_falls(method):
    cliques = sp.block_diag([sp.coo_array(np.ones((n, n)) - np.eye(n)) for n in (8, 6, 7)], format="csr")
    model = MixedMembership(3, method=method).fit(cliques)
    np.testing.assert_allclose(model.memberships_.max(axis=1), 1.0)
    assert sorted(np.bincount(model.labels_)) == [6, 7, 8]
    loss = model.result_.history.loss
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(loss))
    assert len(set(model.labels_[model.pure_nodes_])) == 3
    assert model.certificate_["stationarity"].holds
    seen = []
    MixedMembership(3, method=method, tol=0.0, max_iter=4, callback=lambda now: seen.append(now.n_iter)).fit(
        directed_graph()[0]
    )
    assert max(seen) == 4


@pytest.mark.filterwarnings("ignore:.*have no edges")
@pytest.mark.skipif(not is_available("facebook_ego"), reason="the data set is not on this machine")
@pytest.mark.covering(0)
@pytest.mark.parametrize("ego", ["414", "348", "698"])
def test_the_default_was_behind_the_best_on_known_networks(ego):
    # The former default, smoothed-spa, was 0.066 behind the best of all methods on ego 414.
    found = load_facebook_ego(ego)
    circles = found.extras["circles"].toarray()
    circles = circles[:, circles.sum(axis=0) >= 5]
    truth = circles / np.maximum(circles.sum(axis=1, keepdims=True), 1.0)
    known = truth.sum(axis=1) > 0
    scores = {}
    for method in ("auto", "spa", "regularized-spa", "spoc"):
        model = MixedMembership(truth.shape[1], method=method, unreached="mean", random_state=0).fit(found.X)
        scores[method] = averaged_rank_correlation(truth[known], model.memberships_[known], nan="omit")
    assert scores["auto"] > max(scores.values()) - 0.03


@pytest.mark.skipif(not is_available("football"), reason="the data set is not on this machine")
def test_conferences_of_football_are_found():
    found = load_football()
    assert clustering_accuracy(found.y, MixedMembership(12).fit(found.X).labels_) > 0.85


@pytest.mark.covering(0)
@pytest.mark.filterwarnings("ignore:.*have no edges")
@pytest.mark.parametrize("seed", [0, 1])
def test_two_parties_with_very_uneven_degrees_are_told_apart_as_well_as_by_the_best(seed):
    # Like the political blogs, on which SPA was ahead of MERIT, the default at the time.
    rng = np.random.default_rng(seed)
    strengths = 1.0 + rng.pareto(1.4, 500)
    planted = mixed_membership_graph(
        500, 2, mean_degree=20, alpha=0.1, degree_parameters=strengths, rng=rng, between=0.1
    )
    truth = planted.memberships.argmax(axis=1)
    found = {}
    for method in ("auto", "spa", "spoc", "merit"):
        model = MixedMembership(2, method=method, random_state=0).fit(planted.adjacency)
        kept = model.labels_ >= 0
        found[method] = clustering_accuracy(truth[kept], model.labels_[kept])
    assert found["auto"] >= max(found.values()) - 0.01


def test_nodes_of_a_directed_graph_send_and_receive():
    A, groups = directed_graph()
    model = MixedMembership(3, random_state=0).fit(A)
    assert model.graph_.kind == "directed"
    sending = model.sending_memberships_.argmax(axis=1)
    receiving = model.receiving_memberships_.argmax(axis=1)
    assert clustering_accuracy(groups, sending) > 0.95
    assert clustering_accuracy(groups, receiving) > 0.95
    # A community is made of those that send and of those that receive: one group on.
    senders = [np.bincount(groups[sending == at]).argmax() for at in range(3)]
    receivers = [np.bincount(groups[receiving == at]).argmax() for at in range(3)]
    assert [(at + 1) % 3 for at in senders] == receivers
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0)
    # Without directions the groups avoid themselves, which is another answer.
    assert MixedMembership(3, kind="undirected", random_state=0).fit(A).sending_memberships_ is None


def test_nodes_that_only_receive_have_no_sending_membership(tmp_path):
    A, _ = directed_graph(n=30)
    A = sp.lil_array(A)
    A[0] = 0.0
    A[:, 1] = 0.0
    A[2], A[:, 2] = 0.0, 0.0
    with pytest.warns(UserWarning, match="1 of 30 nodes have no edges"):
        model = MixedMembership(3, random_state=0).fit(A.tocsr())
    assert np.isnan(model.sending_memberships_[[0, 2]]).all()
    assert np.isnan(model.receiving_memberships_[[1, 2]]).all()
    np.testing.assert_allclose(model.memberships_[0], model.receiving_memberships_[0])
    np.testing.assert_array_equal(model.isolated_nodes_, [2])
    assert {"sending_0", "receiving_2"} <= set(model.node_table())
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.sending_memberships_, model.sending_memberships_)
    assert again.graph_.directed
    assert again.method_ == model.method_


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_unit_of_the_weights_changes_nothing(scale):
    planted = mixed_membership_graph(100, 3, mean_degree=25, rng=2).adjacency
    plain, scaled = (MixedMembership(3).fit(graph) for graph in (planted, planted * scale))
    np.testing.assert_allclose(scaled.memberships_, plain.memberships_, atol=1e-6)
