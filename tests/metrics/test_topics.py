"""Coherence and overlap of topics, against sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.metrics import npmi_coherence, shared_words, similarity_count, top_words, umass_coherence


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


def test_shared_words_and_their_count():
    words = [[0, 1, 2], [2, 3, 0], [5, 6, 2]]
    assert shared_words(words).tolist() == [[3, 2, 1], [2, 3, 1], [1, 1, 3]]
    assert similarity_count(words) == 4


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
