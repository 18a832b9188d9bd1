"""Certificate of cones of a stream: exact under the assumption, bounded otherwise, in any order."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from nonneg import ConeNMF
from nonneg.cones.streaming import SKETCH_SIZE, ConeStream, update_stream
from nonneg.data import as_data_matrix
from nonneg.datasets import circular_cones


def streamed(X, n_cones, cuts, weights=None):
    state = ConeStream.empty(n_cones, X.shape[1])
    edges = [0, *sorted(cuts), X.shape[0]]
    for start, stop in pairwise(edges):
        part = None if weights is None else weights[start:stop]
        if stop > start:
            state = update_stream(state, as_data_matrix(X[start:stop], weights=part))
    return state


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans())
@settings(max_examples=60, deadline=None)
def test_cones_are_never_mixed(seed, piece, sparse):
    """On shuffled streams cut anywhere, clusters are the cones, as long as these satisfy (2)."""
    rng = np.random.default_rng(seed)
    planted = circular_cones(80, 25, 4, size_angle=0.15, rng=rng)
    order = rng.permutation(80)
    X, labels = planted.X[order], planted.labels[order]
    n_cones = 4 + int(rng.integers(2))
    state = streamed(scipy.sparse.csr_array(X) if sparse else X, n_cones, range(piece, 80, piece))
    squares = np.array([np.sum(X[labels == cone] ** 2) for cone in range(4)])
    cones_of_centroids = labels[state.centroid_indices[: state.n_found]]
    if n_cones == np.unique(labels).size:
        assert sorted(cones_of_centroids) == sorted(np.unique(labels))
        np.testing.assert_array_equal(state.counts, np.bincount(labels, minlength=4)[cones_of_centroids])
        np.testing.assert_allclose(state.squared_norms, squares[cones_of_centroids])
    # With a cone to spare a cone may have two centroids; then their parts make up the whole cone.
    totals = np.zeros(4)
    np.add.at(totals, cones_of_centroids, state.squared_norms[: state.n_found])
    np.testing.assert_allclose(totals, squares)


@pytest.mark.parametrize("seed", range(5))
def test_one_point_at_a_time_is_the_rule_written_down(seed):
    """Against the plain rule: add the point, then join the two nearest, keeping what reaches less far."""
    X = np.random.default_rng(seed).gamma(0.4, size=(60, 6)) + 1e-9
    angles = np.arccos(np.clip(unit(X) @ unit(X).T, -1, 1))
    state = streamed(X, 5, range(1, 60))
    centers, radii, counts, widest = [], [], [], 0.0
    for at in range(60):
        centers.append(at)
        radii.append(0.0)
        counts.append(1)
        if len(centers) <= 5:
            continue
        pairs = [(angles[centers[i], centers[j]], i, j) for j in range(6) for i in range(j)]
        angle, i, j = min(pairs)
        reach = [max(radii[i], angle + radii[j]), max(radii[j], angle + radii[i])]
        stays, goes = (i, j) if reach[0] <= reach[1] else (j, i)
        radii[stays] = min(*reach, np.pi / 2)
        counts[stays] += counts[goes]
        widest = max(widest, angle)
        del centers[goes], radii[goes], counts[goes]
    order = np.argsort(state.centroid_indices)
    np.testing.assert_array_equal(state.centroid_indices[order], centers)
    np.testing.assert_array_equal(state.counts[order], counts)
    np.testing.assert_allclose(state.radii[order], radii, atol=1e-7)
    assert state.largest_merge_angle == pytest.approx(widest)


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(4, 8), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_bounds_on_any_points(seed, n_cones, n_points, piece):
    """Radii are true, no clustering beats the widest join, and the factor 2 K - 1 holds: all tried out."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.4, size=(n_points, 3)) + 1e-9
    state = streamed(X, n_cones, range(piece, n_points, piece))
    angles = np.arccos(np.clip(unit(X) @ unit(X).T, -1, 1))
    best = min(
        max(
            (angles[i, j] for i in range(n_points) for j in range(i) if groups[i] == groups[j]),
            default=0.0,
        )
        for groups in product(range(n_cones), repeat=n_points)
    )
    assert state.largest_merge_angle <= best + 1e-7
    # Every point is within the radius of some centroid, and no radius exceeds the proven factor.
    reach = angles[:, state.centroid_indices[: state.n_found]] - state.radii[None, : state.n_found]
    assert reach.min(axis=1).max() <= 1e-7
    actual = angles[:, state.centroid_indices[: state.n_found]].min(axis=1).max()
    assert actual <= (2 * n_cones - 1) * best + 1e-7


@pytest.mark.parametrize("piece", [7, 64, 300])
def test_directions_are_the_best_but_for_one_part_in_eight(piece, rng):
    planted = circular_cones(300, 40, 3, size_angle=0.25, rng=rng)
    state = streamed(planted.X, 3, range(piece, 300, piece))
    directions, squares = state.directions()
    for cone in range(3):
        X = planted.X[planted.labels == planted.labels[state.centroid_indices[cone]]]
        values = np.linalg.svd(X, compute_uv=False) ** 2
        left = np.sum(X * X) - np.sum((X @ directions[cone]) ** 2)
        assert left <= state.squared_norms[cone] - squares[cone] + 1e-9
        assert left <= (1 + 1 / SKETCH_SIZE) * values[1:].sum() + 1e-9


def test_fewer_directions_than_cones(rng):
    X = np.outer(rng.random(20) + 0.5, [1.0, 2.0, 0.0])
    X[10:] = np.outer(rng.random(10) + 0.5, [0.0, 1.0, 1.0])
    state = streamed(X, 4, [3, 12])
    assert state.n_found == 2
    assert state.largest_merge_angle == 0
    np.testing.assert_array_equal(state.counts, [10, 10, 0, 0])
    directions, _ = state.directions()
    np.testing.assert_array_equal(directions[2:], 0)
    np.testing.assert_array_equal(state.centroids[2:], 0)


def test_zeros_and_weights(rng):
    X = circular_cones(60, 20, 3, size_angle=0.1, rng=rng).X
    X[[0, 5, 30]] = 0
    weights = rng.integers(0, 3, 60).astype(float)
    state = streamed(X, 3, [10, 11, 40], weights)
    assert state.n_seen == 60
    assert state.counts.sum() == np.sum((weights > 0) & X.any(axis=1))
    assert state.squared_norms.sum() == pytest.approx(np.sum(weights[:, None] * X * X))
    assert not set(state.centroid_indices) & {0, 5, 30}
    assert streamed(np.zeros((4, 5)), 2, [2]).n_found == 0


def test_single_precision_and_one_cone(rng):
    X = rng.random((50, 8)).astype(np.float32)
    state = streamed(X, 1, [13])
    assert state.counts[0] == 50
    # The radius also counts cosines in float32, which a BLAS rounds in its own way.
    rounding = 4 * float(np.finfo(np.float32).eps)
    assert 0 < state.largest_merge_angle == pytest.approx(state.radii[0], abs=rounding)
    scaled = np.concatenate([X[:3] * np.float32(factor) for factor in (1, 3, 0.1)])
    np.testing.assert_array_equal(np.sort(streamed(scaled, 5, [4]).counts), [0, 0, 3, 3, 3])


def test_the_memory_before_is_not_changed(rng):
    X = rng.random((40, 6))
    before = streamed(X[:20], 3, [])
    copy = before.copy()
    update_stream(before, as_data_matrix(X[20:]))
    for name, value in vars(copy).items():
        np.testing.assert_array_equal(getattr(before, name), value)


@pytest.mark.parametrize("n_cones", [1, 2, 4])
def test_radii_and_spread_hold_in_float32(n_cones):
    """Cosines of float32 know angles to some 1e-4; what is said of the angles is not that coarse."""
    rng = np.random.default_rng(3)
    center = rng.random(12) + 0.5
    X = (center + 1e-5 * rng.random((60, 12))).astype(np.float32)
    state = streamed(X, n_cones, range(7, 60, 7))
    exact = unit(X.astype(np.float64))
    chords = np.linalg.norm(exact[:, None] - state.centroids[None, : state.n_found], axis=2)
    angles = 2 * np.arcsin(chords / 2)
    # Some centroid holds each point, and a clustering by the found centroids has no smaller diameter.
    assert np.all((angles <= state.radii[: state.n_found] + 1e-12).any(axis=1))
    nearest = np.argmin(chords, axis=1)
    between = 2 * np.arcsin(np.linalg.norm(exact[:, None] - exact[None], axis=2) / 2)
    together = nearest[:, None] == nearest[None, :]
    assert state.largest_merge_angle <= np.max(between[together]) + 1e-12


@pytest.mark.parametrize("bounds", [False, True])
def test_after_a_fit_radii_are_what_is_known(bounds, rng):
    """A right angle, or the angle of the centroid to the axis of a cone and the size of that cone."""
    X = circular_cones(30, 6, 2, size_angle=0.2, rng=1).X
    model = ConeNMF(2, bounds=bounds).fit(X)
    radii = model._stream.radii
    if not bounds:
        np.testing.assert_allclose(radii, np.pi / 2)
        return
    apart = np.arccos(np.clip(np.sum(model.centroids_ * model.basis_, axis=1), -1.0, 1.0))
    np.testing.assert_allclose(radii, apart + model.size_angles_, atol=1e-7)
