"""Topics that are merged, split and renamed: everything that follows from them follows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg
from nonneg.applications import TopicModel
from nonneg.applications.topics.editing import edited
from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.metrics import clustering_accuracy, top_words, umass_coherence

N_WORDS = 120
WORDS = [f"word{at}" for at in range(N_WORDS)]


@pytest.fixture(scope="module")
def planted():
    """Four subjects of unequal size, the last two of which have most of their words in common."""
    rng = np.random.default_rng(0)
    topics = np.full((4, N_WORDS), 0.05)
    for at in range(4):
        topics[at, 20 * at : 20 * at + 20] += 1.0
    topics[2:, 80:] += 1.0
    topics /= topics.sum(axis=1, keepdims=True)
    labels = np.repeat(np.arange(4), [60, 45, 40, 35])
    shares = 0.15 * rng.dirichlet(np.ones(4), size=180) + 0.85 * np.eye(4)[labels]
    return sp.csr_array(rng.multinomial(60, shares @ topics).astype(float)), labels


@pytest.fixture(scope="module")
def models(planted):
    return {
        method: TopicModel(4, method=method, vocabulary=WORDS, random_state=0).fit(planted[0])
        for method in ("nmf", "kl", "spa")
    }


def is_consistent(model, X):
    """Everything that a fit sets is what the topics and the documents say it is."""
    k = len(model.components_)
    proportions = model.transform(X)
    assert proportions.shape == (X.shape[0], k)
    np.testing.assert_allclose(proportions.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        model.topics_, model.components_ / model.components_.sum(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(model.topic_proportions_, proportions.mean(axis=0), atol=1e-12)
    assert np.all(np.diff(model.topic_proportions_) <= 1e-9)
    used = X[:, model.word_indices_]
    tops = top_words(model.components_[:, model.word_indices_], 20)
    np.testing.assert_allclose(model.coherence_, umass_coherence(used, tops))
    assert model.n_topics == k == len(model.topic_names_) == len(model.top_words(3))
    assert {"topics-differ", "documents-covered"} <= set(model.certificate_.names)
    if model.anchor_words_ is not None:
        assert len(model.anchor_words_) == k
        assert model.anchor_words_ == [WORDS[at] for at in model.anchor_indices_]
        assert "anchors-exclusive" in model.certificate_


@pytest.mark.parametrize("method", ["nmf", "kl", "spa"])
def test_merging_adds_proportions_and_splitting_divides_them(models, planted, method, tmp_path):
    X, model = planted[0], models[method]
    before, names = model.transform(X), list(model.topic_names_)
    is_consistent(model, X)
    merged = model.merge_topics([1, 3], X)
    is_consistent(merged, X)
    mapping = merged.edits_[-1]["mapping"]
    assert mapping[1] == mapping[3]
    assert sorted(set(itertools.chain(*mapping))) == [0, 1, 2]
    after = merged.transform(X)
    np.testing.assert_allclose(after[:, mapping[1][0]], before[:, 1] + before[:, 3], atol=1e-9)
    np.testing.assert_allclose(after[:, mapping[0][0]], before[:, 0], atol=1e-9)
    split = merged.split_topic(mapping[1][0], X, into=2)
    is_consistent(split, X)
    mapping = split.edits_[-1]["mapping"]
    parts = mapping[merged.edits_[-1]["mapping"][1][0]]
    assert len(parts) == 2
    np.testing.assert_allclose(
        split.transform(X)[:, parts].sum(axis=1), before[:, 1] + before[:, 3], atol=1e-9
    )
    if method == "spa":
        assert len(set(split.anchor_words_)) == 4
    # Nothing has changed in the model itself, and what was changed survives a file.
    assert np.array_equal(model.transform(X), before)
    assert model.topic_names_ == names
    assert model.edits_ == []
    split.save(tmp_path / "model.npz")
    loaded = nonneg.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.transform(X), split.transform(X))
    assert loaded.edits_ == split.edits_
    assert loaded.topic_names_ == split.topic_names_
    assert [s.sentence for s in loaded.certificate_] == [s.sentence for s in split.certificate_]


def test_a_split_finds_the_subjects_of_a_topic_that_was_one(planted):
    X, labels = planted
    # Three topics put the two subjects with common words together.
    coarse = TopicModel(3, random_state=0).fit(X)
    two = int(coarse.predict(X[labels == 3][:1])[0])
    assert np.mean(coarse.predict(X[labels == 2]) == two) > 0.9
    assert clustering_accuracy(labels, coarse.predict(X)) < 0.85
    fine = coarse.split_topic(two, X)
    assert clustering_accuracy(labels, fine.predict(X)) > 0.95
    # Words of the parts are in the unit of the other topics: both lead with their own and the common ones.
    leading = [set(top) for top in top_words(fine.topics_, 40)]
    for subject in (2, 3):
        assert max(len(words & set(range(20 * subject, 20 * subject + 20))) for words in leading) >= 16


def test_names_follow_the_topics(models, planted, tmp_path):
    X, model = planted[0], models["nmf"]
    named = model.rename_topics({0: "sports", 1: " law ", 2: "money"})
    assert named.topic_names_ == ["sports", "law", "money", None]
    assert np.array_equal(named.transform(X), model.transform(X))
    assert named.certificate_ is model.certificate_
    assert named.topic_labels()[0] == "sports"
    assert named.topic_labels()[3] == ", ".join(model.top_words(3)[3])
    merged = named.merge_topics(["money", 3], X)
    assert merged.topic_names_[merged.edits_[-1]["mapping"][3][0]] == "money"
    # A name does not stand for a topic of which it was the smaller part.
    nameless = named.rename_topics({0: None, 1: None}).merge_topics([0, 1, "money"], X)
    assert set(nameless.topic_names_) == {None}
    both = named.merge_topics([["law", "money"]], X)
    assert "law / money" in both.topic_names_
    split = named.split_topic("sports", X, into=2)
    assert {"sports 1", "sports 2", "law", "money", None} == set(split.topic_names_)
    assert named.rename_topics({"law": None}).topic_names_[1] is None
    named.save(tmp_path / "named.npz")
    assert nonneg.load(tmp_path / "named.npz").topic_names_ == named.topic_names_
    again = named.fit(X)
    assert again.topic_names_ == [None] * 4
    assert again.edits_ == []


def test_several_changes_at_once_go_by_the_numbers_of_the_model(models, planted):
    X, model = planted[0], models["nmf"]
    before = model.transform(X)
    new = edited(model, X, merge=[[1, 3]], split=[(0, 2)], rename={3: "both", 2: "two"})
    mapping = new.edits_[-1]["mapping"]
    after = new.transform(X)
    is_consistent(new, X)
    np.testing.assert_allclose(after[:, mapping[0]].sum(axis=1), before[:, 0], atol=1e-9)
    np.testing.assert_allclose(after[:, mapping[3][0]], before[:, 1] + before[:, 3], atol=1e-9)
    assert new.topic_names_[mapping[1][0]] == "both"
    assert new.topic_names_[mapping[2][0]] == "two"
    sentence = new.certificate_["topics-edited"].sentence
    assert "topics 1, 3 were merged and topic 0 was split into 2" in sentence
    assert "stationary" not in new.certificate_


def test_given_anchors_stay_with_their_topics(planted):
    X = planted[0]
    model = TopicModel(
        4, method="spa", vocabulary=WORDS, anchors=["word3", "word25", "word45", "word65"]
    ).fit(X)
    merged = model.merge_topics([2, 3], X)
    assert set(merged.anchor_words_) >= {"word3", "word25"}
    assert merged.anchors == merged.anchor_words_
    assert merged.fit(X).anchor_words_ == merged.anchors


def test_what_cannot_be_done_is_told(models, planted):
    X, model = planted[0], models["nmf"]
    named = model.rename_topics({0: "sports"})
    for call, message in [
        (lambda: model.merge_topics([1, 4], X), "numbers from 0 to 3 or names, got 4"),
        (lambda: model.merge_topics([1, "law"], X), "There is no topic called 'law'"),
        (lambda: model.merge_topics([[1, 2], [2, 3]], X), r"Topics \[2\] are in two groups"),
        (lambda: model.split_topic(1, X, into=1), "into must be an integer of at least 2, got 1"),
        (lambda: model.split_topic(1, X, into=99), r"cannot be split into 99: it leads in \d+ documents"),
        (lambda: model.rename_topics({1: 3}), "must be a word or None, got 3"),
        (lambda: named.rename_topics({1: "sports"}), "Two topics would be called 'sports'"),
        (lambda: model.split_topic(True, X), "or names, got True"),
        (lambda: model.split_topic([0, 1], X), r"or names, got \[0, 1\]"),
        (lambda: model.merge_topics(3, X), r"a list such as \[3, 7\], got 3"),
        (lambda: model.merge_topics("law", X), "a list such as .*, got 'law'"),
        (lambda: model.merge_topics({0: 1}, X), "a list such as .*, got {0: 1}"),
        (lambda: model.merge_topics([0, [1, 4]], X), "or names, got 4"),
        (lambda: model.rename_topics(["law"]), r"a dict such as {0: 'sports'}, got \['law'\]"),
        (lambda: model.representative_documents(X, n=0), "n must be an integer of at least 1, got 0"),
    ]:
        with pytest.raises(InvalidParameterError, match=message):
            call()


def test_rows_that_belong_to_no_topic_are_refused(models, planted, tmp_path):
    models["nmf"].merge_topics([1, 3], planted[0]).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as stored:
        arrays = dict(stored)
    for name, value in (("_base", arrays["_base"][:2]), ("components_", arrays["components_"][:2])):
        np.savez(tmp_path / "damaged.npz", **arrays | {name: value})
        with pytest.raises(FileFormatError):
            nonneg.load(tmp_path / "damaged.npz")
    for mapping in ([[0], [1], [2]], [[0], [1], [9], [1]], [["a"], [0], [1], [2]], 3):
        new = models["nmf"].merge_topics([1, 3], planted[0])
        new.edits_[0]["mapping"] = mapping
        new.save(tmp_path / "damaged.npz")
        with pytest.raises(FileFormatError, match="topics"):
            nonneg.load(tmp_path / "damaged.npz")
