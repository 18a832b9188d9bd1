"""Greedy clustering of directions: the paper's Algorithm 1 on every container, and odd data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import datasets
from nonneg.cones.clustering import cone_clusters
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError

CONTAINERS = {
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "array_api_strict": lambda X: pytest.importorskip("array_api_strict").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(17, -1)),
    "dask csr": lambda X: (
        pytest.importorskip("dask.array").from_array(X, chunks=(23, -1)).map_blocks(sp.csr_array)
    ),
}


def plain(array):
    """Bring an array home as NumPy."""
    return np.asarray(array.compute() if hasattr(array, "compute") else array)


def by_hand(X, k, first):
    """Algorithm 1 as it is printed: normalized points, all products."""
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    picks = [first]
    while len(picks) < k:
        picks.append(int(np.argmin((units @ units[picks].T).max(axis=1))))
    return picks, np.argmax(units @ units[picks].T, axis=1)


@pytest.fixture
def rows(rng):
    """A hundred rows without structure, half of the entries zero."""
    X = rng.gamma(1.0, size=(100, 12)) * (rng.random((100, 12)) < 0.5)
    return X + 0.05 * rng.random((100, 12))


@pytest.mark.parametrize("first", [0, 41])
@pytest.mark.parametrize("k", [1, 2, 30, 100])
def test_it_is_the_printed_algorithm(k, first, rows):
    found = cone_clusters(as_data_matrix(rows), k, first=first)
    picks, labels = by_hand(rows, k, first)
    assert found.centroid_indices.tolist() == picks
    np.testing.assert_array_equal(found.labels[:, 0], labels)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(found.centroids, units[picks], atol=1e-14)


def test_the_first_point_is_the_farthest_from_the_mean_direction(rows):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = cone_clusters(as_data_matrix(rows), 8)
    assert found.centroid_indices[0] == np.argmin(units @ units.mean(axis=0))
    assert found.centroid_indices.tolist() == by_hand(rows, 8, int(found.centroid_indices[0]))[0]


@pytest.mark.covering(1)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("options", [{}, {"rng": 3}, {"rng": 3, "seeding": "plus-plus"}, {"first": 9}])
def test_every_container_gives_the_same_clusters(container, options, rows):
    wanted = cone_clusters(as_data_matrix(rows), 14, **options)
    found = cone_clusters(as_data_matrix(CONTAINERS[container](rows)), 14, **options)
    np.testing.assert_array_equal(found.centroid_indices, wanted.centroid_indices)
    np.testing.assert_array_equal(plain(found.labels), wanted.labels)


def test_points_of_cones_that_satisfy_the_assumption_are_never_mixed():
    # Lemma 1, from whatever first point.
    for draw in range(100):
        cones = datasets.circular_cones(60, 30, 4, size_angle=0.15, rng=draw)
        found = cone_clusters(as_data_matrix(cones.X), 4, rng=draw)
        pairs = {(int(a), int(b)) for a, b in zip(found.labels[:, 0], cones.labels, strict=True)}
        assert len(pairs) == len({cluster for cluster, _ in pairs})


def test_scales_of_rows_do_not_matter(rows, rng):
    wanted = cone_clusters(as_data_matrix(rows), 10)
    found = cone_clusters(as_data_matrix(rows * np.exp2(rng.integers(-9, 9, size=(100, 1)))), 10)
    np.testing.assert_array_equal(found.centroid_indices, wanted.centroid_indices)
    np.testing.assert_array_equal(found.labels, wanted.labels)


@pytest.mark.parametrize("container", [None, *CONTAINERS])
def test_rows_of_zeros_belong_to_no_cluster(container, rows):
    rows[[0, 50, 99]] = 0.0
    X = rows if container is None else CONTAINERS[container](rows)
    found = cone_clusters(as_data_matrix(X), 9)
    labels = plain(found.labels)[:, 0]
    assert (labels[[0, 50, 99]] == -1).all()
    assert not np.isin([0, 50, 99], found.centroid_indices).any()
    assert sorted(set(labels)) == [-1, *range(9)]


@pytest.mark.parametrize("seeding", ["farthest", "plus-plus"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fewer_directions_than_clusters_end_the_search(seeding, dtype, rng):
    directions = rng.random((5, 40))
    X = (rng.gamma(2.0, size=(60, 1)) * directions[np.arange(60) % 5]).astype(dtype)
    X[7] = 0.0
    found = cone_clusters(as_data_matrix(X), 9, rng=0, seeding=seeding)
    assert len(found.centroid_indices) == 5
    labels = np.delete(found.labels[:, 0], 7)
    assert len(set(zip(labels.tolist(), np.delete(np.arange(60) % 5, 7).tolist(), strict=True))) == 5


def test_zeros_alone_have_no_clusters(xp):
    found = cone_clusters(as_data_matrix(xp.zeros((4, 3), dtype=xp.float64)), 2)
    assert len(found.centroid_indices) == 0
    assert (plain(found.labels) == -1).all()
    assert found.centroids.shape == (0, 3)


def test_orthogonal_rows_are_found_in_their_order():
    # All cosines are equal, exactly: the lowest index wins at every step.
    found = cone_clusters(as_data_matrix(np.eye(6)), 4, first=2)
    assert found.centroid_indices.tolist() == [2, 0, 1, 3]
    assert found.labels[:, 0].tolist() == [1, 2, 0, 3, 0, 0]


@pytest.mark.parametrize("options", [{}, {"rng": 1, "seeding": "plus-plus"}])
def test_rows_of_weight_zero_are_assigned_but_are_no_centroids(options, rows):
    weights = np.ones(100)
    chosen = cone_clusters(as_data_matrix(rows), 6, **options).centroid_indices
    weights[chosen] = 0.0
    found = cone_clusters(as_data_matrix(rows, weights=weights), 6, **options)
    assert not np.isin(found.centroid_indices, chosen).any()
    assert (found.labels >= 0).all()


def test_weights_of_rows_are_the_chances_of_the_first_draw(rng):
    X = np.eye(3)
    weights = np.array([1.0, 2.0, 5.0])
    data = as_data_matrix(X, weights=weights)
    source = np.random.default_rng(0)
    firsts = [cone_clusters(data, 1, rng=source).centroid_indices[0] for _ in range(800)]
    shares = np.bincount(firsts, minlength=3) / 800
    # Four standard deviations of a share.
    np.testing.assert_allclose(shares, weights / 8, atol=4 * np.sqrt(0.25 / 800))


def test_drawn_centroids_follow_one_minus_the_cosine():
    angles = np.array([0.0, 0.3, 0.9, 1.4])
    X = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    data = as_data_matrix(X)
    source = np.random.default_rng(5)
    seconds = [
        cone_clusters(data, 2, first=0, rng=source, seeding="plus-plus").centroid_indices[1]
        for _ in range(1500)
    ]
    wanted = (1 - np.cos(angles)) / (1 - np.cos(angles)).sum()
    np.testing.assert_allclose(
        np.bincount(seconds, minlength=4) / 1500, wanted, atol=4 * np.sqrt(0.25 / 1500)
    )
    assert 0 not in seconds


def test_missing_entries_count_as_zeros(rows, rng):
    da = pytest.importorskip("dask.array")
    mask = rng.random(rows.shape) < 0.8
    holed = np.where(mask, rows, np.nan)
    wanted = cone_clusters(as_data_matrix(np.where(mask, rows, 0.0)), 7, first=4)
    for X in (holed, da.from_array(holed, chunks=(30, -1))):
        found = cone_clusters(as_data_matrix(X, mask=mask), 7, first=4)
        np.testing.assert_array_equal(found.centroid_indices, wanted.centroid_indices)
        np.testing.assert_array_equal(plain(found.labels), wanted.labels)


@pytest.mark.parametrize("first", [-1, 100, 2.0, True, "3"])
def test_a_first_row_that_does_not_exist_is_refused(first, rows):
    with pytest.raises(InvalidParameterError, match=r"an integer from 0 to 99\. Got"):
        cone_clusters(as_data_matrix(rows), 3, first=first)


def test_a_first_row_without_direction_is_refused(rows):
    rows[5] = 0.0
    with pytest.raises(InvalidParameterError, match="first=5 is a row without a direction"):
        cone_clusters(as_data_matrix(rows), 3, first=5)
