"""Memberships: planted ones are found, and odd graphs are answered."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reproduction.data import load_dblp
from reproduction.data.store import is_available
from sklearn.base import clone

from nonneg.applications import MixedMembership
from nonneg.applications.communities import METHODS
from nonneg.applications.communities.methods import energetic_nodes
from nonneg.datasets import mixed_membership_graph
from nonneg.datasets.real import networkx_graph
from nonneg.exceptions import InvalidParameterError, NonnegWarning, UnknownNameError, UnsupportedError
from nonneg.metrics import averaged_rank_correlation, clustering_accuracy


def expected_graph(n=60, k=3, seed=0):
    """The blockmodel's matrix of probabilities: its eigenvectors are a simplex without noise."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(k, 0.6), size=n)
    shares[:k] = np.eye(k)
    blocks = 0.1 + 0.8 * np.diag(rng.uniform(0.6, 1.0, k))
    return shares @ blocks @ shares.T, shares, blocks


def test_without_noise_every_method_finds_pure_nodes_and_memberships():
    A, shares, blocks = expected_graph()
    # NMF is not exact for mixed nodes, regularized-spa not where degrees differ.
    quick = [
        name for name in METHODS if name not in ("auto", "nmf", "regularized-spa", "poisson", "fast-gradient")
    ]
    for name in quick:
        model = MixedMembership(3, method=name, self_loops="keep", energy=1.0, random_state=0).fit(A)
        assert sorted(model.pure_nodes_) == [0, 1, 2], name
        order = np.argsort(model.pure_nodes_)
        np.testing.assert_allclose(model.memberships_[:, order], shares, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(model.connectivity_[np.ix_(order, order)], blocks, atol=1e-9)
        assert model.certificate_["inside-cone"].holds
        assert model.certificate_["eigenvectors"].holds


def test_noisy_graphs_are_recovered_better_than_by_chance():
    planted = mixed_membership_graph(800, 3, mean_degree=60, n_pure=10, rng=3)
    before = planted.adjacency.copy()
    scores = {
        name: averaged_rank_correlation(
            planted.memberships,
            MixedMembership(3, method=name, random_state=0).fit_transform(planted.adjacency),
        )
        for name in ("merit", "spa", "spoc", "regularized-spa")
    }
    assert min(scores.values()) > 0.6
    assert (before != planted.adjacency).nnz == 0


OTHERS = tuple({"method": name} for name in ("spa", "spoc", "nmf", "poisson", "regularized-spa"))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_default_is_near_the_best_where_merit_as_published_was_not(seed):
    # Rank correlations of MERIT: .516, .538.
    planted = mixed_membership_graph(1000, 4, mean_degree=30, rng=seed)
    found = MixedMembership(4).fit_transform(planted.adjacency)
    assert averaged_rank_correlation(planted.memberships, found) > 0.73


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({"alpha": 0.2}, marks=pytest.mark.slow),
        pytest.param({"alpha": [0.1, 0.2, 0.4], "n_pure": 5}, marks=pytest.mark.slow),
        pytest.param({"alpha": 0.8, "n_pure": 5}, marks=pytest.mark.slow),
        {"alpha": 0.2, "degree_parameters": np.exp(0.7 * np.random.default_rng(5).standard_normal(300))},
        {"alpha": 0.2, "between": 4.0},
    ],
    ids=["balanced", "unbalanced", "few pure nodes", "uneven degrees", "disassortative"],
)
def test_the_default_is_never_far_from_the_best(kind):
    scores = {}
    for options in ({}, *OTHERS):
        found = []
        for seed in range(2):
            planted = mixed_membership_graph(300, 3, mean_degree=60, rng=seed, **kind)
            memberships = MixedMembership(3, **options).fit_transform(planted.adjacency)
            found.append(averaged_rank_correlation(planted.memberships, memberships))
        scores[str(options)] = np.mean(found)
    assert scores["{}"] > max(scores.values()) - 0.03


@pytest.mark.skipif(not is_available("dblp4"), reason="the data set is not on this machine")
@pytest.mark.parametrize(("method", "printed"), [("merit", 0.3559), ("spoc", 0.3479)])
def test_a_network_of_coauthors_gives_the_printed_correlation(method, printed):
    network = load_dblp("dblp4")
    model = MixedMembership(3, method=method).fit(network.X)
    found = averaged_rank_correlation(network.extras["memberships"], model.memberships_)
    assert found == pytest.approx(printed, abs=0.002)
    if method != "spoc":
        assert len(energetic_nodes(model.eigenvectors_, 0.99)) == 1032


@pytest.mark.parametrize("method", ["merit", "spa", "spoc"])
def test_the_leaders_of_the_karate_club_are_its_pure_nodes(method):
    pytest.importorskip("networkx")
    club = networkx_graph("karate")
    model = MixedMembership(2, method=method, random_state=0).fit(club.X)
    assert sorted(model.pure_nodes_) == [0, 33]
    assert clustering_accuracy(club.y, model.labels_) > 0.95


def test_the_communities_of_a_bipartite_graph_span_its_sides_unless_the_sides_are_meant():
    pytest.importorskip("networkx")
    women = networkx_graph("southern-women")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sides = MixedMembership(2, method="spa", kind="undirected").fit(women.X)
        assert clustering_accuracy(women.y, sides.labels_) == 1.0
        for options in ({}, {"method": "nmf"}, {"method": "poisson"}, {"method": "spa"}):
            groups = MixedMembership(2, **options).fit(women.X, names=women.sample_names)
            # The two circles of nine women that Davis, Gardner and Gardner described.
            assert sorted(np.bincount(groups.labels_[:18])) == [9, 9]
            assert len(set(groups.labels_[:9])) == 1
    table = MixedMembership(2).fit(women.X[:18, 18:])
    np.testing.assert_allclose(table.memberships_, MixedMembership(2).fit(women.X).memberships_, atol=1e-8)
    assert table.node_table()["side"].tolist() == [0] * 18 + [1] * 14
    assert "stationarity" in table.certificate_


def test_isolated_nodes_have_no_membership_and_are_counted():
    A, shares, _ = expected_graph(30)
    padded = sp.lil_array((32, 32))
    padded[:15, :15] = A[:15, :15]
    padded[17:, 17:] = A[15:, 15:]
    padded[:15, 17:] = A[:15, 15:]
    padded[17:, :15] = A[15:, :15]
    with pytest.warns(NonnegWarning, match="2 of 32 nodes have no edges; their memberships are NaN"):
        model = MixedMembership(3, method="spa", self_loops="keep").fit(padded)
    np.testing.assert_array_equal(model.isolated_nodes_, [15, 16])
    assert np.isnan(model.memberships_[[15, 16]]).all()
    np.testing.assert_array_equal(model.labels_[[15, 16]], -1)
    rest = np.delete(np.arange(32), [15, 16])
    order = np.argsort(model.pure_nodes_)
    np.testing.assert_allclose(model.memberships_[rest][:, order], shares, atol=1e-9)
    reached = model.certificate_["reached-nodes"]
    assert reached.quantities["isolated"] == 2
    assert reached.sentence == "The eigenvectors reach 30 of 32 nodes; 2 have no edges."


def test_nodes_of_other_components_get_what_was_asked_for():
    A, _, _ = expected_graph(20)
    pair = np.array([[0.0, 1e-3], [1e-3, 0.0]])
    graph = sp.block_diag([sp.coo_array(A), pair], format="csr")
    answers = {
        rule: MixedMembership(3, method="spa", self_loops="keep", unreached=rule).fit(graph)
        for rule in ("auto", "mean", "uniform", "zero", "nan")
    }
    mean = answers["auto"].memberships_[:20].mean(axis=0)
    np.testing.assert_allclose(answers["auto"].memberships_[20:], np.tile(mean, (2, 1)))
    np.testing.assert_allclose(answers["mean"].memberships_[20:], np.tile(mean, (2, 1)))
    np.testing.assert_allclose(answers["uniform"].memberships_[20:], 1 / 3)
    assert not answers["zero"].memberships_[20:].any()
    assert np.isnan(answers["nan"].memberships_[20:]).all()
    np.testing.assert_array_equal(answers["auto"].unreached_nodes_, [20, 21])
    sentence = answers["auto"].certificate_["reached-nodes"].sentence
    assert sentence == "The eigenvectors reach 20 of 22 nodes; 2 have no coordinate above rounding."
    np.testing.assert_array_equal(answers["nan"].labels_[20:], -1)
    np.testing.assert_allclose(
        MixedMembership(3, method="spoc", self_loops="keep").fit(graph).memberships_[20:], 1 / 3
    )


def test_the_node_table_and_the_top_nodes_carry_names():
    A, _, _ = expected_graph(12)
    names = [f"n{at}" for at in range(12)]
    model = MixedMembership(3, method="spa", self_loops="keep").fit(A, names=names)
    table = model.node_table()
    assert list(table) == [
        *("node", "degree", "community_0", "community_1", "community_2", "label", "pure", "reached"),
    ]
    assert table["node"].tolist() == names
    assert {table["node"][at] for at in np.flatnonzero(table["pure"])} == {"n0", "n1", "n2"}
    assert table["reached"].all()
    for at, top in enumerate(model.top_nodes(2)):
        assert top[0] == (names[model.pure_nodes_[at]], pytest.approx(1.0))


def test_choices_that_do_not_go_together_are_refused():
    A, _, _ = expected_graph(12)
    with pytest.raises(UnknownNameError, match="Did you mean 'merit'"):
        MixedMembership(3, method="merits").fit(A)
    with pytest.raises(UnsupportedError, match="method='spa' does not accept lam; only"):
        MixedMembership(3, method="spa", method_params={"lam": 0.1}, self_loops="keep").fit(A)
    with pytest.raises(UnsupportedError, match="method='spa' does not accept tol; only"):
        MixedMembership(3, method="spa", tol=0.1, self_loops="keep").fit(A)
    with pytest.raises(UnsupportedError, match="'fast-gradient' does not accept checkpoint"):
        MixedMembership(3, method="fast-gradient", checkpoint="run", self_loops="keep").fit(A)
    with pytest.raises(InvalidParameterError, match="12 nodes"):
        MixedMembership(13, self_loops="keep").fit(A)


def test_parameters_are_those_of_scikit_learn():
    model = MixedMembership(3, method="spoc", energy=0.9)
    assert clone(model).get_params() == model.get_params()
