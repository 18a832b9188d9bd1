"""Encoders of documents, batches that are counted, and anchors that are named."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.decomposition import LatentDirichletAllocation

from nonneg.applications import TopicModel
from nonneg.applications.topics.given_anchors import anchor_places
from nonneg.applications.topics.proportions import (
    AllocationEncoder,
    GroupedEncoder,
    LeastSquaresEncoder,
    NMFEncoder,
    SplitEncoder,
    grouped,
    proportions_of,
    representative_rows,
)
from nonneg.applications.topics.seeds import STRENGTH, guided_problem, seed_places, seed_statement
from nonneg.applications.topics.term_weights import term_weights
from nonneg.exceptions import DataChangedWarning, InvalidParameterError, UnknownNameError


@pytest.fixture
def counts(rng):
    shares = np.repeat(np.eye(3), 20, axis=0) @ rng.dirichlet(np.full(12, 0.2), 3)
    return sp.csr_array(rng.poisson(40 * shares).astype(float))


def test_an_allocation_encodes_as_scikit_learns_does(counts):
    model = LatentDirichletAllocation(
        3, max_iter=5, doc_topic_prior=0.7, topic_word_prior=0.2, max_doc_update_iter=3, random_state=0
    ).fit(counts)
    encoder = AllocationEncoder.of(model)
    np.testing.assert_allclose(encoder(counts), model.transform(counts))
    expected = {name: value for name, value in model.get_params().items() if name != "random_state"}
    assert encoder.params == expected
    assert encoder.n_topics == 3
    np.testing.assert_array_equal(encoder.components, model.components_)
    assert (encoder.doc_topic_prior, encoder.topic_word_prior, encoder.n_iter) == (0.7, 0.2, 5)


def test_batches_and_documents_of_a_stream_are_counted(counts):
    model = TopicModel(3, method="nmf", random_state=0)
    for batch in range(1, 4):
        model.partial_fit(counts[:20])
        assert (model._stream.n_batches, model._stream.n_seen) == (batch, 20 * batch)


@pytest.mark.parametrize(("n_words", "error"), [(20, UnknownNameError), (21, InvalidParameterError)])
def test_words_of_a_small_vocabulary_are_listed(n_words, error):
    vocabulary = np.array([f"w{at}" for at in range(n_words)])
    counts = sp.csr_array(np.ones((3, n_words)))
    used = np.arange(1, n_words)
    with pytest.raises(error) as told:
        anchor_places(["w1", "x"], 2, vocabulary, used, counts)
    assert ("is not among the 21 words" in str(told.value)) == (n_words == 21)
    assert (type(told.value) is UnknownNameError) == (n_words == 20)
    np.testing.assert_array_equal(
        anchor_places(["w1", n_words - 1], 2, vocabulary, used, counts), [0, n_words - 2]
    )
    with pytest.raises(InvalidParameterError, match="'w0' is in 3 of 3 documents"):
        anchor_places(["w0", "w1"], 2, vocabulary, used, counts)
    with pytest.raises(InvalidParameterError, match="named twice"):
        anchor_places(["w1", 1], 2, vocabulary, used, counts)
    with pytest.raises(InvalidParameterError, match="anchors has 2 words, but n_topics=3"):
        anchor_places(["w1", "w2"], 3, vocabulary, used, counts)
    for wrong in (-1, n_words, True, 1.0):
        with pytest.raises(InvalidParameterError, match=f"from 0 to {n_words - 1}, got"):
            anchor_places([wrong], 1, vocabulary, used, counts)
    with pytest.raises(InvalidParameterError, match="the words have no names"):
        anchor_places(["w1"], 1, None, used, counts)


def test_seed_words_add_mean_documents(counts):
    weights = counts * 1.0
    seeds = [np.array([0, 1]), np.array([5])]
    X, W, H = guided_problem(counts, weights, seeds, 2, 0)
    dense = weights.toarray()
    profiles = np.stack([dense.T @ dense[:, places].sum(axis=1) for places in seeds])
    profiles /= np.linalg.norm(profiles, axis=1, keepdims=True)
    np.testing.assert_allclose(H, profiles)
    size = np.sqrt(STRENGTH * (counts.toarray() ** 2).sum() / 2)
    np.testing.assert_allclose(X.toarray(), np.vstack([counts.toarray(), size * profiles]))
    assert W.shape == (62, 2)
    assert W.min() >= 0
    X, W, H = guided_problem(counts, weights, seeds, 3, 0)
    assert H.shape == (3, 12)
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0)
    np.testing.assert_allclose(H[:2], profiles)


def test_documents_are_encoded_by_their_own_least_squares_problems(counts, rng):
    components, inverse = rng.random((3, 12)), rng.random(12)
    for given, weights in ((None, counts), (inverse, term_weights(counts, inverse, unit_rows=True))):
        encoder = LeastSquaresEncoder(components, given)
        expected = [nnls(components.T, row)[0] for row in weights.toarray()[:4]]
        np.testing.assert_allclose(encoder(counts)[:4], expected, atol=1e-8)
        assert encoder.n_topics == 3


class Halves:
    """An encoder of two topics: the counts of the first and of the second half of the words."""

    n_topics = 2
    components_ = np.zeros((2, 4))

    def __call__(self, counts):
        dense = counts.toarray()
        half = dense.shape[1] // 2
        return np.column_stack([dense[:, :half].sum(axis=1), dense[:, half:].sum(axis=1)])

    transform = __call__


def test_weights_are_scaled_merged_and_divided():
    X = sp.csr_array(np.array([[1.0, 3.0, 0.0, 4.0], [0.0, 0.0, 2.0, 6.0], [5.0, 0.0, 0.0, 0.0]]))
    plain = np.array([[4.0, 4.0], [0.0, 8.0], [5.0, 0.0]])
    np.testing.assert_array_equal(NMFEncoder(Halves())(X), plain)
    np.testing.assert_array_equal(NMFEncoder(Halves(), np.array([2.0, 0.5]))(X), plain * [2.0, 0.5])
    assert NMFEncoder(Halves()).n_topics == 2
    # Two topics in another order, and all of them as one.
    swapped = grouped(Halves(), np.array([1, 0]))
    np.testing.assert_array_equal(swapped(X), plain[:, ::-1])
    once = grouped(swapped, np.array([0, 0]))
    assert isinstance(once.base, Halves)
    np.testing.assert_array_equal(once(X), plain.sum(axis=1, keepdims=True))
    assert (swapped.n_topics, once.n_topics) == (2, 1)
    np.testing.assert_array_equal(grouped(swapped, np.array([2, 1])).groups, [1, 2])
    # The second topic is divided by its words 2 and 3, and by the prior where neither occurs.
    for topic, words, parts in (
        (1, [2, 3], [[0.0, 4.0], [2.0, 6.0], [0.0, 0.0]]),
        (0, [0, 1], [[1.0, 3.0], [0.0, 0.0], [5.0, 0.0]]),
        (1, [0, 1], [[1.0, 3.0], [2.0, 6.0], [0.0, 0.0]]),
    ):
        split = SplitEncoder(Halves(), Halves(), np.array(words), topic, np.array([0.25, 0.75]))
        assert split.n_topics == 3
        expected = [plain[:, :1], parts] if topic == 1 else [parts, plain[:, 1:]]
        np.testing.assert_allclose(split(X), np.hstack(expected))
    nothing = split(sp.csr_array(np.array([[1.0, 0.0, 0.0, 0.0]])))
    np.testing.assert_array_equal(nothing, [[1.0, 0.0, 0.0]])
    assert GroupedEncoder(split, np.array([0, 1, 1])).n_topics == 2


def test_proportions_sum_to_one_and_documents_without_topics_are_counted():
    used = sp.csr_array(np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [3.0, 0.0], [0.0, 1.0]]))
    weights = np.array([[1.0, 3.0], [0.5, 0.5], [0.5, 0.5], [0.0, -1.0], [0.0, 2.0]])
    with pytest.warns(DataChangedWarning) as said:
        found = proportions_of(weights, used, np.float32)
    assert str(said[0].message) == (
        "2 of 5 documents contain none of the 2 words used, and 1 of 5 documents contain only words that are "
        "in no topic: their topic proportions are zero."
    )
    np.testing.assert_array_equal(found, [[0.25, 0.75], [0, 0], [0, 0], [0, 0], [0, 1]])
    assert found.dtype == np.float32
    for rows, words in (([0, 1], "1 of 2 documents contain none"), ([3, 4], "1 of 2 documents contain only")):
        with pytest.warns(DataChangedWarning, match=rf"^{words}[^:]*: their") as said:
            proportions_of(weights[rows], used[rows], np.float64)
        assert ", and " not in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proportions_of(weights[[0, 4]], used[[0, 4]], np.float64)


def test_long_documents_represent_a_topic_before_short_ones():
    proportions = np.array([[0.9, 0.1], [0.6, 0.4], [1.0, 0.0], [0.5, 0.5]])
    said = np.array([[1.0, 4.0], [9.0, 1.0], [0.25, 9.0], [1.0, 9.0]])
    # Proportion times root: 0.9, 1.8, 0.5, 0.5 and 0.2, 0.4, 0, 1.5; of equal ones the first.
    for n, expected in ((1, [[1], [3]]), (3, [[1, 0, 2], [3, 1, 0]]), (9, [[1, 0, 2, 3], [3, 1, 0]])):
        assert [rows.tolist() for rows in representative_rows(proportions, said, n)] == expected
    assert [len(rows) for rows in representative_rows(proportions, said, 0)] == [1, 1]


def test_seed_words_are_found_among_the_used_ones():
    vocabulary, words = np.array(["Ball", "game", "law", "court", "the"]), np.array([1, 2, 3])
    counts = sp.csr_array(np.array([[0.0, 1, 1, 1, 1], [1, 1, 0, 1, 1]]))
    seeds = {" sport ": ["game", "GAME ", 1], "law": ("law", 3, "court")}
    found = seed_places(seeds, 2, vocabulary, words, counts)
    assert {name: places.tolist() for name, places in found.items()} == {"sport": [0], "law": [1, 2]}
    with pytest.warns(DataChangedWarning) as said:
        found = seed_places({"a": ["Ball", "the", "zoo", "game"]}, 1, vocabulary, words, counts)
    assert found["a"].tolist() == [0]
    assert str(said[0].message) == (
        "Seed words without effect; not among the 5 words: 'zoo' (a); too rare or too common to be used (see "
        "min_df and max_df): 'Ball' (a; in 1 documents), 'the' (a; in 2 documents)."
    )
    with pytest.warns(DataChangedWarning, match="without effect; too rare.*'the'") as said:
        seed_places({"a": ["the", "game"]}, 1, vocabulary, words, counts)
    assert "not among" not in str(said[0].message)
    for wrong, message in (
        ({"a": ["game"], "b": ["law"]}, "names 2 topics, but n_topics=1"),
        ({"a": [-1]}, "columns from 0 to 4, got -1"), ({"a": [5]}, "columns from 0 to 4, got 5"),
        ({"a": [True]}, "columns from 0 to 4, got True"), ({"a": [1.0]}, "got 1.0"),
        ({" ": ["game"]}, "names of topics are words"), ({"a": 3}, "must be a list of words, got 3"),
        ({"a": ["the"]}, "among the 3 words used"), (["a"], "must be a dict"),
        ({"a": ["zoo"]}, "None of the seed words of 'a' is among the 3 words used .*: 'zoo'"),
    ):  # fmt: skip
        with pytest.raises(InvalidParameterError, match=message):
            seed_places(wrong, 1, vocabulary, words, counts)
    with pytest.raises(InvalidParameterError, match="None of the seed words"):
        seed_places({"a": ["game"]}, 1, None, words, counts)


def test_seed_words_belong_to_a_topic_where_their_weight_is_largest():
    components = np.array([[3.0, 2.0, 1.0, 0.0], [1.0, 2.0, 4.0, 0.0], [0.0, 0.0, 0.5, 0.0]])
    # Word 0 is the first topic's, word 2 the second's; word 1 is equal in both, word 3 in none.
    for seeds, number, mean, name in (
        ({"a": [0, 1]}, 0.5, 0.5, "a"), ({"a": [0], "b": [2]}, 1.0, 1.0, "a"),
        ({"a": [0], "b": [2, 3, 1]}, 1 / 3, 2 / 3, "b"), ({"a": [2]}, 0.0, 0.0, "a"),
    ):  # fmt: skip
        found = seed_statement(components, {key: np.array(at) for key, at in seeds.items()})
        assert found.number == pytest.approx(number)
        assert found.quantities["mean_share"] == pytest.approx(mean)
        assert found.holds == (number >= 0.5)
        assert f"Of the seed words of {name!r}, {number:.0%} have" in found.sentence
        assert ("in the others" in found.sentence) == (len(seeds) > 1)
    alone = seed_statement(components[:1], {"a": np.array([0, 3])})  # a single topic
    assert alone.number == 0.5
