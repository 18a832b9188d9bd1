"""Data built against what is said of consensus, ranks, topics and communities: none makes it false."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, ConsensusNMF, estimate_rank
from nonneg.applications.communities.certificate import _reached
from nonneg.applications.communities.number import BETHE, EIGENGAP, count_communities
from nonneg.applications.topics.certificate import seed_statement, topic_statements
from nonneg.consensus.certificate import consensus_certificate
from nonneg.consensus.certificate import recommended as recommended_rank
from nonneg.consensus.result import RankConsensus, RestartTable
from nonneg.results import Verdict

RESTARTS = RestartTable(
    np.repeat([1, 2, 3], 4), *(np.zeros(12, int) for _ in range(4)), np.array([True, True, True, False] * 3)
)


def consensus_of(stability, **facts):
    """Return the consensus of one rank with some facts."""
    k = len(stability)
    plain = {
        "n_components": k, "spectra": np.eye(k), "stability": np.array(stability), "usage": np.ones(k),
        "recurrence": np.ones(k), "silhouette": float(np.mean(stability)), "silhouette_error": 0.0,
        "error": 1.0, "cophenetic": 1.0,
        "labels": np.arange(k), "density": np.zeros(k), "distances": np.zeros((k, k)),
        "distance_labels": np.arange(k), "n_restarts": 4, "n_outliers": 0, "best_loss": 0.5,
    }  # fmt: skip
    return RankConsensus(**{**plain, **facts})


def test_a_single_component_is_not_said_to_have_a_silhouette():
    said = consensus_certificate(consensus_of([0.7]), RESTARTS)["stability"].sentence
    assert "one minus the mean distance between restarts 0.70" in said
    assert "silhouette" not in said


def test_half_of_the_restarts_are_no_majority_and_a_tie_of_two_minima_is_not_stable():
    # Two local minima with half of the restarts each: every cluster is tight.
    found = consensus_of([1.0, 1.0, 0.79], recurrence=np.array([0.5, 0.75, 1.0]))
    statement = consensus_certificate(found, RESTARTS)["stability"]
    assert statement.verdict is Verdict.FAILS
    assert statement.quantities["unstable"] == "0, 2"
    assert statement.sentence.endswith(
        "Not stable: components 0 (silhouette 1.00, in 50% of the restarts); 2 (silhouette 0.79, in 100% of "
        "the restarts)."
    )


@pytest.mark.parametrize("clustering", ["kmeans", "matched"])
@pytest.mark.filterwarnings("ignore:density_threshold")
def test_more_components_than_the_data_have_are_not_stable(clustering, rng):
    X = np.outer(rng.random(30), rng.random(9))  # every nonnegative split of one component is exact
    model = ConsensusNMF(3, n_init=5, random_state=0, clustering=clustering).fit(X)
    assert model.certificate_["stability"].quantities["unstable"] == "0, 1, 2"
    assert model.certificate_["consensus-error"].verdict is Verdict.NOT_VERIFIABLE


@pytest.mark.parametrize(("error", "loss"), [(1e-9, 0.0), (1.0, 1e-320 / 2), (math.inf, 0.5), (1.0, -1e-20)])
def test_errors_that_rounding_decides_are_not_compared(error, loss):
    statement = consensus_certificate(consensus_of([1.0, 1.0], error=error, best_loss=loss), RESTARTS)
    assert statement["consensus-error"].number is None or math.isfinite(statement["consensus-error"].number)


def test_a_rank_is_not_recommended_where_none_stands_out():
    falling = [consensus_of([level] * k) for k, level in ((2, 1.0), (3, 0.9), (4, 0.7))]
    assert recommended_rank(falling)[0] == 2
    assert recommended_rank(falling)[1].startswith("No number stands out: stability falls from the smallest")
    flat = [consensus_of([0.9] * k) for k in (2, 3, 4)]
    rank, reason = recommended_rank(flat)
    assert rank == 4
    assert reason.startswith("No number stands out: the largest candidate, 4 components, is as stable")
    assert "such as 4:8" in reason
    unstable = [consensus_of([level] * k) for k, level in ((6, 0.58), (7, 0.6), (8, 0.5))]
    rank, reason = recommended_rank(unstable)
    assert rank == 7
    assert reason.startswith("No number stands out: no mean silhouette reaches 0.8")


def test_the_largest_rank_as_stable_as_the_best_is_recommended_with_every_number():
    levels = {2: 0.99, 3: 0.80, 4: 0.97, 5: 0.60}
    ranks = [consensus_of([level] * k, silhouette_error=0.015) for k, level in levels.items()]
    rank, reason = recommended_rank(ranks)
    assert rank == 4
    assert reason.startswith("4 components are as stable as those of the most stable of 4 ranks")
    assert "2: 0.99, 3: 0.80, 4: 0.97, 5: 0.60" in reason
    exact = [consensus_of([level] * k) for k, level in levels.items()]
    assert recommended_rank(exact)[0] == 2  # 0.97 is less than 0.99 by more than no error


def test_levels_in_the_middle_of_the_values_may_be_nearer_than_their_means():
    # The means are not the nearest levels, so that the sentence must not say so.
    X = np.diag(np.sqrt(np.r_[9.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.8, 0.7]))
    sentence = estimate_rank(X, candidates=[4]).certificate["ratio-condition"].sentence
    assert "three levels, the means of theirs" in sentence
    assert "best" not in sentence


def test_a_ratio_to_a_value_that_is_rounding_is_a_bound():
    X = np.diag([8.0, 4.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    assert "singular values 3 and 4 is at least" in estimate_rank(X).reason
    X = np.diag([8.0, 7.0, 6.0, 0.01, 0.01, 0.01, 0.01])
    assert "singular values 3 and 4 is 600, the largest" in estimate_rank(X).reason


def statements(components, counts, n_empty=0, anchors=None):
    """Return the statements about topics by name."""
    components = np.asarray(components, dtype=float)
    words = np.argsort(-components, axis=1, kind="stable")[:, :10]
    found = topic_statements(components, words, anchors, "abcdefghijkl", n_empty, np.asarray(counts), 2)
    return {each.name: each for each in found}


def test_two_topics_of_the_same_three_words_do_not_differ():
    components = np.zeros((3, 12))
    components[:2, :3], components[2, 3:] = 1 / 3, 1 / 9
    found = statements(components, [4, 4, 4])["topics-differ"]
    assert found.verdict is Verdict.FAILS
    assert "Topics 0 and 1 share 100% of their top words (3)" in found.sentence
    assert (found.number, found.threshold) == (1.0, 0.5)
    # One of three is less than half; and a topic of one word inside another shares all of it.
    components[1, :3] = 0.0
    components[1, 2:5] = 1 / 3
    found = statements(components, [4, 4, 4])["topics-differ"]
    assert "Topics 1 and 2 share 67% of their top words (2)" in found.sentence
    assert statements(np.eye(3, 12), [4, 4, 4])["topics-differ"].holds
    assert statements(np.ones((1, 12)), [4])["topics-differ"].holds


def test_half_of_the_words_is_not_more_than_half():
    components = np.zeros((2, 12))
    components[0, :4], components[1, 2:6] = 0.25, 0.25
    found = statements(components, [4, 4])["topics-differ"]
    assert found.holds
    assert "at most 50%" in found.sentence
    assert found.quantities["similarity_count"] == 2


def test_topics_that_rest_on_few_documents_are_counted():
    sentence = statements(np.eye(2, 12), [1, 9])["topics-supported"].sentence
    assert sentence.startswith("Topics that are the main topic of fewer than 2 documents: 0 (1)")
    assert sentence.endswith(": 0 (1).")
    assert statements(np.eye(2, 12), [2, 9])["topics-supported"].sentence.endswith("at least 2 documents.")


def test_the_least_exclusive_anchor_is_the_one_that_is_named():
    components = np.array([[0.5, 0.2, 0.3], [0.1, 0.2, 0.7]])
    found = statements(components, [4, 4], anchors=np.array([0, 1]))["anchors-exclusive"]
    assert found.number == 0.5
    assert "'b', has 50%" in found.sentence
    assert found.holds
    found = statements(components * [[1], [0]], [4, 4], anchors=np.array([0, 1]))["anchors-exclusive"]
    assert (found.number, found.quantities["mean_share"]) == (0.0, 0.5)
    found = statements(components, [4, 5], n_empty=3)["documents-covered"]
    assert (found.number, found.verdict) == (0.75, Verdict.FAILS)
    assert found.sentence.startswith("Documents with no word of a topic, which belong to none: 3 of 12")


def test_seed_words_without_weight_or_with_equal_weights_are_not_in_their_topic():
    # A word that is in no topic was counted for the first one, and a tie for the first of both.
    components = np.array([[0.0, 0.5, 0.3, 0.2], [0.0, 0.5, 0.1, 0.4]])
    found = seed_statement(components, {"one": np.array([0, 1, 2]), "two": np.array([3])}, "abcd")
    assert found.number == pytest.approx(1 / 3)
    assert found.verdict is Verdict.FAILS
    assert "'one', 33% have" in found.sentence
    assert "Not so 'a', 'b': leave them out" in found.sentence
    assert found.quantities["mean_share"] == pytest.approx(2 / 3)
    alone = seed_statement(components[:1], {"one": np.array([0, 1])}, "abcd")
    assert (alone.number, alone.holds) == (0.5, True)
    assert "in that topic. Not so 'a'" in alone.sentence


def cliques(count, size):
    """Return separate cliques of one size."""
    return sp.csr_array(sp.block_diag([sp.coo_array(np.ones((size, size)) - np.eye(size))] * count))


def test_a_number_of_communities_at_the_end_of_the_range_is_said_to_be():
    found = count_communities(cliques(40, 3))  # a third of the nodes is the largest candidate
    assert found["n_communities"] == 40
    # Gaps between equal eigenvalues are rounding.
    assert found["estimates"][EIGENGAP] == found["estimates"][BETHE] == 40
    assert found["reason"].endswith("Larger numbers were not tried.")
    for count, size in ((4, 9), (45, 5), (100, 6)):
        found = count_communities(cliques(count, size))
        assert found["n_communities"] == found["estimates"][BETHE] == count
        assert "not tried" not in found["reason"]


def test_a_graph_of_two_pairs_is_not_said_to_have_one_community():
    found = count_communities(cliques(2, 2))
    assert found["reason"] == "The graph is too small to estimate the number."


def test_nodes_far_away_in_a_large_component_are_not_said_to_lie_in_small_ones():
    class Search:
        method = "spoc"

    found = _reached(Search, 10, 2, 1)
    assert found.number == pytest.approx(0.3)
    assert found.sentence == (
        "The eigenvectors reach 7 of 10 nodes; 2 have no coordinate above rounding, and 1 has no edges."
    )
    assert _reached(Search, 10, 0, 0).holds


def test_a_column_that_outweighs_the_others_may_leave_them_well_explained(rng):
    # A constant column costs one component, and the others are explained as if it were not there.
    X = np.column_stack([np.full(40, 1000.0), rng.random((40, 2)) @ rng.random((2, 9))])
    model = NMF(3, random_state=0).fit(X)
    found = model.certificate_["column-balance"]
    assert found.quantities["columns"] == "0"
    assert found.number == pytest.approx(np.sum(X[:, 0] ** 2) / np.sum(X**2))
    rest = (X - model.transform(X) @ model.components_)[:, 1:]
    assert np.linalg.norm(rest) < 0.01 * np.linalg.norm(X[:, 1:])
