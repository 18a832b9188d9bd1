"""Guarantees of the theorems, on draws that satisfy their assumptions."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from tests.references.cones import cones_of_clusters, greedy_clusters, points_in_cones, rank_one_error

from nonneg import cone_rank_one
from nonneg.cones.geometry.separation import cone_separation
from nonneg.data import as_data_matrix
from nonneg.datasets import circular_cones
from nonneg.datasets.cones import equiangular_directions

N_DRAWS = 100


def draw(seed):
    """Cones of random number, size, length and share that satisfy (2), and a few points of each."""
    rng = np.random.default_rng(seed)
    n_cones, n = int(rng.integers(2, 7)), int(rng.integers(40, 120))
    sizes = rng.uniform(0.01, 0.28, size=n_cones)
    between = 3 * sizes.max() + np.sort(sizes)[-2] + 0.01
    H = equiangular_directions(n_cones, int(rng.integers(2 * n_cones, 60)), between, rng=rng)
    labels = rng.choice(n_cones, n, p=rng.dirichlet(np.full(n_cones, 3.0)))
    X = points_in_cones(H, labels, sizes, rng, rng.uniform(0.1, 10, size=n_cones))
    return SimpleNamespace(X=np.maximum(X, 0.0), H=H, labels=labels, sizes=sizes)


@pytest.mark.covering(0)
@pytest.mark.parametrize("seeds", np.array_split(np.arange(N_DRAWS), 4), ids=lambda seeds: f"from-{seeds[0]}")
def test_no_cluster_mixes_cones_and_every_error_is_beneath_its_bounds(seeds):
    for seed in seeds:
        data = draw(seed)
        present = np.unique(data.labels)
        for first in (None, int(seed) % len(data.X)):
            found = cone_rank_one(data.X, len(present), first=first)
            # As many clusters as there are cones with points: each is one of them, whole.
            pairs = np.unique(np.stack([np.asarray(found.labels), data.labels]), axis=1)
            assert pairs.shape[1] == len(present)
            error = rank_one_error(data.X, data.labels)
            assert found.relative_error == pytest.approx(error, rel=1e-6)
            assert (
                error <= found.bounds["cluster"] * (1 + 1e-12) <= found.bounds["largest-angle"] * (1 + 1e-11)
            )
        certificate = found.certificate
        assert certificate["cluster-bound"].holds
        assert certificate["largest-angle-bound"].holds
        assert certificate["geometric-assumption"].holds
        assert certificate["exact-clustering-bound"].holds


def test_the_draws_satisfy_the_assumption_and_do_not_leave_their_cones():
    for seed in range(0, N_DRAWS, 10):
        data = draw(seed)
        assert cone_separation(data.H, data.sizes).holds
        units = data.X / np.linalg.norm(data.X, axis=1, keepdims=True)
        cosines = np.einsum("ij,ij->i", units, data.H[data.labels])
        assert np.all(np.arccos(np.minimum(cosines, 1)) <= data.sizes[data.labels] + 1e-9)


def test_fewer_clusters_than_asked_for_split_cones_but_never_mix_them():
    data = draw(3)
    k = len(np.unique(data.labels))
    found = cone_rank_one(data.X, k + 3)
    for cluster in range(k + 3):
        assert len(np.unique(data.labels[np.asarray(found.labels) == cluster])) == 1


def test_algorithm_1_is_the_reference_version():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.gamma(0.5, size=(80, 12)) + 1e-3
        np.testing.assert_array_equal(
            np.asarray(cone_rank_one(X, 7, first=seed).labels), greedy_clusters(X, 7, seed)
        )


def test_greedy_clusters_of_separate_cones_solve_equation_13():
    # Of all clusterings into three, none has a smaller largest size angle.
    X = circular_cones(6, 30, 3, size_angle=0.2, rng=5).X
    result = cone_rank_one(X, 3)
    assert cone_separation(result.basis, result.size_angles).holds
    data = as_data_matrix(X)
    angles = [
        cones_of_clusters(data, np.array((0, *labels)), 3).angles.max()
        for labels in product(range(3), repeat=5)
        if {1, 2} <= set(labels) and labels.index(1) < labels.index(2)  # their names do not matter
    ]
    assert result.size_angles.max() == pytest.approx(min(angles), rel=1e-6)


def test_duplicates_pull_a_centroid_but_not_a_direction():
    """The example of Section VI-B2: 1 against 1.0954."""
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    result = cone_rank_one(X, 1)
    np.testing.assert_allclose(np.abs(result.H), [[1.0, 0.0]], atol=1e-8)
    assert result.relative_error * np.linalg.norm(X) == pytest.approx(1.0)
    centroid = np.array([2.0, 1.0]) / np.sqrt(5.0)  # the mean direction
    error = np.linalg.norm(X - np.outer(X @ centroid, centroid))
    assert error == pytest.approx(1.0954, abs=5e-5)
