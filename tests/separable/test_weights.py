"""Weights of the anchors: exact, on every container, each row on its own."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import MAIN_FORMS, as_container, plain
from tests.references.least_squares import nonnegative_rows
from tests.references.simplex import simplex_kkt

from nonneg.data import as_data_matrix
from nonneg.separable.weights import anchor_weights, rows_sum_to_one


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_weights_that_sum_to_one(form, noisy):
    W = plain(anchor_weights(as_data_matrix(as_container(noisy.X, form)), noisy.H, sum_to_one=True))
    np.testing.assert_allclose(W.sum(axis=1), 1.0, atol=1e-12)
    assert simplex_kkt(W, noisy.H @ noisy.H.T, noisy.X @ noisy.H.T) < 1e-10


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_nonnegative_weights(form, noisy):
    W = plain(anchor_weights(as_data_matrix(as_container(noisy.X, form)), noisy.H, sum_to_one=False))
    np.testing.assert_allclose(W, nonnegative_rows(noisy.H.T, noisy.X), atol=1e-9)


def test_planted_weights_come_back(clean):
    for sum_to_one in (False, True):
        W = anchor_weights(as_data_matrix(clean.X), clean.H, sum_to_one=sum_to_one)
        np.testing.assert_allclose(W, clean.W, atol=1e-10)


def test_points_far_from_the_origin_keep_their_digits(clean):
    far = 1e5
    W = anchor_weights(as_data_matrix(clean.X + far), clean.H + far, sum_to_one=True)
    np.testing.assert_allclose(W, clean.W, atol=1e-8)


def test_a_row_does_not_depend_on_its_neighbors(noisy):
    data = as_data_matrix(noisy.X)
    alone = as_data_matrix(noisy.X[5:6])
    for sum_to_one in (False, True):
        together = anchor_weights(data, noisy.H, sum_to_one=sum_to_one)[5:6]
        np.testing.assert_allclose(
            anchor_weights(alone, noisy.H, sum_to_one=sum_to_one), together, atol=1e-12
        )


def test_single_precision_stays_single(clean):
    data = as_data_matrix(clean.X.astype(np.float32))
    W = anchor_weights(data, clean.H.astype(np.float32), sum_to_one=True)
    assert W.dtype == np.float32
    np.testing.assert_allclose(W, clean.W, atol=1e-4)


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_sums_of_rows(form):
    X = np.random.default_rng(0).dirichlet(np.ones(5), 20)
    assert rows_sum_to_one(as_data_matrix(as_container(X, form)))
    X[3] *= 1.001
    assert not rows_sum_to_one(as_data_matrix(as_container(X, form)))
