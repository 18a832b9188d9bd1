"""The word-word correlation as an operator, and what is built on it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from reproduction.data import text_like

from nonneg.applications import TopicModel
from nonneg.applications.topics.anchor_words import (
    _one_step_after,
    find_anchor_words,
    merit_settings,
    reduced_words,
    start_iteration,
)
from nonneg.applications.topics.term_weights import (
    balanced_documents,
    informative_words,
    inverse_frequencies,
    term_weights,
)
from nonneg.applications.topics.topic_recovery import document_weights, rows_of_sum_one, topics_of_anchors
from nonneg.applications.topics.word_correlation import WordCorrelation
from nonneg.exceptions import UnsupportedError


@pytest.fixture(scope="module")
def counts():
    made = text_like(80, 250, 3, mean_length=50.0, rng=3)
    counts = sp.csr_array(made.X)
    return sp.csr_array(counts[:, informative_words(counts)])


@pytest.fixture(scope="module")
def weights(counts):
    return term_weights(counts, inverse_frequencies(counts))


@pytest.mark.parametrize("normalized", [False, True])
def test_the_operator_is_the_matrix(weights, normalized, rng):
    dense = weights.toarray()
    P = dense.T @ dense / len(dense)
    if normalized:
        P = P / P.sum(axis=1, keepdims=True)
    found = WordCorrelation(weights, normalized=normalized)
    n = found.shape[0]
    right = rng.random((n, 3))
    np.testing.assert_allclose(found.times(right), P @ right)
    np.testing.assert_allclose(found.transposed_times(right), P.T @ right)
    np.testing.assert_allclose(found.take_rows([5, 2]), P[[5, 2]])
    np.testing.assert_allclose(found.dense_rows(3, 9), P[3:9])
    np.testing.assert_allclose(found.select(slice(1, 4)).csr.toarray(), P[1:4])
    assert found.squared_norm() == pytest.approx(np.sum(P * P))
    assert found.total() == pytest.approx(P.sum())
    assert found.count_nonzero() == np.count_nonzero(P)
    assert found.extremes() == pytest.approx((P.min(), P.max()))


def test_weights_are_those_of_the_paper(counts, weights):
    dense = counts.toarray()
    frequency = np.sum(dense > 0, axis=0)
    assert frequency.min() >= 2
    assert frequency.max() < len(dense)
    logarithm = np.where(dense > 0, 1 + np.log(np.maximum(dense, 1)), 0.0)
    np.testing.assert_allclose(weights.toarray(), logarithm * np.log(len(dense) / frequency))


def test_reduced_words_are_products_with_leading_singular_vectors(weights):
    P = WordCorrelation(weights, normalized=True).dense_rows(0, weights.shape[1])
    _, _, right = np.linalg.svd(P)
    expected = P @ right[:6].T
    found = reduced_words(weights, 6)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


def test_topics_solve_the_nonnegative_problem_of_the_whole_correlation(weights):
    anchors = np.array([4, 17, 60])
    P = WordCorrelation(weights).dense_rows(0, weights.shape[1])
    expected = np.array([scipy.optimize.nnls(P[:, anchors], column)[0] for column in P.T]).T
    found = topics_of_anchors(weights, anchors)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


def test_documents_solve_their_own_problem(counts, rng):
    topics = rng.random((3, counts.shape[1]))
    found = document_weights(counts, topics)
    for row in (0, 7):
        expected = scipy.optimize.nnls(topics.T, counts[[row]].toarray()[0])[0]
        np.testing.assert_allclose(found[row], expected, atol=1e-8)


def test_balanced_documents_are_scaled_by_their_similarities(weights):
    dense = weights.toarray()
    degrees = (dense @ dense.T).sum(axis=1)
    expected = dense / np.sqrt(np.where(degrees > 0, degrees, 1))[:, None]
    np.testing.assert_allclose(balanced_documents(weights).toarray(), expected)


@pytest.mark.parametrize("method", ["spa", "xray", "fast-anchor", "merit", "merit-0"])
def test_every_search_finds_as_many_words_as_asked_for(weights, method):
    points = reduced_words(weights, 6)
    found = find_anchor_words(points, 3, method=method)
    assert len(set(found.anchors.tolist())) == 3
    if method == "merit-0":
        assert found.lam == 0


def test_merit_goes_on_from_the_anchors_of_successive_projections(weights):
    points = reduced_words(weights, 6)
    first = find_anchor_words(points, 3, method="spa").anchors
    t = start_iteration(points, first)
    found = find_anchor_words(points, 3, method="merit")
    assert found.facts["t_init"] == t
    assert found.n_iter <= 100 - t
    # The authors look at the gap of the iterate before a step: one more step.
    longer = find_anchor_words(points, 3, method="merit", as_published=True)
    if found.gap is not None and found.gap <= 0.25 and found.n_iter > 0:
        assert longer.n_iter == found.n_iter + 1


def test_an_option_that_xray_does_not_have_is_refused(weights):
    with pytest.raises(UnsupportedError, match="method='xray' does not accept lam"):
        find_anchor_words(reduced_words(weights, 6), 3, method="xray", lam=1.0)


def test_given_anchors_take_no_iterations(rng):
    counts = rng.poisson(1.0, (30, 8))
    model = TopicModel(2, method="spa", anchors=[1, 4], min_df=1).fit(counts)
    assert model.n_iter_ == 0
    np.testing.assert_array_equal(model.anchor_indices_, [1, 4])


def points_around(n, off):
    """Return two corners, points between them, and one at a distance of ``off * sqrt(2)``."""
    points = np.full((n, 2), 0.5)
    points[:2] = np.eye(2)
    points[2] += off
    return points


@pytest.mark.parametrize(
    ("n", "off", "expected"),
    [
        (102, 0.1, 70),
        (102, 0.5, 13),
        (102, 3.0, 1),
        (102, 1e-4, 99),
        (102, 0.0, 99),
        (5, 0.5, 2),
        (5, 1.0, 1),
    ],
)
def test_the_iteration_of_the_start_follows_from_its_residuals(n, off, expected):
    # The whole part of sqrt(n) / ||R||, counted from zero, and at most the last one.
    assert start_iteration(points_around(n, off), np.array([0, 1])) == expected


def test_the_settings_of_merit_are_the_papers():
    points = points_around(12, 0.3)
    found = merit_settings(points, 2, {})
    assert sorted(found.pop("init").tolist()) == [0, 2]  # those of successive projections
    t = found["t_init"]
    assert found == {
        "lam": 5e-7, "mu": 1e-5, "steps": "open-loop", "choice": "row-maxima", "t_init": t,
        "max_iter": 100 - t, "tol": 0.25,
    }  # fmt: skip
    for given in ({"init": [0, 1]}, {"t_init": 3}):
        found = merit_settings(points, 2, given)
        assert (found["max_iter"], found["tol"]) == (100, 0.25)
        assert "init" not in found
    published = merit_settings(points, 2, {}, as_published=True)
    assert (published["tol"], published["ties"]) == (0.0, "first")


def test_the_authors_stop_one_step_after_the_gap():
    stop = _one_step_after(0.25)
    gaps = [0.9, 0.25, 0.2, 0.3, 0.1]
    assert [stop(SimpleNamespace(history={"gap": [gap]})) for gap in gaps] == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_options_of_the_search_count_more_than_the_papers(weights):
    points = reduced_words(weights, 6)
    found = find_anchor_words(points, 3, method="merit", lam=1e-3, max_iter=2, tol=0.0)
    assert (found.lam, found.n_iter) == (1e-3, 2)
    assert find_anchor_words(points, 3, method="merit", max_iter=2).lam == 5e-7
    assert find_anchor_words(points, 3, method="MERIT-0".lower(), max_iter=2).lam == 0.0


def test_rows_are_divided_by_their_sums():
    found = rows_of_sum_one(np.array([[1.0, 3.0], [0.0, 0.0], [0.1, 0.1]]))
    np.testing.assert_allclose(found, [[0.25, 0.75], [0.0, 0.0], [0.5, 0.5]])
