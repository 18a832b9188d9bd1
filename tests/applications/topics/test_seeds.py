"""Seed words: topics that a user guides."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg
from nonneg.applications import TopicModel
from nonneg.exceptions import DataChangedWarning, InvalidParameterError, UnsupportedError
from nonneg.metrics import clustering_accuracy

N_WORDS = 160
WORDS = [f"w{at}" for at in range(N_WORDS)]


@pytest.fixture(scope="module")
def planted():
    """Four subjects of thirty words, the last two of which are mostly about the same forty words."""
    rng = np.random.default_rng(0)
    topics = np.full((4, N_WORDS), 0.02)
    for at in range(4):
        topics[at, 30 * at : 30 * at + 30] += 1.0
    topics[2:, 120:] += 2.0
    topics /= topics.sum(axis=1, keepdims=True)
    labels = np.repeat(np.arange(4), [80, 80, 70, 40])
    shares = 0.1 * rng.dirichlet(np.ones(4), size=len(labels)) + 0.9 * np.eye(4)[labels]
    return sp.csr_array(rng.multinomial(50, shares @ topics).astype(float)), labels


def test_seed_words_say_which_of_two_ways_to_divide_documents_is_meant():
    # Every document is about sport or law, and from one of two regions, with fewer words.
    rng = np.random.default_rng(0)
    subject, region = rng.integers(2, size=200), rng.integers(2, size=200)
    mixed = np.full((200, N_WORDS), 0.05)
    for at in range(200):
        mixed[at, 40 * subject[at] : 40 * subject[at] + 40] += 1.0
        mixed[at, 80 + 40 * region[at] : 120 + 40 * region[at]] += 0.7
    X = sp.csr_array(rng.multinomial(60, mixed / mixed.sum(axis=1, keepdims=True)).astype(float))
    free = TopicModel(2, random_state=0).fit(X).predict(X)
    assert clustering_accuracy(subject, free) > 0.95
    assert clustering_accuracy(region, free) < 0.65
    seeds = {"north": ["w81", "w95", "w99"], "south": ["w121", "w125", "w130"]}
    model = TopicModel(2, vocabulary=WORDS, seed_words=seeds, random_state=0).fit(X)
    found = np.array(model.topic_names_)[model.predict(X)]
    assert np.mean(found == np.array(["north", "south"])[region]) > 0.95
    assert {"w81", "w95", "w99"} <= set(model.top_words(40)[model.topic_names_.index("north")])
    statement = model.certificate_["seeds-in-their-topics"]
    assert statement.holds
    assert statement.number == 1.0


def test_one_guided_topic_among_others(planted):
    X, labels = planted
    for n_topics in (4, 6):
        seeds = {"fourth": ["w91", "w95", "w99"]}
        model = TopicModel(n_topics, vocabulary=WORDS, seed_words=seeds, random_state=0).fit(X)
        assert [name for name in model.topic_names_ if name] == ["fourth"]
        found = model.predict(X) == model.topic_names_.index("fourth")
        assert 2 * np.sum(found & (labels == 3)) / (found.sum() + np.sum(labels == 3)) > 0.95
        assert np.all(np.diff(model.topic_proportions_) <= 0)


def test_all_topics_may_be_guided(planted, tmp_path):
    X, labels = planted
    names = ["a", "b", "c", "d"]
    seeds = {name: [30 * at, 30 * at + 7] for at, name in enumerate(names)}
    model = TopicModel(4, seed_words=seeds, random_state=0).fit(X)
    found = [model.topic_names_[topic] for topic in model.predict(X)]
    assert np.mean(np.array(found) == np.array(names)[labels]) > 0.95
    model.save(tmp_path / "model.npz")
    loaded = nonneg.load(tmp_path / "model.npz")
    assert loaded.topic_names_ == model.topic_names_
    assert loaded.seed_words == seeds
    assert np.array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_allclose(
        model.transform(X), TopicModel(4, seed_words=seeds, random_state=0).fit_transform(X)
    )


def test_words_without_effect_are_named(planted):
    X = planted[0].toarray()
    X[:, 5] = 0.0
    X[3, 5] = 1.0
    seeds = {"first": ["w1", "W2", "soccer", "w5"], "second": ["w31", "hockey"]}
    with pytest.warns(DataChangedWarning, match=r"'soccer' is not in the vocabulary") as said:
        model = TopicModel(4, vocabulary=WORDS, seed_words=seeds, random_state=0).fit(X)
    assert "'w5' is in 1 of them (min_df=2, max_df=1;" in str(said[0].message)
    assert {"first", "second"} <= set(model.topic_names_)


def test_anchors_that_are_not_used_are_named(planted):
    X = planted[0].toarray()
    X[:, 5] = X[:, 6] = X[:, 7] = 0.0
    X[3, 5] = X[:, 6] = X[:-20, 7] = 1.0

    def fitted(word, **options):
        anchors = [word, "w31", "w61", "w91"]
        return TopicModel(4, method="spa", vocabulary=WORDS, anchors=anchors, **options).fit(X)

    with pytest.raises(InvalidParameterError, match=r"'w5' is in 1 of them \(min_df=2, "):
        fitted("w5")
    assert fitted("w5", min_df=1).anchor_words_[0] == "w5"
    with pytest.raises(InvalidParameterError, match=r"'w7' is in 250 of them \(min_df=2, max_df=0.9;"):
        fitted("w7", max_df=0.9)
    assert fitted("w7", max_df=0.93).anchor_words_[0] == "w7"
    with pytest.raises(InvalidParameterError, match=r"'w6' is in 270 .* words of all documents are not used"):
        fitted("w6")
    assert fitted("w1").certificate_["anchors-exclusive"].holds


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ({}, "must name from 1 to n_topics=4 topics, such as"),
        ({"first": "w1"}, "must be lists of words by name, got 'first': 'w1'"),
        (
            {"first": ["soccer"]},
            "None of the seed words of 'first' is used in the documents: 'soccer' is",
        ),
        ({str(at): [at] for at in range(5)}, "from 1 to n_topics=4 topics, .*; got 5"),
        ({"first": [160]}, "seed_words must be words or columns from 0 to 159, got 160"),
        ({3: ["w1"]}, "must be lists of words by name, got 3"),
    ],
)
def test_wrong_seed_words(planted, seeds, message):
    with pytest.raises(InvalidParameterError, match=message):
        TopicModel(4, vocabulary=WORDS, seed_words=seeds).fit(planted[0])


def test_seed_words_belong_to_nmf(planted):
    with pytest.raises(UnsupportedError, match="method='spa' does not use seed words; 'nmf' does"):
        TopicModel(4, method="spa", seed_words={"a": [1]}).fit(planted[0])
    with pytest.raises(UnsupportedError, match="method='nmf' does not use anchor words"):
        TopicModel(4, anchors=[1, 31, 61, 91], seed_words={"a": [1]}).fit(planted[0])
