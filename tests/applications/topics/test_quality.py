"""Topics rest on enough documents: small groups, copies, and what is said of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reproduction.data import load_reuters21578
from reproduction.data.store import is_available
from reproduction.studies.topic_collections import planted_collection
from sklearn.utils import get_tags

from nonneg import load
from nonneg.applications import TopicModel
from nonneg.applications.topics import duplicates
from nonneg.applications.topics.certify import (
    _covered,
    _differ,
    _exclusive,
    _left_out,
    _supported,
    topic_statements,
)
from nonneg.applications.topics.documents import used_words
from nonneg.applications.topics.duplicates import _join, _smallest_hash, first_copies
from nonneg.applications.topics.quality import Support
from nonneg.applications.topics.term_weights import balanced_documents, informative_words
from nonneg.exceptions import DataChangedWarning, InvalidParameterError
from nonneg.metrics import normalized_mutual_information

PUBLISHED = {"min_documents": 0, "duplicates": "keep", "min_df": 2}


@pytest.fixture(scope="module")
def collection():
    return planted_collection(1000, 10)


@pytest.fixture(scope="module")
def of_collection(collection):
    return fitted(collection[0])


def fitted(X, **parameters):
    with warnings.catch_warnings():
        # Lists that were set aside contain no word of a topic.
        warnings.simplefilter("ignore", DataChangedWarning)
        model = TopicModel(10, random_state=0, **parameters).fit(X)
        return model, model.predict(X)


def test_small_groups_and_copies_do_not_become_topics(collection, of_collection):
    # Found on 20 Newsgroups: five of twenty topics held under 1% of the documents, one rested on 8.
    X, y = collection
    known = y >= 0
    before, main = fitted(X, **PUBLISHED)
    assert np.sum(before.documents_per_topic_ < 0.01 * len(y)) == 5
    assert before.documents_per_topic_.min() == 8
    # Flagged as well, for those who want these weights.
    assert before.few_documents_.sum() == 5
    assert not before.certificate_["topics-supported"].holds
    score = normalized_mutual_information(y[known], main[known])
    assert "documents-used" not in before.certificate_

    model, main = of_collection
    assert model.documents_per_topic_.min() >= 0.02 * len(y)
    assert not model.few_documents_.any()
    assert model.certificate_["topics-supported"].holds
    assert normalized_mutual_information(y[known], main[known]) > score + 0.05
    left_out = model.certificate_["documents-used"]
    assert left_out.quantities == {"n_copies": 50, "n_set_aside": 40}
    assert "from 910 of 1000 documents: 50 share at least 90% of their words" in left_out.sentence
    assert len(model.set_aside_) == 40
    assert (y[model.set_aside_] == -1).all()
    assert np.diff(model.topic_proportions_).max() <= 1e-9  # numbered by share


@pytest.mark.skipif(not is_available("reuters21578"), reason="Reuters-21578 is not on this machine")
def test_no_topic_of_real_articles_rests_on_a_handful():
    found = load_reuters21578()
    rows = np.isin(found.y, found.extras["class_subsets"][10][2])
    X = sp.csr_array(found.X[rows])
    # 7 of 2958 articles had a topic of their own.
    assert fitted(X, **PUBLISHED)[0].documents_per_topic_.min() < 0.005 * X.shape[0]
    assert fitted(X)[0].documents_per_topic_.min() > 0.01 * X.shape[0]


def test_what_was_set_aside_is_saved(collection, of_collection, tmp_path):
    X, _ = collection
    model, main = of_collection
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for name in ("duplicate_of_", "set_aside_", "few_documents_", "documents_per_topic_", "npmi_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataChangedWarning)
        assert np.array_equal(again.predict(X), main)


def test_copies_are_found_by_their_words(rng, monkeypatch):
    X = (rng.random((40, 300)) < 0.2).astype(float)
    X[7] = 3 * X[2]  # other counts of the same words
    X[9] = X[2]
    X[9, np.flatnonzero(X[2])[:2]] = 0.0  # two of about sixty words are missing
    X[11] = X[2]
    X[11, np.flatnonzero(X[2])[:12]] = 0.0  # a fifth of the words: another document
    X[20:22] = 0.0
    X[20:22, :9] = 1.0  # the same short answer
    X[30:33] = 0.0  # empty
    expected = np.arange(40)
    expected[[7, 9]] = 2
    assert np.array_equal(first_copies(sp.csr_array(X)), expected)
    monkeypatch.setattr(duplicates, "BLOCK", 7)
    assert np.array_equal(first_copies(sp.csr_array(X)), expected)
    assert np.array_equal(first_copies(sp.csr_array(X[:1])), [0])


def test_copies_have_nine_tenths_of_their_words_in_common():
    words = np.arange(40)
    X = np.zeros((7, 40))
    X[0, words < 19] = X[1, words < 20] = 1.0  # 19 of 20
    X[2, (words >= 20) & (words < 30)] = X[3, (words >= 20) & (words < 30)] = 1.0  # ten words, the same
    X[4, words >= 31] = X[5, words >= 31] = 1.0  # nine words, the same
    X[6, words >= 30] = 1.0  # nine of ten, but the others are short
    assert first_copies(sp.csr_array(X)).tolist() == [0, 0, 2, 2, 4, 5, 6]
    assert first_copies(sp.csr_array(X[[4, 6]])).tolist() == [0, 1]
    assert first_copies(sp.csr_array(X[[2, 3]])).tolist() == [0, 0]


def test_pairs_are_joined_to_the_first_of_their_band():
    present = sp.csr_array((np.arange(20) < np.array([[20], [18], [17], [20]])).astype(float))
    sizes = np.array([20.0, 18.0, 17.0, 20.0])
    place = np.arange(4)
    _join(place, np.array([1, 2, 3]), np.array([0, 0, 0]), present, sizes)
    assert place.tolist() == [0, 0, 2, 0]  # 18 of 20 are enough, 17 are not
    _join(place, np.array([3]), np.array([1]), present, sizes)
    assert place.tolist() == [0, 0, 2, 0]  # the first one stays
    for block in (10_000, 3, 1):
        numbers = np.random.default_rng(0).random(20)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(duplicates, "BLOCK", block)
            found = _smallest_hash(present, np.random.default_rng(0))
        np.testing.assert_array_equal(found, [numbers[: int(size)].min() for size in sizes])


def test_too_few_distinct_documents_are_all_kept():
    X = np.kron(np.eye(2), np.ones((6, 12))) + 0.0
    X[:, 0] = 1.0
    X[0, 0] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TopicModel(3, random_state=0).fit(X)
    assert np.array_equal(model.duplicate_of_, np.arange(12))


def test_a_group_of_copies_weighs_by_its_size():
    # Documents of unit length in two groups that share no word: without the limit both weigh the same.
    groups = np.repeat([[1.0, 0.0], [0.0, 1.0]], [2, 18], axis=0)
    for limit, expected in ((0, [1.0, 1.0]), (6, [2 / 8, 18 / 24])):
        X = balanced_documents(sp.csr_array(groups), limit).toarray()
        np.testing.assert_allclose(np.sum(X * X, axis=0), expected)
    # Documents of other lengths: a document is compared with `limit` ones of mean length.
    longer = sp.csr_array(np.diag([1.0, 3.0]))
    X = balanced_documents(longer, 6).toarray()
    np.testing.assert_allclose(np.diag(X), [1 / np.sqrt(1 + 6 * 2.0 * 1), 3 / np.sqrt(9 + 6 * 2.0 * 3)])
    # Short documents, an empty one, and one alone; half a document is added.
    short = sp.csr_array(np.array([[0.1, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    X = balanced_documents(short, 0.5).toarray()
    np.testing.assert_allclose(
        np.diag(X), [0.1 / np.sqrt(0.01 + 0.5 * 0.2 * 0.1), 0.3 / np.sqrt(0.09 + 0.5 * 0.2 * 0.3), 0.0]
    )
    assert balanced_documents(sp.csr_array([[2.0]]), 3).toarray() == 2 / np.sqrt(4 + 3 * 2 * 2)


def test_words_of_some_documents_are_informative():
    X = sp.csr_array((np.arange(6)[:, None] < np.array([2, 5, 6, 1, 0])).astype(float))
    assert informative_words(X).tolist() == [0, 1]  # at least two documents, and not all six
    assert informative_words(X, 1).tolist() == informative_words(X, 0).tolist() == [0, 1, 3]


def test_topics_may_share_half_of_their_top_words():
    components = np.eye(2, 6) + np.array([[0, 0, 3, 0, 0, 0], [0, 0, 3, 0, 0, 0]]) + 0.1
    for shared, holds in ((1, True), (2, False)):
        words = np.array([[2, 0], [2, 1]]) if shared == 1 else np.array([[2, 3], [2, 3]])
        found = _differ(components, words)
        assert (found.number, found.threshold, found.holds) == (shared / 2, 0.5, holds)


def test_topics_of_few_words_are_compared_by_those_that_they_have():
    # Topics 1 and 2 have two words of weight above zero each, and one in common; 0 and 3 share none.
    components = np.array(
        [[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1], [0.0, 0, 0, 0, 0, 0]]
    )
    words = np.array([[0, 1, 2], [3, 4, 0], [4, 5, 0], [0, 1, 2]])
    found = _differ(components, words)
    assert (found.number, found.holds) == (0.5, True)
    assert "at most 1 of 2" in found.sentence
    assert found.quantities == {"similarity_count": 1, "n_top_words": 3}
    components[2, 3] = components[2, 4]
    found = _differ(components, np.array([[0, 1, 2], [3, 4, 0], [4, 3, 0], [0, 1, 2]]))
    assert (found.number, found.holds) == (1.0, False)
    assert "Topics 1 and 2 share 2 of their 2 top words" in found.sentence
    single = _differ(np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[0], [0]]))
    assert (single.number, single.holds) == (1.0, False)


def test_statements_of_a_model():
    components, words = np.eye(2, 4), np.array([[0], [1]])
    for copies, aside, anchors in ((0, 0, None), (2, 0, None), (0, 3, [0, 1])):
        support = Support(np.array([5, 4]), 2.0, n_copies=copies, n_set_aside=aside)
        given = None if anchors is None else np.array(anchors)
        found = topic_statements(components, words, given, ["a", "b"], 0, 20, support)
        names = ["topics-differ", "topics-supported", "documents-covered"]
        names += ["documents-used"] * (copies + aside > 0) + ["anchors-exclusive"] * (anchors is not None)
        assert [each.name for each in found] == names
        assert ("Copies count once" in found[1].sentence) == (copies > 0)
    assert found[-1].quantities == {"mean_share": 1.0}


def test_the_limit_on_words_grows_with_the_collection():
    # 2 for up to 625 documents, 10 for ten thousand.
    for n_documents, expected in ((100, 2), (600, 2), (2500, 5), (10_000, 10)):
        counts = sp.lil_array((n_documents, 12))
        for word in range(12):
            counts[: word + 1, word] = 1.0
        assert used_words(sp.csr_array(counts), None, 1.0)[0] + 1 == expected


def test_few_documents():
    proportions = np.eye(4)[np.repeat(np.arange(4), [50, 40, 9, 1])]
    assert Support.of(proportions).few.tolist() == [False, False, False, True]
    # Copies count once.
    first = np.arange(100)
    first[90:99] = 90
    assert Support.of(proportions, first).few.tolist() == [False, False, True, True]
    assert Support.of(np.zeros((3, 2))).few.tolist() == [True, True]


def test_wrong_limits():
    for parameters in ({"min_documents": -1.0}, {"duplicates": "drop"}, {"min_df": 0}):
        with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
            TopicModel(2, **parameters).fit(np.eye(4))


def test_tags_say_what_a_topic_model_reads():
    tags = get_tags(TopicModel()).input_tags
    assert (tags.sparse, tags.string, tags.positive_only) == (True, True, True)


def test_what_is_said_of_documents_and_anchor_words():
    for n_thin in (0, 1, 10, 11):
        counts = np.array([40] * 5 + [1] * n_thin)
        found = _supported(Support(counts, 2.5))
        assert (found.number, found.threshold, found.holds) == (counts.min(), 3, n_thin == 0)
        assert ("topic 5 (1)" in found.sentence) == (n_thin > 0)
        assert ("15 (1)" in found.sentence, " and 1 more" in found.sentence) == (False, n_thin == 11)
        assert (" more." in found.sentence) == (n_thin == 11)
    found = _left_out(Support(np.array([5, 4]), 2.0, n_copies=2, n_set_aside=3), 20)
    assert found.number == pytest.approx(15 / 20)
    assert "from 15 of 20 documents: 2 share" in found.sentence
    assert [(_covered(n, 8).number, _covered(n, 8).holds) for n in (0, 2)] == [(1.0, True), (0.75, False)]
    assert "6 of 8 documents contain a word of a topic" in _covered(2, 8).sentence
    components = np.array([[3.0, 0.0, 1.0, 2.0], [1.0, 5.0, 1.0, 0.0]])
    for anchors, share, name in (([0, 1], 0.75, "a"), ([3, 2], 0.5, "c"), ([2, 0], 0.25, "a")):
        found = _exclusive(
            components, np.array(anchors), [{0: "a", 1: "b", 2: "c", 3: "d"}[at] for at in anchors]
        )
        assert (found.number, found.holds) == (share, share >= 0.5)
        assert f"{name!r}, has {100 * share:.0f}%" in found.sentence
