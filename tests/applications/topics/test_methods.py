"""The ways to find topics: what they are given, and what they make of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from nonneg.applications import TopicModel
from nonneg.applications.topics.methods import topics_of_anchors
from nonneg.exceptions import UnsupportedError


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), rng.dirichlet(np.full(6, 3.0))) + 0.01
    return sp.csr_array(
        rng.multinomial(25, (topics / topics.sum(axis=1, keepdims=True))[np.arange(45) % 3]) * 1.0
    )


def test_options_of_iterations_reach_the_method(counts):
    told = []
    TopicModel(3, max_iter=2, tol=0.0, random_state=0, callback=lambda now: told.append(now.n_iter)).fit(
        counts
    )
    assert max(told) == 2
    with pytest.raises(UnsupportedError, match="does not accept device"):
        TopicModel(3, device="cuda", method="spa").fit(counts)
    selected = TopicModel([3], random_state=0).fit(counts)
    assert selected.selection_ is None
    assert selected.edits_ == []


def test_weights_are_recognized_and_not_weighted_again(counts):
    weights = TfidfTransformer().fit_transform(counts)
    model = TopicModel(3, random_state=0).fit(weights)
    assert "not whole numbers" in model.certificate_["documents-weighted"].sentence
    assert "documents-weighted" not in TopicModel(3, random_state=0).fit(counts).certificate_
    # Weights that are used as they are follow a change of scale, which a logarithm of them would not.
    scaled = TopicModel(3, random_state=0).fit(100.5 * weights)
    np.testing.assert_allclose(scaled.topics_, model.topics_, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(scaled.transform(100.5 * weights), model.transform(weights), atol=1e-4)
    assert np.array_equal(np.sort(np.bincount(model.predict(weights))), [15, 15, 15])


def test_topics_of_anchors_solve_the_problem_of_the_whole_correlation(counts):
    import scipy.optimize

    anchors = np.array([1, 7, 13])
    dense = counts.toarray()
    P = dense.T @ dense / len(dense)
    expected = np.array([scipy.optimize.nnls(P[:, anchors], column)[0] for column in P.T]).T
    topics = topics_of_anchors(counts, anchors)
    np.testing.assert_allclose(topics, expected / expected.sum(axis=1, keepdims=True), atol=1e-9)
