"""Successive projections: against a slow version, ties, and data that are all but explained."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hilbert
from tests.references.containers import MAIN_FORMS, as_container
from tests.references.simplex import successive_projections

from nonneg.data import as_data_matrix
from nonneg.iteration import StopReason
from nonneg.separable import select_anchors
from nonneg.separable.spa import spa


def picks(X, k, **options):
    return list(spa(as_data_matrix(X), k, **options).anchors)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("signed", [False, True])
def test_picks_are_those_of_the_slow_version(seed, signed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 30)) if signed else rng.gamma(0.5, size=(200, 30))
    assert picks(X, 20) == successive_projections(X, 20)


def test_scores_are_the_norms_of_the_residuals():
    X = np.random.default_rng(0).normal(size=(60, 15))
    result = spa(as_data_matrix(X), 6)
    basis = np.linalg.qr(X[result.anchors].T)[0]
    for k, score in enumerate(result.scores):
        left = X - (X @ basis[:, :k]) @ basis[:, :k].T
        assert score == pytest.approx(np.linalg.norm(left, axis=1).max(), rel=1e-12)
    left = X - (X @ basis) @ basis.T
    assert result.best_left == pytest.approx(np.linalg.norm(left, axis=1).max(), rel=1e-10)
    assert result.margin == pytest.approx(result.scores[-1] - result.best_left)
    assert result.history["score"] == pytest.approx(list(result.scores))


def test_directions_are_divided_by_their_squared_norms():
    # A library that subtracts the projection without dividing by the squared norm picks the twin at once.
    X = np.array([[10.0, 0.0, 0.0], [9.9, 0.1, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    assert picks(X, 3) == [0, 2, 3]
    assert picks(X / 100, 3) == [0, 2, 3]


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_ties_go_to_the_longest_point(form):
    # After the first pick the residuals of rows 1, 2 and 3 agree to a share of 1e-8 of their squares.
    X = np.array(
        [[9.0, 0, 0], [1, 2.0, 0], [3, 2.0 - 1e-9, 0], [2, 0, 2.0], [0, 0, 1.0], [0, 0, 0], [0, 0, 0.5]]
    )
    X = np.concatenate([X, np.full((3, 3), 0.1)])
    assert picks(as_container(X, form), 2) == [0, 2]
    # Without a tolerance only residuals that are equal are tied.
    assert picks(as_container(X, form), 2, tie_tol=0.0) == [0, 3]


@pytest.mark.parametrize("chunk", [1, 2, 3, 10])
def test_chunks_do_not_change_ties(chunk):
    da = pytest.importorskip("dask.array")
    X = np.zeros((10, 4))
    X[:, 0] = [5, 1, 2, 3, 4, 3, 2, 1, 4, 0]
    X[1:, 1] = 3.0 + 1e-8 * np.arange(9)
    X[0, 0] = 50.0
    expected = picks(X, 2)
    assert expected == [0, 8]
    assert picks(da.from_array(X, chunks=(chunk, 4)), 2) == expected


def test_ill_conditioned_points_are_told_apart():
    # Residuals fall to 1e-12 of the norms, where a difference of squares has no digits left.
    corners = hilbert(9)
    inside = np.random.default_rng(0).dirichlet(np.ones(9), 300) @ corners
    X = np.concatenate([inside, corners])
    result = spa(as_data_matrix(X), 9)
    assert set(result.anchors) == set(range(300, 309))
    assert result.scores[-1] < 1e-10 * result.scores[0]
    assert list(result.anchors) == successive_projections(X, 9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_search_ends_where_the_picks_span_the_data(dtype):
    rng = np.random.default_rng(0)
    X = (rng.random((100, 4)) @ rng.random((4, 30))).astype(dtype)
    result = spa(as_data_matrix(X), 10)
    assert result.n_components == 4
    assert result.stop_reason is StopReason.EXHAUSTED
    assert result.best_left < 1e-5
    with pytest.raises(ValueError, match="found 4 anchors, fewer than n_components=10"):
        select_anchors(X, 10, method="spa")


def test_entries_of_any_size():
    X = np.random.default_rng(1).gamma(0.5, size=(80, 12))
    expected = picks(X, 8)
    for factor in (1e-140, 1e-30, 1e30, 1e140):
        assert picks(X * factor, 8) == expected
