"""Scores of clusterings against scikit-learn, against a walk over all pairs, and worked by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from nonneg.exceptions import DataTypeError, InvalidDataError, ShapeError
from nonneg.metrics import clustering_accuracy, normalized_mutual_information, purity

SCORES = {
    "nmi": normalized_mutual_information,
    "purity": purity,
    "accuracy": clustering_accuracy,
}

# Classes of 3, 3 and 2 samples; clusters of 4, 3 and 1. The table of counts is
#            p  q  r
#         a  3  0  0
#         b  1  2  0
#         c  0  1  1
CLASSES = list("aaabbbcc")
CLUSTERS = list("ppppqqqr")
BY_HAND = {
    # Shares 3/8, 1/8, 2/8, 1/8, 1/8; entropies of (3, 3, 2)/8 and (4, 3, 1)/8.
    "nmi": (
        3 / 8 * np.log(8 * 3 / (3 * 4))
        + 1 / 8 * np.log(8 * 1 / (3 * 4))
        + 2 / 8 * np.log(8 * 2 / (3 * 3))
        + 1 / 8 * np.log(8 * 1 / (2 * 3))
        + 1 / 8 * np.log(8 * 1 / (2 * 1))
    )
    / np.sqrt(
        (6 / 8 * np.log(8 / 3) + 2 / 8 * np.log(8 / 2))
        * (4 / 8 * np.log(8 / 4) + 3 / 8 * np.log(8 / 3) + 1 / 8 * np.log(8))
    ),
    "purity": (3 + 2 + 1) / 8,
    "accuracy": (3 + 2 + 1) / 8,
}

labelings = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-2, 6), min_size=n, max_size=n)] * 2)
)


@pytest.mark.parametrize("name", SCORES)
def test_a_case_worked_by_hand(name):
    assert SCORES[name](CLASSES, CLUSTERS) == pytest.approx(BY_HAND[name], abs=1e-14)


@given(labelings)
@settings(max_examples=40, deadline=None)
def test_scores_are_those_of_scikit_learn_and_of_plain_counting(pair):
    true, found = pair
    expected = normalized_mutual_info_score(true, found, average_method="geometric")
    assert normalized_mutual_information(true, found) == pytest.approx(expected, abs=1e-12)
    table = contingency_matrix(true, found)
    assert purity(true, found) == pytest.approx(table.max(axis=0).sum() / table.sum())


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_no_other_pairing_of_classes_and_clusters_is_better(n_classes, n_clusters, seed):
    rng = np.random.default_rng(seed)
    true, found = rng.integers(n_classes, size=30), rng.integers(n_clusters, size=30)
    side = max(n_classes, n_clusters)
    table = np.zeros((side, side))
    np.add.at(table, (true, found), 1)
    best = max(table[range(side), list(order)].sum() for order in permutations(range(side)))
    assert clustering_accuracy(true, found) == pytest.approx(best / 30)


@pytest.mark.parametrize("name", SCORES)
def test_names_of_labels_and_order_of_samples_do_not_matter(name, rng):
    true, found = rng.integers(5, size=80), rng.integers(4, size=80)
    words = np.array(["cat", "", "dog", "-1", "ape"])
    order = rng.permutation(80)
    value = SCORES[name](true, found)
    assert SCORES[name](words[true][order], (10**12 - 7 * found)[order]) == pytest.approx(value)
    assert SCORES[name](words.astype(object)[true], found.astype(np.uint8)) == pytest.approx(value)
    assert SCORES[name](true.astype(float), list(found)) == pytest.approx(value)


@pytest.mark.parametrize("name", SCORES)
def test_equal_partitions_score_one(name, rng):
    true = rng.integers(6, size=50)
    assert SCORES[name](true, 3 - true) == pytest.approx(1.0)
    assert SCORES[name]([5], ["only"]) == 1.0
    assert SCORES[name]([0] * 7, [-1] * 7) == 1.0
    assert SCORES[name](range(9), range(9, 0, -1)) == pytest.approx(1.0)


def test_one_cluster_of_all_samples():
    true = [0] * 6 + [1] * 3 + [2]
    scores = {name: score(true, [0] * 10) for name, score in SCORES.items()}
    expected = {
        "nmi": 0.0,
        "purity": 0.6,
        "accuracy": 0.6,
    }
    assert scores == pytest.approx(expected)


def test_a_cluster_for_every_sample():
    true = [0] * 6 + [1] * 3 + [2]
    scores = {name: score(true, range(10)) for name, score in SCORES.items() if name != "nmi"}
    assert scores == pytest.approx({"purity": 1.0, "accuracy": 0.3})


def test_twenty_thousand_clusters_need_no_table_of_their_square():
    labels = np.arange(20_000)
    assert clustering_accuracy(labels, labels[::-1]) == 1.0
    assert normalized_mutual_information(labels // 2, labels) == pytest.approx(
        np.sqrt(np.log(10_000) / np.log(20_000))
    )


def test_samples_without_a_class_are_left_out_on_request():
    true, found = [0, 0, 1, 1, -1, -1], [0, 0, 1, 1, 0, 2]
    for score in SCORES.values():
        assert score(true, found, unlabeled=-1) == pytest.approx(1.0)
        assert score(true, found) < 1.0
    # A cluster named -1 is a cluster.
    assert purity([0, 0, 1], [-1, -1, 0], unlabeled=-1) == 1.0
    assert purity(["a", "none"], [0, 0], unlabeled="none") == 1.0


@pytest.mark.parametrize("score", SCORES.values())
def test_what_are_no_labels_is_refused(score):
    with pytest.raises(ShapeError, match="got 3 and 2"):
        score([0, 1, 1], [0, 1])
    with pytest.raises(ShapeError, match=r"`y_pred` of shape \(n_samples,\).*argmax"):
        score([0, 1], np.eye(2))
    with pytest.raises(InvalidDataError, match="at least one sample"):
        score([], [])
    with pytest.raises(InvalidDataError, match="at least one sample"):
        score([-1, -1], [0, 1], unlabeled=-1)
    with pytest.raises(DataTypeError, match="`y_true`, got entries of type float64"):
        score([0.5, np.nan], [0, 1])
    with pytest.raises(DataTypeError, match="object"):
        score([None, "a"], [0, 1])


def test_labels_of_an_object_column_are_whole_numbers():
    """As a data frame holds them after some row was missing."""
    labels = np.array([4, 4, 7], dtype=object)
    assert clustering_accuracy(labels, [1, 1, 0]) == 1.0


@pytest.mark.parametrize("label", [np.inf, 1e300, 2.0**60])
def test_labels_that_are_no_whole_numbers_are_refused(label):
    """They would all become the same number."""
    with pytest.raises(DataTypeError, match="integers or strings"):
        clustering_accuracy([label, 1.0], [0, 1])
