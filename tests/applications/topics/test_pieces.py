"""Weights of words, counts of texts and periods against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm

from nonneg.applications import TopicModel
from nonneg.applications.topics import number_of_topics
from nonneg.applications.topics.dates import Dates
from nonneg.applications.topics.documents import (
    are_texts,
    checked_counts,
    kept_words,
    smallest_df,
    spread_out,
    used_words,
)
from nonneg.applications.topics.number_of_topics import (
    _agreements,
    _checked_candidates,
    _is_hopeless,
    recommended,
    similar_documents,
    word_agreement,
)
from nonneg.applications.topics.over_time import _kernel_sums, _smoothed, _unit_of, topics_over_time
from nonneg.applications.topics.quality import Support, documents_per_topic, topic_npmi
from nonneg.applications.topics.term_weights import (
    document_frequencies,
    informative_words,
    inverse_frequencies,
    term_weights,
)
from nonneg.applications.topics.word_correlation import WordCorrelation
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
)
from nonneg.metrics.topics import npmi_coherence


@pytest.fixture
def counts(rng):
    X = rng.poisson(0.7, (12, 9)).astype(float)
    X[:, 3], X[:, 4], X[5] = 0.0, 2.0, 0.0
    X[5, 4] = 1.0
    X[:, 8] = 0.0
    X[2, 8] = 3.0
    return X


def test_weights_of_words(counts):
    sparse = sp.csr_array(counts)
    found = np.sum(counts > 0, axis=0)
    np.testing.assert_array_equal(document_frequencies(sparse), found)
    stored = sparse.copy()
    stored.data[0] = 0.0  # a stored zero is no occurrence
    assert document_frequencies(stored)[sparse.indices[0]] == found[sparse.indices[0]] - 1
    inverse = inverse_frequencies(sparse)
    np.testing.assert_allclose(inverse, np.where(found > 0, np.log(12 / np.maximum(found, 1)), 0.0))
    np.testing.assert_array_equal(informative_words(sparse), np.flatnonzero((found >= 2) & (found < 12)))
    np.testing.assert_array_equal(informative_words(sparse, 1), np.flatnonzero((found >= 1) & (found < 12)))
    expected = np.where(counts > 0, 1.0 + np.log(np.maximum(counts, 1.0)), 0.0) * inverse
    np.testing.assert_allclose(term_weights(sparse, inverse).toarray(), expected)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    unit = term_weights(sparse, inverse, unit_rows=True).toarray()
    np.testing.assert_allclose(unit, expected / np.where(lengths > 0, lengths, 1.0))
    half = sp.csr_array(np.array([[0.5, 1.0]]))
    np.testing.assert_allclose(term_weights(half, np.ones(2)).toarray(), [[0.5, 1.0]])


def test_words_that_are_neither_rare_nor_common():
    found = np.array([0, 1, 2, 5, 6, 9, 10])
    np.testing.assert_array_equal(kept_words(found, 10, 2, 1.0), [0, 0, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(kept_words(found, 10, 2, 0.5), [0, 0, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(kept_words(found, 10, 0, 0.5), [0, 1, 1, 1, 0, 0, 0])
    assert [smallest_df(given, 10_000) for given in (None, 0, 1, 7)] == [10, 1, 1, 7]
    X = np.eye(4)
    with pytest.raises(
        InvalidDataError,
        match=r"of 4 in 4 documents: 0 occur nowhere, 4 in fewer than min_df=2, 0 in more.*Lower min_df",
    ):
        used_words(sp.csr_array(X), None, 1.0)
    with pytest.raises(InvalidDataError, match=r"2 occur nowhere.*Lower min_df"):
        used_words(sp.csr_array(np.pad(X, ((0, 0), (0, 2)))), None, 1.0)
    with pytest.raises(
        InvalidDataError, match=r"0 in fewer than min_df=1, 3 in more than max_df=0.5.*Raise max_df"
    ):
        used_words(sp.csr_array(np.ones((4, 3))), 1, 0.5)
    some = sp.csr_array((np.arange(4)[:, None] < np.array([4, 3, 3, 4, 0])).astype(float))
    with pytest.raises(InvalidDataError, match=r"1 occur nowhere, 0 in fewer than min_df=1, 4 in more than"):
        used_words(some, 1, 0.5)
    with pytest.raises(InvalidDataError, match=r"2 in fewer than min_df=4, 2 in more than max_df=1.0"):
        used_words(some, 4, 1.0)
    np.testing.assert_array_equal(spread_out(np.ones((2, 2)), np.array([1, 3]), 4), [[0, 1, 0, 1]] * 2)


def test_texts_and_counts_are_told_apart(counts):
    assert are_texts(["one two", ""])
    assert not are_texts(counts)
    assert not are_texts(sp.csr_array(counts))
    assert not are_texts([[1, 2], [3, 4]])
    with pytest.raises(DataTypeError, match="document 1 is of type float"):
        are_texts(["a", 1.5])
    with pytest.raises(DataTypeError, match="got one str"):
        are_texts("one text")
    with pytest.raises(InvalidDataError, match="at least one document"):
        are_texts([])
    found = checked_counts(sp.coo_array(([1, 2, 0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2)))
    np.testing.assert_array_equal(found.toarray(), [[0, 3], [0, 0]])
    assert found.nnz == 1
    for wrong, error, words in (
        (np.array([[1.0, -2.0]]), NegativeDataError, r"entry \[0, 1\] is -2.0"),
        (np.array([[1.0, 0.0], [np.nan, 0.0]]), NonFiniteDataError, r"entry \[1, 0\] is nan"),
        (np.ones(3), ShapeError, r"one document per row, got \(3,\)"),
        (np.array([["a"]]), DataTypeError, "list of texts"),
        (np.ones((0, 3)), InvalidDataError, "at least one document and one word"),
    ):
        with pytest.raises(error, match=words):
            checked_counts(wrong)


def test_a_fitted_model_wants_what_it_was_fitted_to(rng):
    texts = ["red green blue", "red blue", "dog cat horse", "cat dog", "green red", "horse dog"]
    model = TopicModel(2, min_df=1, random_state=0).fit(texts)
    assert set(model.vocabulary_) == {"red", "green", "blue", "dog", "cat", "horse"}
    proportions = model.transform(["red blue", "dog cat"])
    assert proportions[0].argmax() != proportions[1].argmax()
    with pytest.raises(InvalidParameterError, match="fitted to texts"):
        model.transform(np.ones((2, 6)))
    other = TopicModel(2, min_df=1, random_state=0).fit(rng.poisson(1.0, (12, 6)))
    assert other.vectorizer_ is None
    with pytest.raises(InvalidParameterError, match="fitted to counts"):
        other.transform(texts)
    with pytest.raises(ShapeError, match="X has 5 features, but TopicModel is expecting 6"):
        other.transform(np.ones((2, 5)))
    # Fitted again to other things, it forgets the first.
    assert model.fit(rng.poisson(1.0, (12, 6))).vectorizer_ is None
    other.feature_names_in_ = np.array([f"w{at}" for at in range(6)], dtype=object)  # as of a data frame
    assert other.fit(texts).vectorizer_ is not None
    assert not hasattr(other, "feature_names_in_")


@pytest.mark.parametrize("normalized", [False, True])
def test_correlations_of_words(normalized, counts, rng):
    dense = counts.T @ counts / 12
    if normalized:
        sums = dense.sum(axis=1, keepdims=True)
        dense = dense / np.where(sums > 0, sums, 1.0)
    found = WordCorrelation(sp.csr_array(counts), normalized=normalized)
    right = rng.random((9, 2))
    np.testing.assert_allclose(found.times(right), dense @ right)
    np.testing.assert_allclose(found.transposed_times(right), dense.T @ right)
    np.testing.assert_allclose(found.take_rows([4, 1]), dense[[4, 1]])
    np.testing.assert_allclose(found.dense_rows(2, 6), dense[2:6])
    np.testing.assert_allclose(found.select(np.array([5, 0])).dense_rows(0, 2), dense[[5, 0]])
    assert found.squared_norm() == pytest.approx(np.sum(dense**2))
    assert found.total() == pytest.approx(dense.sum())
    assert found.count_nonzero() == np.count_nonzero(dense)
    assert found.extremes() == pytest.approx((dense.min(), dense.max()))


def test_documents_of_topics():
    proportions = np.array([[0.7, 0.3], [0.2, 0.8], [0.0, 0.0], [0.6, 0.4], [0.6, 0.4]])
    np.testing.assert_array_equal(documents_per_topic(proportions), [3, 1])
    support = Support.of(proportions, np.array([0, 1, 2, 3, 3]), np.array([1]))
    np.testing.assert_array_equal(support.counts, [2, 1])
    assert (support.limit, support.n_copies, support.n_set_aside) == (2.0, 1, 1)
    np.testing.assert_array_equal(support.few, [False, True])
    other = Support.of(proportions, np.arange(3), np.array([1]))  # of other documents
    assert (other.n_copies, other.n_set_aside) == (0, 0)
    np.testing.assert_array_equal(other.counts, [3, 1])
    many = Support.of(np.repeat([[1.0, 0.0], [0.0, 1.0]], [90, 10], axis=0))
    assert many.limit == pytest.approx(10.0)
    np.testing.assert_array_equal(many.few, [False, False])


def test_coherence_of_words_that_a_topic_has(counts):
    sparse = sp.csr_array(counts)
    components = np.zeros((3, 9))
    components[0, [0, 1, 2]] = [3.0, 2.0, 1.0]
    components[1, 5] = 1.0
    found = topic_npmi(sparse, components)
    assert found[0] == pytest.approx(npmi_coherence(sparse, [np.array([0, 1, 2])])[0])
    assert np.isnan(found[1:]).all()
    components[2, [1, 2]] = 1.0  # two words are a pair
    assert topic_npmi(sparse, components)[2] == pytest.approx(npmi_coherence(sparse, [np.array([1, 2])])[0])


def test_agreement_of_ranked_words():
    one, two = np.array([[0, 1, 2]]), np.array([[1, 0, 5], [7, 8, 9]])
    # At depth 1 nothing in common, at 2 both, at 3 two of four.
    np.testing.assert_allclose(_agreements(one, two), [[(0 + 1 + 2 / 4) / 3, 0.0]])
    assert word_agreement(one, one) == 1.0
    both = np.array([[7, 8, 9], [0, 1, 2]])
    assert word_agreement(np.array([[0, 1, 2], [7, 8, 9]]), both) == 1.0


def test_documents_are_connected_with_the_most_similar_ones(rng):
    weights = rng.random((6, 4))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    cosines = weights @ weights.T
    np.fill_diagonal(cosines, -1.0)
    expected = np.zeros((6, 6))
    for i in range(6):
        nearest = np.argsort(-cosines[i])[:2]
        expected[i, nearest] = cosines[i, nearest]
    found = similar_documents(sp.csr_array(weights), 2).toarray()
    np.testing.assert_allclose(found, np.maximum(expected, expected.T))
    assert np.count_nonzero(similar_documents(sp.csr_array(weights), 99).toarray()) == 30


def test_candidates_and_the_end_of_the_search(monkeypatch):
    counts = sp.csr_array(np.ones((60, 8)))
    assert _checked_candidates(None, counts, 0) == [2, 3, 4, 5, 6]
    assert _checked_candidates([9, 4, 4, 8], counts, 0) == [4, 8]
    assert _checked_candidates([2, 3, 4], counts, 3) == [3, 4]
    with pytest.raises(InvalidParameterError, match=r"None of the candidates \[9\]"):
        _checked_candidates([9], counts, 0)
    least = number_of_topics.LEAST_TRIED
    assert not _is_hopeless([0.9] + [0.1] * (least - 2))
    assert _is_hopeless([0.9] + [0.1] * (least - 1))
    assert not _is_hopeless([0.9] + [0.1] * (least - 2) + [0.85])
    assert recommended(np.array([0.2, 0.5, 0.49, 0.1])) == (1, (1, 2))
    assert recommended(np.array([0.5, 0.5])) == (0, (0, 1))
    assert recommended(np.array([-0.2, -0.1])) == (1, (1, 1))


def test_periods_have_means_and_counts(rng):
    days = np.array(["2021-01-01", "2021-01-31", "2021-03-05", "NaT", "2021-03-06"], dtype="datetime64[s]")
    proportions = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0], [0.3, 0.7], [0.2, 0.8]])
    found = topics_over_time(proportions, Dates(days, []), ["a", "b"], "month")
    assert found.periods == ["2021-01", "2021-02", "2021-03"]
    np.testing.assert_array_equal(found.counts, [2, 0, 1])
    np.testing.assert_allclose(found.proportions, [[0.75, 0.25], [np.nan, np.nan], [0.2, 0.8]])
    assert (found.n_missing, found.n_empty, found.bandwidth) == (1, 1, 0.0)
    by_week = topics_over_time(proportions, Dates(days, []), ["a", "b"], "week")
    assert by_week.periods[0] == "2020-12-28"  # a Monday
    assert topics_over_time(proportions, Dates(days, []), ["a", "b"], "year").periods == ["2021"]
    with pytest.raises(InvalidDataError, match="None of the 1 documents has a date"):
        topics_over_time(proportions[:1], Dates(days[3:4], []), ["a", "b"])


def test_the_unit_of_periods():
    def unit(*spans):
        return _unit_of(np.datetime64("2020-01-06", "s") + np.array(spans).astype("timedelta64[h]"))

    assert unit(0) == "day"
    assert unit(0, 24 * 800) == "year"
    assert unit(*range(0, 240, 1)) in ("hour", "day")


def test_smoothing_weighs_periods_by_their_documents(rng):
    counts = rng.integers(0, 9, 30)
    sums = counts[:, None] * rng.random((30, 2))
    for width, itself in ((2.0, True), (3.0, False)):
        total, known = _kernel_sums(sums, counts, width, itself=itself)
        for at in (0, 7, 29):
            apart = np.arange(30) - at
            kernel = np.where(np.abs(apart) <= int(3 * width), norm.pdf(apart / width) / norm.pdf(0), 0.0)
            kernel[at] *= itself
            np.testing.assert_allclose(total[at], kernel @ sums)
            assert known[at] == pytest.approx(kernel @ counts)
    smooth, width = _smoothed(sums, counts)
    total, known = _kernel_sums(sums, counts, width, itself=True)
    np.testing.assert_allclose(smooth, total / known[:, None])


def test_given_numbers_of_topics_are_all_tried(monkeypatch, rng):
    monkeypatch.setattr(number_of_topics, "_is_hopeless", lambda modularity: len(modularity) >= 2)
    monkeypatch.setattr(number_of_topics, "N_SAMPLES", 1)
    counts = rng.poisson(1.0, (40, 12))
    given = TopicModel([2, 3, 4], min_df=1, random_state=0).fit(counts)
    assert given.selection_["candidates"] == [2, 3, 4]
    auto = TopicModel("auto", min_df=1, random_state=0).fit(counts)
    assert auto.selection_["candidates"] == [2, 3]
