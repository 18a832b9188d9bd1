"""`TopicModel.partial_fit`: topics of a stream of documents."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.feature_extraction.text import CountVectorizer

import nonneg
from nonneg.applications import TopicModel
from nonneg.applications.topics import model as module
from nonneg.exceptions import FileFormatError, InvalidParameterError, ShapeError, UnsupportedError
from nonneg.metrics import clustering_accuracy

K, N_WORDS = 4, 160


def documents(n, topics, rng):
    labels = rng.integers(len(topics), size=n)
    shares = 0.2 * rng.dirichlet(np.ones(len(topics)), size=n) + 0.8 * np.eye(len(topics))[labels]
    mixed = 0.95 * shares @ topics + 0.05 / topics.shape[1]
    return sp.csr_array(rng.multinomial(50, mixed).astype(float)), labels


def planted_topics(k, rng):
    topics = np.zeros((k, N_WORDS))
    for at in range(k):
        topics[at, 32 * at : 32 * at + 32] = rng.dirichlet(np.ones(32))
    return topics


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    return documents(900, planted_topics(K, rng), rng)


@pytest.fixture
def small_sample(monkeypatch):
    """Keep 400 documents only, so that the stream of the tests is longer than the sample."""
    monkeypatch.setattr(module, "MAX_SAMPLE", 400)


def batches(X, size):
    return [X[at : at + size] for at in range(0, X.shape[0], size)]


def cosines(one, other):
    """Return the cosines between matched topics."""
    unit = [
        model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True) for model in (one, other)
    ]
    alike = unit[0] @ unit[1].T
    rows, columns = linear_sum_assignment(-alike)
    return alike[rows, columns]


def test_a_stream_gives_the_topics_of_one_fit(planted, small_sample):
    X, labels = planted
    whole = TopicModel(K, random_state=0).fit(X)
    model = TopicModel(K, random_state=0)
    for batch in batches(X, 60):
        model.partial_fit(batch)
        proportions = model.transform(batch)  # in between
        np.testing.assert_allclose(proportions.sum(axis=1), 1.0)
    assert cosines(model, whole).min() > 0.99
    assert clustering_accuracy(labels, model.predict(X)) > 0.97
    np.testing.assert_allclose(
        np.sort(model.topic_proportions_), np.sort(whole.topic_proportions_), atol=0.05
    )
    assert "Topics were found in 400 of " in model.certificate_["topics-streamed"].sentence
    assert len(model.coherence_) == K


def test_few_documents_are_fitted_as_a_whole(planted):
    X = planted[0][:300]
    model = TopicModel(K, random_state=0)
    for batch in batches(X, 100):
        model.partial_fit(batch)
    whole = TopicModel(K, random_state=0).fit(X)
    np.testing.assert_allclose(cosines(model, whole), 1.0, atol=1e-6)
    assert "found in 300 of 300" in model.certificate_["topics-streamed"].sentence


def test_topics_keep_numbers_and_names(planted, small_sample):
    X, _ = planted
    model = TopicModel(K, random_state=0).partial_fit(X[:100])
    model = model.rename_topics({2: "third"})
    before = model.components_
    for batch in batches(X[100:], 100):
        model.partial_fit(batch)
    alike = before @ model.components_.T
    assert np.array_equal(alike.argmax(axis=1), np.arange(K))
    assert model.topic_names_[2] == "third"


def test_a_model_saved_between_batches_goes_on_as_if_it_had_not_been(planted, small_sample, tmp_path):
    X, _ = planted
    model = TopicModel(K, random_state=0)
    saved = TopicModel(K, random_state=0)
    for batch in batches(X[:420], 140):
        model.partial_fit(batch)
        saved.partial_fit(batch).save(tmp_path / "model.npz")
        saved = nonneg.load(tmp_path / "model.npz")
        assert np.array_equal(saved.transform(X[:20]), model.transform(X[:20]))
    assert np.array_equal(saved.components_, model.components_)
    with np.load(tmp_path / "model.npz") as stored:
        arrays = dict(stored)
    for name, value in [
        ("_stream.sample.indices", arrays["_stream.sample.indices"] + N_WORDS),
        ("_stream.sample.indptr", arrays["_stream.sample.indptr"][::-1]),
        ("_stream.sample.data", -arrays["_stream.sample.data"]),
    ]:
        np.savez(tmp_path / "damaged.npz", **arrays | {name: value})
        with pytest.raises(FileFormatError):
            nonneg.load(tmp_path / "damaged.npz")


def test_words_of_texts_are_added():
    rng = np.random.default_rng(0)
    subjects = [["cat", "dog", "pet", "fur"], ["bond", "stock", "market", "price"]]
    later = [["cat", "hamster", "pet", "cage"], ["bond", "stock", "crypto", "token"]]

    def texts(vocabulary, n):
        return [" ".join(rng.choice(vocabulary[at % 2], size=6)) for at in range(n)]

    model = TopicModel(2, random_state=0).partial_fit(texts(subjects, 40))
    before = list(model.vocabulary_)
    assert "hamster" not in before
    for _ in range(3):
        model.partial_fit(texts(later, 12))
    assert list(model.vocabulary_)[: len(before)] == before
    assert list(model.vocabulary_)[len(before) :] == ["cage", "crypto", "hamster", "token"]
    assert model.n_features_in_ == len(model.vocabulary_) == model.components_.shape[1]
    animals, money = model.predict(["cat dog", "bond stock"])
    assert animals != money
    assert model.predict(["hamster cage", "crypto token"]).tolist() == [animals, money]
    model.partial_fit(["only unheard words"])  # in one document: not used
    assert "unheard" in model.vocabulary_
    assert not model.components_[:, list(model.vocabulary_).index("unheard")].any()
    own = TopicModel(2, vectorizer=CountVectorizer(), random_state=0).partial_fit(texts(subjects, 40))
    own.partial_fit(texts(later, 12))
    assert "hamster" not in own.vocabulary_


def test_a_fit_goes_on(planted):
    X, labels = planted
    model = TopicModel(K, random_state=0).fit(X[:300])
    before = model.components_
    model.partial_fit(X[300:400])
    assert np.array_equal(model.components_, before)  # fewer documents than those of the fit
    for batch in batches(X[400:], 100):
        model.partial_fit(batch)
    assert not np.array_equal(model.components_, before)
    assert np.array_equal((before @ model.components_.T).argmax(axis=1), np.arange(K))
    assert clustering_accuracy(labels, model.predict(X)) > 0.97
    # A fit forgets the stream.
    assert "topics-streamed" not in model.fit(X[:300]).certificate_


def test_what_a_stream_cannot_do_is_told(planted):
    X = planted[0][:200]
    model = TopicModel(K, random_state=0).partial_fit(X)
    with pytest.raises(UnsupportedError, match="the next batch would undo that"):
        model.merge_topics([0, 1], X).partial_fit(X)
    with pytest.raises(ShapeError, match="expecting 160 features"):
        model.partial_fit(X[:, :5])
    with pytest.raises(InvalidParameterError, match="n_topics=4 is more than the 3 documents"):
        TopicModel(K).partial_fit(X[:3])


@pytest.mark.parametrize("options", [{"min_df": 5, "max_df": 0.5}, {"method": "kl"}])
def test_options_hold_in_a_stream(planted, small_sample, options):
    X, labels = planted
    model = TopicModel(K, random_state=0, **options)
    for batch in batches(X[:600].astype(np.float32), 150):
        model.partial_fit(batch)
    assert model.components_.dtype == model.transform(X[:5].astype(np.float32)).dtype == np.float32
    assert clustering_accuracy(labels, model.predict(X.astype(np.float32))) > 0.95
