"""TopicModel: its methods, its input, new documents, and what goes wrong."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from nonneg.applications import TopicModel
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
    UnsupportedError,
)
from nonneg.metrics import clustering_accuracy

METHODS = ["nmf", "kl", "spa", "snpa", "xray", "fast-anchor", "merit", "fast-gradient"]
TEXTS = [
    "The cat chased a dog; the cat slept.",
    "A dog and a cat are pets, and pets sleep.",
    "Stocks and bonds fell in the market.",
    "The market for bonds and stocks rose.",
    "A dog is a pet, a cat is a pet, pets purr",
    "bonds rose, stocks rose, the market rose",
]


@dataclass(frozen=True)
class Planted:
    X: sp.csr_array
    labels: np.ndarray


@pytest.fixture(scope="module")
def planted():
    # Ten words of each topic occur in no other: anchor words.
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(300, 0.5), size=3)
    for topic in range(3):
        topics[:, 10 * topic : 10 * topic + 10] = 0.0
        topics[topic, 10 * topic : 10 * topic + 10] = 0.02
    topics /= topics.sum(axis=1, keepdims=True)
    labels = rng.integers(3, size=150)
    shares = 0.2 * rng.dirichlet(np.ones(3), size=150) + 0.8 * np.eye(3)[labels]
    return Planted(sp.csr_array(rng.multinomial(80, shares @ topics).astype(float)), labels)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_planted_topics(planted, method):
    model = TopicModel(3, method=method, random_state=0)
    memberships = model.fit_transform(planted.X)
    assert memberships.shape == (150, 3)
    np.testing.assert_allclose(memberships.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.topics_.sum(axis=1), 1.0)
    assert model.topics_.min() >= 0
    assert model.topics_.shape == model.components_.shape == (3, 300)
    assert clustering_accuracy(planted.labels, model.predict(planted.X)) > 0.8
    assert model.topic_proportions_.sum() == pytest.approx(1.0)
    if method in ("nmf", "kl"):
        assert model.anchor_words_ is None
    else:
        assert sorted(model.anchor_words_) == sorted(model.anchor_indices_)
        assert "anchors-exclusive" in model.certificate_
    assert {"topics-differ", "documents-covered"} <= set(model.certificate_.names)


@pytest.mark.parametrize("method", ["nmf", "kl", "merit"])
def test_documents_do_not_depend_on_their_neighbors(planted, method):
    model = TopicModel(3, method=method, random_state=0)
    memberships = model.fit_transform(planted.X)
    np.testing.assert_allclose(model.transform(planted.X), memberships, atol=1e-7)
    some = sp.csr_array(planted.X)[[3, 90]]
    np.testing.assert_allclose(model.transform(some), memberships[[3, 90]], atol=1e-5)


def test_dense_sparse_and_narrow_counts_agree(planted):
    sparse = TopicModel(3, method="spa").fit(planted.X)
    dense = TopicModel(3, method="spa").fit(planted.X.toarray())
    np.testing.assert_allclose(sparse.topics_, dense.topics_)
    narrow = TopicModel(3, method="spa").fit(planted.X.astype(np.float32))
    assert narrow.topics_.dtype == narrow.transform(planted.X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(narrow.topics_, sparse.topics_, atol=1e-6)
    whole = TopicModel(3, method="spa").fit(planted.X.astype(int))
    np.testing.assert_allclose(whole.topics_, sparse.topics_)


def test_input_is_left_as_it_is(planted):
    X = planted.X.copy()
    X.data[3] = 0.0  # a zero that is stored
    before = X.copy()
    TopicModel(3, method="spa").fit(X).transform(X)
    assert np.array_equal(X.data, before.data)
    assert np.array_equal(X.indices, before.indices)


def test_texts_words_and_examples():
    model = TopicModel(2, stop_words="english", random_state=0).fit(TEXTS)
    words = [set(topic) for topic in model.top_words(3)]
    animals = next(at for at in range(2) if "dog" in words[at])
    assert "market" in words[1 - animals]
    found = model.transform(["my dog sees a cat", "a market for stocks"])
    assert found.argmax(axis=1).tolist() == [animals, 1 - animals]
    examples = model.representative_documents(TEXTS, 2)
    assert set(examples[animals]) <= {0, 1, 4}
    assert set(examples[1 - animals]) <= {2, 3, 5}
    assert model.documents_per_topic_.tolist() == [3, 3]
    assert model.vectorizer_ is not None
    assert model.feature_names_in_ if hasattr(model, "feature_names_in_") else True
    both = TopicModel(2, vectorizer=TfidfVectorizer(stop_words="english"), random_state=0).fit(
        np.array(TEXTS, dtype=object)
    )
    assert {"dog", "market"} <= set(both.vocabulary_)


def test_names_come_from_data_frames_and_vocabularies(planted):
    pd = pytest.importorskip("pandas")
    names = [f"word{at}" for at in range(300)]
    frame = pd.DataFrame(planted.X.toarray(), columns=names)
    series = TopicModel(2, stop_words="english", random_state=0).fit(pd.Series(TEXTS))
    assert "dog" in series.vocabulary_
    model = TopicModel(3, method="spa").fit(frame)
    assert all(word.startswith("word") for word in model.anchor_words_)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[names[::-1]])
    given = TopicModel(3, method="spa", vocabulary=names).fit(planted.X)
    assert given.anchor_words_ == model.anchor_words_
    with pytest.raises(ShapeError, match="2 words for 300 columns"):
        TopicModel(3, vocabulary=["a", "b"]).fit(planted.X)
    with pytest.raises(InvalidParameterError, match="texts bring their own words"):
        TopicModel(2, vocabulary=["a"]).fit(TEXTS)


def test_given_anchors_by_word_and_by_column(planted):
    names = [f"word{at}" for at in range(300)]
    found = TopicModel(3, method="spa", vocabulary=names).fit(planted.X)
    again = TopicModel(3, method="merit", vocabulary=names, anchors=found.anchor_words_).fit(planted.X)
    # Anchors in another order leave zeros as other roundoff.
    np.testing.assert_allclose(again.topics_, found.topics_, atol=1e-15)
    assert again.result_ is None
    columns = TopicModel(3, method="xray", anchors=found.anchor_indices_).fit(planted.X)
    np.testing.assert_allclose(columns.topics_, found.topics_, atol=1e-15)
    with pytest.raises(UnsupportedError, match="method='kl' does not use anchor words"):
        TopicModel(3, method="kl", anchors=[1, 2, 3]).fit(planted.X)


def test_wrong_anchors(planted):
    X = planted.X.toarray()
    X[:, 7] = 0.0
    X[4, 7] = 1.0

    def fit(anchors, **more):
        return TopicModel(3, method="spa", anchors=anchors, **more).fit(X)

    with pytest.raises(InvalidParameterError, match=r"anchors has 2 words, but n_topics=3.*Set n_topics=2"):
        fit([1, 2])
    with pytest.raises(InvalidParameterError, match="named twice"):
        fit([1, 2, 2])
    with pytest.raises(InvalidParameterError, match="'cat' is not in the vocabulary"):
        fit(["cat", "dog", "pet"])
    with pytest.raises(
        InvalidParameterError, match="anchors must be words or columns from 0 to 299, got 300"
    ):
        fit([1, 2, 300])
    with pytest.raises(InvalidParameterError, match=r"7 is in 1 of them \(min_df=2"):
        fit([1, 2, 7])
    with pytest.raises(InvalidParameterError, match="'cat' is not in the vocabulary"):
        fit(["cat", "dog", "pet"], vocabulary=[f"w{at}" for at in range(300)])


def test_empty_documents_are_counted_and_have_no_membership(planted):
    X = sp.csr_array(sp.vstack([planted.X, sp.csr_array((2, 300))]))
    for method in ("nmf", "kl", "spa"):
        with pytest.warns(DataChangedWarning, match="Documents with no word of a topic: 2 of 152"):
            model = TopicModel(3, method=method, random_state=0).fit(X)
        assert model.certificate_["documents-covered"].number == pytest.approx(150 / 152)
        with pytest.warns(DataChangedWarning, match="1 of 1"):
            assert model.transform(np.zeros((1, 300))).tolist() == [[0.0, 0.0, 0.0]]
    with pytest.warns(DataChangedWarning):
        assert model.predict(X)[-2:].tolist() == [-1, -1]


def test_rare_and_common_words_are_not_used(planted):
    X = planted.X.toarray()
    X[:, 0], X[:, 1] = 1.0, 0.0
    X[5, 1] = 3.0
    model = TopicModel(3, method="spa").fit(X)
    assert not np.isin([0, 1], model.word_indices_).any()
    assert model.topics_[:, [0, 1]].max() == 0
    rarer = TopicModel(3, method="spa", min_df=40, max_df=0.6).fit(X)
    present = np.sum(X[:, rarer.word_indices_] > 0, axis=0)
    assert 40 <= present.min() <= present.max() <= 90


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one text", DataTypeError, "Make a list"),
        ({"text": ["a text"]}, DataTypeError, "got one dict"),
        (iter(["a text"]), DataTypeError, "got one list_iterator"),
        ([b"a text"], DataTypeError, "document 0 is of type bytes"),
        (["a text", 3], DataTypeError, "document 1 is of type int"),
        ([["a", "text"], ["another"]], DataTypeError, "Join them, as by"),
        ([1.0, 2.0], ShapeError, r"shape \(n_documents, n_words\)"),
        ([[1.0, -2.0], [0.0, 1.0]], NegativeDataError, r"entry \[0, 1\] is -2.0"),
        ([[1.0, np.nan], [0.0, 1.0]], NonFiniteDataError, r"entry \[0, 1\] is nan"),
        (np.ones((3, 4)), InvalidDataError, "0 are in fewer .* in more than max_df=1.0 of them or in all"),
        (np.zeros((3, 4)), InvalidDataError, "No word is left of 4: 4 are in fewer"),
        (np.eye(4), InvalidDataError, "4 are in fewer than min_df=2 of the 4"),
        (np.zeros((0, 4)), InvalidDataError, "at least one document"),
        (["", " ", "12 34"], InvalidDataError, "No word was found in the 3 documents"),
        (np.array([["a", "b"]]), DataTypeError, "Expected a list of texts"),
    ],
)
def test_bad_documents(X, error, message):
    with pytest.raises(error, match=message):
        TopicModel(2).fit(X)


def test_bad_parameters(planted):
    for parameters, message in [
        ({"n_topics": 0}, "n_topics"),
        ({"method": "mert"}, "Did you mean 'merit'"),
        ({"n_topics": 151}, "more than the 150 documents"),
        ({"max_df": 0.0}, "max_df"),
        ({"min_df": 0}, "min_df"),
    ]:
        with pytest.raises(InvalidParameterError, match=message):
            TopicModel(**{"n_topics": 3} | parameters).fit(planted.X)
    with pytest.raises(InvalidParameterError, match="fit_transform"):
        TopicModel(2, vectorizer="tfidf").fit(TEXTS)
    with pytest.raises(InvalidParameterError, match="stop_words belong to the vectorizer"):
        TopicModel(2, vectorizer=TfidfVectorizer(), stop_words="english").fit(TEXTS)


def test_what_was_fitted_is_what_is_asked_for(planted):
    model = TopicModel(3, method="spa")
    with pytest.raises(NotFittedError):
        model.transform(planted.X)
    model.fit(planted.X)
    with pytest.raises(ShapeError, match="expecting 300 features"):
        model.transform(np.ones((2, 5)))
    with pytest.raises(InvalidParameterError, match="fitted to counts"):
        model.transform(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = TopicModel(2, random_state=0).fit(TEXTS)
    with pytest.raises(InvalidParameterError, match="fitted to texts"):
        texts.transform(planted.X)


@pytest.mark.covering(0)
@pytest.mark.parametrize("method", ["nmf", "kl", "spa"])
def test_scikit_learn_contract(planted, method):
    model = TopicModel(3, method=method, random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.set_output(transform="default")
    found = make_pipeline(model, Normalizer()).fit_transform(planted.X)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_allclose(again.transform(planted.X), model.transform(planted.X))
    assert model.get_feature_names_out().tolist() == [f"topicmodel{at}" for at in range(3)]
    same = TopicModel(3, method=method, random_state=0).fit(planted.X)
    assert np.array_equal(same.topics_, model.topics_)


def test_documents_whose_words_are_in_no_topic_are_counted():
    texts = ["cat dog pet", "dog pet cat", "bond stock", "stock bond market", "market bond"]
    with pytest.warns(DataChangedWarning, match="Documents with no word of a topic"):
        TopicModel(1, method="spa").fit(texts)


@pytest.mark.parametrize("method", ["nmf", "kl", "spa"])
def test_unknown_options_are_told(method):
    with pytest.raises(UnknownNameError, match="does not accept deepness"):
        TopicModel(2, method=method, method_params={"deepness": 1}).fit(TEXTS)


def test_parameters_of_iterations_are_refused_where_there_are_none():
    with pytest.raises(UnsupportedError, match="method='spa' does not accept max_iter; only"):
        TopicModel(2, method="spa", max_iter=5).fit(TEXTS)
    stopped = TopicModel(2, method="kl", callback=lambda now: now.n_iter >= 2, random_state=0).fit(TEXTS)
    assert stopped.n_iter_ == 2


def test_stop_words_and_empty_lists():
    with pytest.raises(UnknownNameError, match="stop_words='french' is not known"):
        TopicModel(2, stop_words="french").fit(TEXTS)
    model = TopicModel(2, stop_words=("cat", "dog")).fit(TEXTS)
    assert "cat" not in model.vocabulary_
    with pytest.raises(InvalidDataError, match="at least one document"):
        model.transform([])


def test_entries_that_come_several_times_are_added_in_a_type_that_holds_the_sum(planted):
    # 200 + 200 was 144 in a byte.
    present = sp.coo_array(planted.X > 0)
    places = np.tile(present.row, 2), np.tile(present.col, 2)
    twice = sp.coo_array((np.full(2 * present.nnz, 200, dtype=np.uint8), places), present.shape)
    once = TopicModel(3, method="spa").fit(400 * (planted.X > 0).astype(float))
    np.testing.assert_allclose(TopicModel(3, method="spa").fit(twice).topics_, once.topics_)
