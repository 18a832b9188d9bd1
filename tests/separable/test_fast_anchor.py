"""FastAnchor: both rounds against a slow version."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hilbert
from tests.references.containers import MAIN_FORMS, as_container

from nonneg.data import as_data_matrix
from nonneg.separable.fast_anchor import fast_anchor


def distances(X, others):
    """Return the distances of points from the affine span of some of them."""
    left = X - X[others[0]]
    if len(others) > 1:
        basis = np.linalg.qr((X[others[1:]] - X[others[0]]).T)[0]
        for _ in range(2):
            left = left - left @ basis @ basis.T
    return np.linalg.norm(left, axis=1)


def by_hand(X, k):
    """Return the picks of Algorithm 4, and those of its first round."""
    first = [int(np.argmax(np.linalg.norm(X, axis=1)))]
    while len(first) < k:
        first.append(int(np.argmax(distances(X, first))))
    picks = list(first)
    for place in range(k):
        picks[place] = int(np.argmax(distances(X, picks[:place] + picks[place + 1 :])))
    return picks, first


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(6))
def test_picks_are_those_of_the_slow_version(seed, dtype):
    X = np.random.default_rng(seed).random((120, 9)).astype(dtype)
    picks, first = by_hand(X.astype(np.float64), 7)
    assert picks != first
    result = fast_anchor(as_data_matrix(X), 7)
    assert result.anchors.tolist() == picks
    assert result.details["changed_in_clean_up"] == np.sum(np.array(picks) != first)
    assert fast_anchor(as_data_matrix(X), 7, clean_up=False).anchors.tolist() == first


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_every_container_has_the_same_picks(form):
    X = np.random.default_rng(6).random((60, 8))
    picks, _first = by_hand(X, 5)
    result = fast_anchor(as_data_matrix(as_container(X, form)), 5)
    assert result.anchors.tolist() == picks


@pytest.mark.parametrize("k", [2, 3])
def test_few_anchors(k):
    X = np.random.default_rng(7).normal(size=(50, 4))
    picks, _first = by_hand(X, k)
    result = fast_anchor(as_data_matrix(X), k)
    assert result.anchors.tolist() == picks


def test_a_first_round_that_ends_early_is_checked_too():
    # Points of a plane have three anchors, however many are asked for.
    rng = np.random.default_rng(8)
    X = rng.random((40, 3)) @ rng.random((3, 10))
    X /= X.sum(axis=1, keepdims=True)
    result = fast_anchor(as_data_matrix(X), 6)
    picks, _first = by_hand(X, 3)
    assert result.anchors.tolist() == picks


def test_anchors_that_are_all_but_in_the_span_of_the_others():
    corners = hilbert(8)
    X = np.concatenate([np.random.default_rng(0).dirichlet(np.ones(8), 100) @ corners, corners])
    result = fast_anchor(as_data_matrix(X), 8)
    assert set(result.anchors) == set(range(100, 108))
    assert result.scores[-1] < 1e-8 * result.scores[0]


def test_copies_of_anchors_change_nothing():
    X = np.random.default_rng(9).dirichlet(np.ones(6), 80)
    X = np.concatenate([np.eye(6), X, np.eye(6)])
    result = fast_anchor(as_data_matrix(X), 6)
    assert sorted(result.anchors) == list(range(6))


@pytest.mark.parametrize("seed", range(3))
def test_picks_far_from_zero_are_those_of_the_slow_version(seed):
    # Squared norms exceed squared distances by 15 digits.
    X = 1e7 + np.random.default_rng(seed).random((60, 6))
    picks, first = by_hand(X, 5)
    result = fast_anchor(as_data_matrix(X), 5)
    assert result.anchors.tolist() == picks
    assert fast_anchor(as_data_matrix(X), 5, clean_up=False).anchors.tolist() == first
