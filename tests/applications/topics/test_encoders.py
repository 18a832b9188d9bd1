"""Encoders of documents, batches that are counted, and anchors that are named."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation

from nonneg.applications import TopicModel
from nonneg.applications.topics.given_anchors import anchor_places
from nonneg.applications.topics.proportions import AllocationEncoder
from nonneg.applications.topics.seeds import STRENGTH, guided_problem
from nonneg.exceptions import InvalidParameterError, UnknownNameError


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
