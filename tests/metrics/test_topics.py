"""Coherence and overlap of topics, against sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.metrics import cv_coherence, npmi_coherence, top_words, topic_diversity, umass_coherence


@pytest.fixture
def documents(rng):
    return (rng.random((30, 8)) < 0.4) * rng.integers(1, 5, (30, 8))


def df(documents, *words):
    return int(np.sum(np.all(documents[:, words] > 0, axis=1)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array])
def test_umass_is_twice_the_sum_over_pairs_with_the_more_important_word_below(documents, form):
    words = [[3, 0, 5], [1, 2, 7]]
    expected = [
        2 * sum(
            math.log((df(documents, topic[n], topic[m]) + 0.01) / df(documents, topic[n]))
            for n in range(3) for m in range(n + 1, 3)
        )
        for topic in words
    ]  # fmt: skip
    np.testing.assert_allclose(umass_coherence(form(documents), words), expected)
    # The order of the words of a topic matters: counts of the first of a pair stand below.
    assert umass_coherence(documents, [[5, 0, 3]])[0] != pytest.approx(expected[0])


def test_npmi_is_the_mean_over_pairs(documents):
    n = len(documents)
    values = []
    for one, other in ((3, 0), (3, 5), (0, 5)):
        both = df(documents, one, other) / n
        values.append(math.log(both / (df(documents, one) * df(documents, other) / n**2)) / -math.log(both))
    assert npmi_coherence(documents, [[3, 0, 5]])[0] == pytest.approx(np.mean(values))


def test_npmi_at_its_ends():
    apart = np.array([[1, 0], [0, 1], [0, 1]])
    together = np.array([[1, 1], [1, 1], [0, 0]])
    always = np.ones((3, 2))
    found = [npmi_coherence(case, [[0, 1]])[0] for case in (apart, together, always)]
    assert found == pytest.approx([-1.0, 1.0, 1.0])


def test_top_words_are_stable_and_as_many_as_there_are():
    topics = [[0.2, 0.5, 0.2, 0.1], [0.0, 0.0, 0.0, 1.0]]
    assert top_words(topics, 2).tolist() == [[1, 0], [3, 0]]
    assert top_words(topics, 9).shape == (2, 4)


def test_errors_say_what_is_wrong(documents):
    with pytest.raises(InvalidParameterError, match=r"integers from 0 to 7.*got 1 to 8"):
        umass_coherence(documents, [[1, 8]])
    with pytest.raises(ShapeError, match=r"nonneg\.metrics\.top_words"):
        umass_coherence(documents, [["cat", "dog"]])
    documents[:, 4] = 0
    with pytest.raises(InvalidDataError, match="Word 4 is a top word but in no document"):
        npmi_coherence(documents, [[3, 4]])
    with pytest.raises(InvalidParameterError, match="at least two top words"):
        npmi_coherence(documents, [[3]])
    with pytest.raises(InvalidParameterError, match="smoothing"):
        umass_coherence(documents, [[3, 2]], smoothing=0.0)
    with pytest.raises(InvalidParameterError, match="n_words"):
        top_words(np.ones((2, 3)), 0)
    with pytest.raises(ShapeError, match="n_topics, n_words"):
        top_words(np.ones(3))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int64, bool, np.float32])
def test_top_words_of_counts(dtype):
    """Unsigned counts have no negatives, and must be ranked like any others."""
    np.testing.assert_array_equal(top_words(np.array([[3, 0, 1], [0, 0, 1]], dtype=dtype), 1), [[0], [2]])


def test_top_words_of_sparse_topics_and_of_nan():
    """Topics may be sparse; NaN has no rank."""
    topics = np.array([[0.0, 2.0, 1.0]])
    np.testing.assert_array_equal(top_words(sp.csr_array(topics), 2), [[1, 2]])
    with pytest.raises(NonFiniteDataError, match="NaN"):
        top_words(topics * np.nan)


def written_out_cv(windows, topic):
    # Röder et al. (2015): NPMI vectors over the words of a topic, cosine with their sum, mean over words.
    def p(*words):
        return sum(all(word in window for word in words) for window in windows) / len(windows)

    def npmi(one, other):
        return math.log((p(one, other) + 1e-12) / (p(one) * p(other))) / -math.log(p(one, other) + 1e-12)

    vectors = [[npmi(one, other) for other in topic] for one in topic]
    total = [sum(column) for column in zip(*vectors, strict=True)]
    cosines = [
        sum(a * b for a, b in zip(vector, total, strict=True)) / (math.hypot(*vector) * math.hypot(*total))
        for vector in vectors
    ]
    return sum(cosines) / len(cosines)


def test_cv_of_tokens_is_what_its_definition_says(rng):
    words = [f"w{at}" for at in range(8)]
    texts = [[words[at] for at in rng.integers(8, size=size)] for size in (12, 5, 9, 0, 7, 3)]
    windows = [
        {*text[start : start + 6]} for text in texts for start in range(max(1, len(text) - 6 + 1))
    ]  # a text that is shorter than the window is one window, and so is an empty one
    topics = [["w0", "w3", "w5"], ["w1", "w2", "w7", "w4"]]
    expected = [written_out_cv(windows, topic) for topic in topics]
    np.testing.assert_allclose(cv_coherence(texts, topics, window_size=6), expected)


@pytest.mark.parametrize(
    ("documents", "words", "error", "message"),
    [
        ("a text", [["a"]], InvalidDataError, "got a text"),
        (["a text", "another"], [["a"]], InvalidDataError, "got a text"),
        ([["a", "b"]], [["a", "c"]], InvalidDataError, "'c' is in no document"),
        ([["a", "b"]], [["a"]], InvalidParameterError, "at least two top words"),
    ],
)
def test_cv_says_what_it_cannot_take(documents, words, error, message):
    with pytest.raises(error, match=message):
        cv_coherence(documents, words)
    with pytest.raises(InvalidParameterError, match="window_size"):
        cv_coherence([["a", "b"]], [["a", "b"]], window_size=0)


def test_diversity_is_the_fraction_of_distinct_words():
    assert topic_diversity([[0, 1], [2, 3]]) == 1.0
    assert topic_diversity([[0, 1], [0, 1]]) == 0.5
    assert topic_diversity([[0, 1], [0, 3]]) == 0.75
    with pytest.raises(ShapeError, match="at least one top word"):
        topic_diversity(np.zeros((0, 5), dtype=int))


def test_defaults_are_twenty_words_and_windows_of_110_tokens(rng):
    assert top_words(rng.random((2, 60))).shape == (2, 20)
    texts = [[f"w{at}" for at in rng.integers(6, size=size)] for size in (113, 20, 110)]
    texts[1] += ["x"] * 60 + ["w0"] * 33
    topics = [["w0", "w1", "x"]]
    expected = cv_coherence(texts, topics, window_size=110)
    np.testing.assert_allclose(cv_coherence(texts, topics), expected)
    windows = [{*text[start : start + 110]} for text in texts for start in range(max(1, len(text) - 109))]
    np.testing.assert_allclose(expected, [written_out_cv(windows, topics[0])])


def test_a_window_may_be_one_token():
    texts = [["a", "b", "a"], ["b"]]
    windows = [{"a"}, {"b"}, {"a"}, {"b"}]
    expected = written_out_cv(windows, ["a", "b"])
    np.testing.assert_allclose(cv_coherence(texts, [["a", "b"]], window_size=1), [expected])


@pytest.mark.parametrize("size", [True, 1.5, -1, 0])
def test_sizes_are_whole_numbers_above_zero(size):
    with pytest.raises(InvalidParameterError, match="window_size"):
        cv_coherence([["a", "b"]], [["a", "b"]], window_size=size)
    with pytest.raises(InvalidParameterError, match="n_words"):
        top_words(np.ones((2, 3)), size)


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        (np.zeros((0, 3)), ShapeError, "Expected documents of shape"),
        (np.ones((2, 2)), InvalidParameterError, "from 0 to 1, .* got 0 to 2"),
        ([[1.0, 1.0, 0.0]], InvalidDataError, "Word 2 is a top word"),
    ],
)
def test_documents_that_do_not_have_the_top_words(documents, error, message):
    with pytest.raises(error, match=message):
        umass_coherence(documents, [[0, 2]])
    with pytest.raises(InvalidParameterError, match="got -1 to 1"):
        umass_coherence(np.ones((2, 2)), [[-1, 1]])


def test_words_of_other_shapes_are_refused():
    for words in ([0, 1], [[0.0, 1.0]]):
        with pytest.raises(ShapeError, match=r"`nonneg.metrics.top_words` computes an array of integers"):
            topic_diversity(words)


def test_cv_at_its_ends():
    # Words that are never together have p = 0, of which there is no logarithm.
    windows = [["a", "b"], ["b", "c"], [], ["b"]]
    apart = written_out_cv([*map(set, windows)], ["a", "c", "b"])
    np.testing.assert_allclose(cv_coherence(windows, [["a", "c", "b"]]), [apart])
    # Words that are always together are as alike as can be.
    assert cv_coherence([["a", "b"], ["b", "a"], ["c"]], [["a", "b"]])[0] == pytest.approx(1.0)
