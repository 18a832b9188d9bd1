"""The ways to find topics: what they are given, and what they make of it."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications import TopicModel
from nonneg.applications.topics import methods as module
from nonneg.applications.topics import model as model_module
from nonneg.applications.topics.methods import METHODS, FoundTopics, Task, _legacy, smallest_topic
from nonneg.applications.topics.number_of_topics import TopicNumbers
from nonneg.applications.topics.term_weights import balanced_documents, inverse_frequencies, term_weights
from nonneg.exceptions import (
    DataChangedWarning,
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    ShapeError,
    UnsupportedError,
)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), rng.dirichlet(np.full(6, 3.0))) + 0.01
    return sp.csr_array(
        rng.multinomial(25, (topics / topics.sum(axis=1, keepdims=True))[np.arange(45) % 3]) * 1.0
    )


@pytest.fixture
def task(counts):
    return Task(counts, inverse_frequencies(counts), 3, rng=0)


def test_a_topic_has_a_tenth_of_the_documents_of_an_average_one(task):
    assert smallest_topic(task, 600) == pytest.approx(20.0)
    assert smallest_topic(replace(task, min_documents=7.0), 600) == 7.0


class Recorded:
    """In the place of `NMF`: keeps what it is asked for."""

    def __init__(self, n_components, **options):
        self.options = options
        self.components_ = np.eye(n_components, 18) * np.arange(n_components)[:, None]
        self.n_iter_, self.certificate_ = 4, "said"

    def fit(self, X, **given):
        self.X, self.given = X, given
        return self


@pytest.mark.parametrize("balance", [True, False])
def test_least_squares_is_given_weights_of_words(task, balance, monkeypatch):
    monkeypatch.setattr(module, "NMF", Recorded)
    task = replace(task, balance=balance, set_aside=False, params={"tol": 0.5}, n_jobs=1, verbose=1)
    found = METHODS["nmf"].run(task)
    model = found.result
    assert model.options == {"tol": 0.5, "max_iter": 1000, "random_state": 0, "n_jobs": 1, "verbose": 1}
    weights = term_weights(task.counts, task.inverse, unit_rows=not balance)
    if balance:
        weights = balanced_documents(weights, 0.1 * 45 / 3)
    np.testing.assert_allclose(model.X.toarray(), weights.toarray())
    assert model.given == {}
    np.testing.assert_allclose(np.linalg.norm(found.components, axis=1), [0.0, 1.0, 1.0])
    assert (found.anchors, found.n_iter, found.certificate, found.set_aside) == (None, 4, "said", None)


def test_given_anchors_and_seeds_are_the_start(task, monkeypatch):
    anchored = METHODS["nmf"].run(replace(task, anchors=np.array([0, 6, 12])))
    assert anchored.set_aside is None
    monkeypatch.setattr(module, "NMF", Recorded)
    found = METHODS["nmf"].run(replace(task, anchors=np.array([0, 6, 12])))
    model = found.result
    assert model.options["init"] == "custom"
    assert model.given["W"].shape == (45, 3)
    assert (model.given["W"] > 0).all()
    assert (model.given["H"] > 0).all()
    np.testing.assert_array_equal(found.anchors, [0, 6, 12])
    seeded = METHODS["nmf"].run(replace(task, seeds=(np.array([0]), np.array([6]), np.array([12]))))
    assert seeded.result.X.shape == (48, 18)  # one more document for every group of seed words
    assert seeded.result.options["init"] == "custom"
    assert len(seeded.certificate) == 0


def test_documents_of_small_groups_are_set_aside_in_rounds(task, monkeypatch, tmp_path):
    calls = []

    def factorized(task):
        calls.append(task)

        def encode(counts):
            # The first document that is left is a group of its own.
            weights = np.zeros((counts.shape[0], 3))
            weights[0, 0] = weights[1::2, 1] = weights[2::2, 2] = 1.0
            return weights

        return FoundTopics(np.eye(3, 18), encode, None, 1, None, None)

    monkeypatch.setattr(module, "_factorized", factorized)
    run = METHODS["nmf"].run
    found = run(replace(task, min_documents=2.0, params={"checkpoint": str(tmp_path)}))
    # Up to a tenth of 45 documents.
    np.testing.assert_array_equal(found.set_aside, [0, 1, 2, 3])
    assert [each.counts.shape[0] for each in calls] == [45, 44, 43, 42, 41]
    assert [str(each.params["checkpoint"]) for each in calls[1:]] == [
        str(tmp_path / f"without-small-groups-{at}") for at in (1, 2, 3, 4)
    ]
    monkeypatch.setattr(module, "LARGEST_PART", 0.9)
    assert len(run(replace(task, min_documents=2.0)).set_aside) == module.N_ROUNDS
    monkeypatch.setattr(module, "LARGEST_PART", 2 / 45)
    assert len(run(replace(task, min_documents=2.0)).set_aside) == 2
    assert len(run(replace(task, min_documents=1.0)).set_aside) == 0
    for changes in (
        {"balance": False},
        {"set_aside": False},
        {"anchors": np.arange(3)},
        {"seeds": (np.arange(2),)},
    ):
        calls.clear()
        assert run(replace(task, min_documents=2.0, **changes)).set_aside is None
        assert len(calls) == 1


def test_documents_without_topics_are_in_no_group(task, monkeypatch):
    def factorized(task):
        def encode(counts):
            weights = np.zeros((counts.shape[0], 3))
            weights[3:, 1], weights[20:, 2], weights[30:, 0] = 1.0, 2.0, 3.0
            return weights

        return FoundTopics(np.eye(3, 18), encode, None, 1, None, None)

    monkeypatch.setattr(module, "_factorized", factorized)
    assert len(METHODS["nmf"].run(replace(task, min_documents=4.0)).set_aside) == 0


def test_divergence_leaves_out_empty_documents(task, monkeypatch):
    monkeypatch.setattr(module, "NMF", Recorded)
    padded = sp.csr_array(sp.vstack([task.counts[:5], sp.csr_array((2, 18)), task.counts[5:]], format="csr"))
    found = METHODS["kl"].run(replace(task, counts=padded, params={"max_iter": 3}))
    assert found.result.options == {
        "beta_loss": "kullback-leibler", "tol": 1e-5, "max_iter": 3, "random_state": 0, "n_jobs": None,
        "verbose": 0,
    }  # fmt: skip
    np.testing.assert_array_equal(found.result.X.toarray(), task.counts.toarray())
    np.testing.assert_allclose(found.components, np.diag([0.0, 1.0, 1.0]) @ np.eye(3, 18))
    np.testing.assert_allclose(found.encode.scale, [0.0, 1.0, 2.0])  # the sums of the rows


def test_words_are_reduced_to_twice_as_many_directions_as_topics(task, monkeypatch):
    asked = []
    reduced = module.reduced_words
    monkeypatch.setattr(module, "reduced_words", lambda *given: asked.append(given[1]) or reduced(*given))
    assert len(METHODS["spa"].run(task).anchors) == 3
    few = replace(task, counts=task.counts[:4])
    METHODS["spa"].run(few)
    assert asked == [6, 4]
    with pytest.raises(InvalidParameterError, match="n_topics=5 is more than 4 documents with 18 used words"):
        METHODS["spa"].run(replace(few, n_topics=5))
    exact = METHODS["spa"].run(replace(few, n_topics=4))
    assert len(exact.anchors) == 4
    given = METHODS["spa"].run(replace(task, anchors=np.array([1, 7, 13])))
    assert (given.n_iter, given.result, len(given.certificate)) == (0, None, 0)


def test_latent_dirichlet_allocation_gets_seeds_that_scikit_learn_takes(task):
    state = np.random.RandomState(0)
    for seed in (None, 3, np.int64(3), state):
        assert _legacy(seed) is seed
    assert isinstance(_legacy(np.random.default_rng(0)), int)
    found = METHODS["lda"].run(replace(task, params={"max_iter": 2}))
    np.testing.assert_allclose(found.components.sum(axis=1), 1.0)
    assert found.n_iter == 2
    with pytest.raises(InvalidDataError, match="LatentDirichletAllocation rejected"):
        METHODS["lda"].run(replace(task, params={"learning_decay": "much", "max_iter": 1}))


@pytest.mark.parametrize(
    ("name", "anchors", "seeds"),
    [
        ("nmf", True, True),
        ("kl", False, False),
        ("lda", False, False),
        ("spa", True, False),
        ("merit-0", True, False),
    ],
)
def test_what_methods_can_start_from(name, anchors, seeds):
    assert (METHODS[name].takes_anchors, METHODS[name].takes_seeds) == (anchors, seeds)


def test_a_model_answers_for_documents_without_topics(counts):
    model = TopicModel(3, random_state=0).fit(counts)
    empty = sp.csr_array(sp.vstack([counts[:2], sp.csr_array((1, 18))], format="csr"))
    with pytest.warns(DataChangedWarning, match="1 of 3 documents contain none"):
        found = model.predict(empty)
    assert found[2] == -1
    np.testing.assert_array_equal(found[:2], np.argmax(model.transform(counts[:2]), axis=1))
    assert [len(words) for words in model.top_words()] == [10] * 3
    assert [len(words) for words in model.top_words(2)] == [2] * 3
    assert all(model.components_[at, words].min() > 0 for at, words in enumerate(model.top_words(18)))
    assert [len(rows) for rows in model.representative_documents(counts)] == [3] * 3
    known = model.transform(counts)
    best = model.representative_documents(counts, 2, proportions=known)
    strength = known * np.sqrt(counts @ model.topics_.T)
    assert [rows.tolist() for rows in best] == np.argsort(-strength, axis=0, kind="stable")[:2].T.tolist()
    with pytest.raises(ValueError, match=r"Expected proportions of shape \(45, 3\), got \(3, 45\)"):
        model.representative_documents(counts, proportions=known.T)
    assert model.get_feature_names_out().tolist() == ["topicmodel0", "topicmodel1", "topicmodel2"]
    with pytest.raises(UnsupportedError, match="does not use anchor words"):
        TopicModel(3, method="kl", anchors=[0, 1, 2]).fit(counts)


@pytest.mark.parametrize(
    ("n_topics", "anchors", "expected"),
    [(4, None, [4]), (np.int64(4), None, [4]), ("auto", None, None), ([3, 2], None, [3, 2]),
     (np.array([5]), None, [5]),
     ("auto", ["a", "b", "c"], [3]), ([3, 2], ["a"], [1]), (4, ["a"], [4]), ((2.0, 3.0), None, [2, 3])],
)  # fmt: skip
def test_numbers_of_topics_to_choose_from(n_topics, anchors, expected):
    assert TopicModel(n_topics, anchors=anchors)._candidates() == expected


@pytest.mark.parametrize("wrong", [[], [0], [2, 0], [2.5], [2, 2.5]])
def test_numbers_of_topics_are_whole_and_positive(wrong):
    with pytest.raises(InvalidParameterError, match="n_topics must be an integer of at least 1"):
        TopicModel(wrong)._candidates()
    assert TopicModel([1])._candidates() == [1]


def copies(n_distinct, n_copies, words=30):
    X = np.kron(np.eye(n_distinct), np.ones((1, words)))
    return sp.csr_array(np.vstack([X, np.repeat(X[:1], n_copies, axis=0)]))


@pytest.mark.parametrize(
    ("n_distinct", "n_topics", "kept"), [(3, 3, 3), (3, 4, 6), (3, 2, 3), (1, 1, 4), (2, 1, 2)]
)
def test_copies_are_left_out_where_enough_documents_remain(n_distinct, n_topics, kept):
    X = copies(n_distinct, 3)
    X = sp.csr_array(sp.hstack([X, sp.csr_array(np.eye(X.shape[0]))], format="csr"))
    model = TopicModel(n_topics, min_df=1)
    words, distinct = model._words_and_documents(X, n_topics)
    assert len(distinct) == kept
    if kept == n_distinct:
        assert model.duplicate_of_.tolist() == [*range(n_distinct), 0, 0, 0]
        # Words of the copies alone are rare words.
        assert words.max() < 30 * n_distinct + n_distinct
    else:
        assert model.duplicate_of_.tolist() == list(range(n_distinct + 3))
    everything = TopicModel(n_topics, min_df=1, duplicates="keep")
    assert len(everything._words_and_documents(X, n_topics)[1]) == n_distinct + 3


def test_a_model_needs_as_many_documents_and_words_as_topics(counts):
    assert TopicModel(3, min_df=1, min_documents=0).fit(counts[:3]).n_topics_ == 3
    with pytest.raises(InvalidParameterError, match="n_topics=4 is more than the 3 documents or the"):
        TopicModel(4, min_df=1).fit(counts[:3])
    with pytest.raises(InvalidParameterError, match="than the 45 documents or the 4 words"):
        TopicModel(5, min_df=1).fit(counts[:, :4])


def test_names_of_words_come_from_the_user(counts):
    names = [f"w{at}" for at in range(18)]
    model = TopicModel(3, vocabulary=names, random_state=0).fit(counts)
    assert set(model.top_words(1)[0]) <= set(names)
    assert TopicModel(3, random_state=0).fit(counts).top_words(1)[0][0] in range(18)
    with pytest.raises(ShapeError, match="vocabulary has 2 words, but X has 18 columns"):
        TopicModel(3, vocabulary=["a", "b"]).fit(counts)
    with pytest.raises(InvalidParameterError, match="texts bring their own words"):
        TopicModel(1, vocabulary=["a"], min_df=1).fit(["one two", "two three"])


def test_options_of_iterations_reach_the_method(counts):
    told = []
    TopicModel(3, max_iter=2, tol=0.0, random_state=0, callback=lambda now: told.append(now.n_iter)).fit(
        counts
    )
    assert max(told) == 2
    assert TopicModel(3, device="auto", method="spa").fit(counts).n_topics_ == 3
    with pytest.raises(UnsupportedError, match="does not accept device"):
        TopicModel(3, device="cuda", method="spa").fit(counts)
    selected = TopicModel([3], random_state=0).fit(counts)
    assert selected.selection_ is None
    assert selected.edits_ == []


def test_several_numbers_of_topics_are_compared(counts, monkeypatch):
    asked = []

    def compare(task, method, run, candidates, *, verbose):
        asked.append((task.n_topics, method, candidates, verbose))
        return TopicNumbers(3, [3, 3], "said", [2, 3], [0.1, 0.2], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0])

    monkeypatch.setattr(model_module, "compare_numbers", compare)
    # More topics than words are no number to choose, but others are.
    for n_topics, candidates in (([3, 40], [3, 40]), ([2, 3], [2, 3]), ("auto", None)):
        model = TopicModel(n_topics, random_state=0).fit(counts)
        assert (model.n_topics_, model.selection_["reason"]) == (3, "said")
        assert asked[-1] == (min(candidates or [2]), "nmf", candidates, 0)
    assert TopicModel([3], random_state=0).fit(counts).selection_ is None
    assert len(asked) == 3


def test_a_loaded_model_has_everything(counts):
    model = TopicModel(3, random_state=0).fit(counts).rename_topics({0: "first"})
    older = copy.copy(model)
    for name in (
        "selection_",
        "npmi_",
        "documents_per_topic_",
        "few_documents_",
        "set_aside_",
        "duplicate_of_",
    ):
        del older.__dict__[name]
    del older.__dict__["topic_names_"], older.__dict__["edits_"]
    older._complete_loaded()
    assert (older.topic_names_, older.edits_, older.selection_) == ([None] * 3, [], None)
    assert older.documents_per_topic_.tolist() == [-1] * 3  # not known
    assert np.isnan(older.npmi_).all()
    assert not older.few_documents_.any()
    assert len(older.set_aside_) == len(older.duplicate_of_) == 0
    for name, value in (
        ("topic_names_", [None, 3, None]), ("topic_names_", [None] * 2), ("edits_", ["merged"]),
    ):  # fmt: skip
        damaged = copy.copy(model)
        setattr(damaged, name, value)
        with pytest.raises(FileFormatError, match="the topic names do not match"):
            damaged._complete_loaded()


def test_documents_without_words_are_counted_in_the_certificate(counts):
    padded = sp.csr_array(sp.vstack([counts, sp.csr_array((2, 18))], format="csr"))
    with pytest.warns(DataChangedWarning, match="2 of 47"):
        model = TopicModel(3, random_state=0).fit(padded)
    said = model.certificate_["documents-covered"]
    assert (said.quantities, said.holds) == ({"n_empty": 2}, False)
    assert model.documents_per_topic_.sum() == 45
    assert model.topic_proportions_.sum() == pytest.approx(1.0)


def test_questions_to_a_model_of_texts_leave_its_words(capsys):
    texts = [
        "cat dog pet",
        "dog cat pet",
        "bond stock fund",
        "stock market bond",
        "pet dog cat",
        "market stock bond",
    ]
    model = TopicModel(2, min_df=1, random_state=0).fit(texts)
    words = list(model.vocabulary_)
    for measure in ("umass", "npmi", "c_v"):
        assert model.coherence(texts, measure=measure, n_words=2).shape == (2,)
    assert model.coherence(texts[:4], n_words=2).shape == (2,)
    assert list(model.vocabulary_) == words
    assert model.predict(texts).tolist() == model.transform(texts).argmax(axis=1).tolist()


def test_copies_count_once_in_the_weights_of_words(counts):
    X = copies(3, 3)
    model = TopicModel(3, method="spa", min_df=1).fit(X)
    assert model.duplicate_of_.tolist() == [0, 1, 2, 0, 0, 0]
    np.testing.assert_allclose(model._inverse, np.log(3.0))  # each word is in one of three documents
    assert model.set_aside_.shape == (0,)
    whole = TopicModel(3, method="spa", min_df=1, duplicates="keep").fit(X)
    np.testing.assert_allclose(whole._inverse, np.repeat(np.log([6 / 4, 6, 6]), 30))
    assert TopicModel(3, random_state=0).fit(counts).set_aside_.shape == (0,)
