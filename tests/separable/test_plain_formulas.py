"""Ellipsoids, near-duplicates and corrected levels against plain loops."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg import select_anchors
from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import InvalidDataError
from nonneg.separable import near_duplicates
from nonneg.separable.merit import fully_corrective
from nonneg.separable.merit.fully_corrective import FullyCorrective, _row_bounds
from nonneg.separable.merit.initialization import from_anchors
from nonneg.separable.near_duplicates import representatives
from nonneg.separable.preconditioned_spa import preconditioned_spa, smallest_ellipsoid
from nonneg.separable.translated_spa import best_lift, lifted_spa


def spread_design(points):
    """Weights of the first design: one far point after another."""
    left, chosen = points.copy(), []
    for _ in range(points.shape[1]):
        chosen.append(int((left**2).sum(axis=1).argmax()))
        direction = left[chosen[-1]] / np.linalg.norm(left[chosen[-1]])
        left = left - np.outer(left @ direction, direction)
    weight = np.zeros(len(points))
    weight[chosen] = 1 / points.shape[1]
    return weight


def log_volume(points, weight):
    return np.linalg.slogdet((points * weight[:, None]).T @ points)[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_first_step_toward_or_away_from_a_point_is_the_best(seed):
    points = np.random.default_rng(seed).standard_normal((25, 3)) * [1.0, 2.0, 0.5]
    weight, k = spread_design(points), 3
    scatter = np.linalg.inv((points * weight[:, None]).T @ points)
    outward = np.einsum("ij,jk,ik->i", points, scatter, points)
    # All points of the first design have an outward distance of k: the step goes toward the farthest.
    far = int(outward.argmax())
    lengths = np.linspace(0.0, 0.9, 901)
    volumes = [
        log_volume(points, weight * (1 - length) + length * (np.arange(25) == far)) for length in lengths
    ]
    best = lengths[int(np.argmax(volumes))]
    moved = weight * (1 - best) + best * (np.arange(25) == far)
    expected = np.linalg.inv((points * moved[:, None]).T @ points)
    reach = max(np.einsum("ij,jk,ik->i", points, expected, points).max(), k)
    np.testing.assert_allclose(smallest_ellipsoid(points, max_iter=1), expected / reach, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_few_steps_suffice_for_the_smallest_ellipsoid(seed):
    points = np.random.default_rng(seed).standard_normal((60, 3))
    exact, found = smallest_ellipsoid(points, tol=1e-10), smallest_ellipsoid(points, max_iter=400)
    assert np.einsum("ij,jk,ik->i", points, found, points).max() <= 1 + 1e-9
    assert np.linalg.slogdet(exact)[1] - np.linalg.slogdet(found)[1] < 1e-5
    # Points on the boundary are those with weight: the sum of theirs is the dimension.
    touching = np.einsum("ij,jk,ik->i", points, exact, points) > 1 - 1e-6
    assert 3 <= touching.sum() <= 6


def test_points_in_a_plane_have_no_ellipsoid():
    with pytest.raises(InvalidDataError, match="span 2 of 3 dimensions"):
        smallest_ellipsoid(np.eye(3)[:, [0, 1, 1]] * [1.0, 1.0, 1.0])
    np.testing.assert_allclose(smallest_ellipsoid([[2.0]]), [[0.25]])


def plain_representatives(points, radius):
    """Take the longest point that is left, and with it those within the radius that have no other."""
    n, order = len(points), np.lexsort((np.arange(len(points)), -(points**2).sum(axis=1)))
    leader = np.full(n, -1)
    for at in order:
        near = [
            other
            for other in order
            if leader[other] == other and np.linalg.norm(points[at] - points[other]) <= radius
        ]
        if not near:
            leader[at] = at
    for at in order:
        if leader[at] < 0:
            near = [o for o in order if leader[o] == o and np.linalg.norm(points[at] - points[o]) <= radius]
            leader[at] = near[0]
    return np.unique(leader), np.searchsorted(np.unique(leader), leader)


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.0, 0.2, 0.6, 10.0])
@pytest.mark.parametrize("entries", [1, 1 << 22])
def test_representatives_are_the_longest_of_their_neighbors(n_features, radius, entries, monkeypatch, rng):
    monkeypatch.setattr(near_duplicates, "_PAIR_ENTRIES", entries)
    points = rng.random((40, n_features))
    points[7] = points[3]
    chosen, labels = representatives(points, radius)
    # Only those that are left when a longer neighbor is taken: rounds give the same as one after another.
    expected = plain_representatives(points, radius)
    np.testing.assert_array_equal(chosen, expected[0])
    assert (np.linalg.norm(points - points[chosen[labels]], axis=1) <= radius).all()
    apart = np.linalg.norm(points[chosen][:, None] - points[chosen], axis=2) + 99 * np.eye(len(chosen))
    assert (apart > radius).all()


@pytest.mark.parametrize("entries", [1, 50, 1 << 22])
def test_levels_are_lowered_for_one_violated_constraint_after_another(entries, monkeypatch, rng):
    monkeypatch.setattr(fully_corrective, "ENTRIES", entries)
    X, residual, levels, lam = rng.random((12, 3)), rng.standard_normal((12, 3)), rng.random(12), 0.7
    order = np.array([4, 0, 9, 2])
    points = SimpleNamespace(xp=np, n=12, rows=lambda rows: X[rows])
    found = FullyCorrective._corrected(SimpleNamespace(points=points, lam=lam), residual, levels, order)
    lowered = levels.copy()
    for row in order:
        above = np.maximum(lowered - residual @ X[row], 0.0)
        if above.sum() > lam:
            lowered -= (1 - lam / above.sum()) * above
    assert found == pytest.approx((levels - lowered).sum())
    assert found > 0


def test_bounds_of_rows():
    found = _row_bounds(0.5, np.array([2.0, 0.25, 0.0, -1.0]))
    np.testing.assert_array_equal(found, [0.25, 2.0, 1.0, 1.0])
    np.testing.assert_array_equal(_row_bounds(-1.0, np.array([2.0, 0.0])), [0.0, 1.0])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_lift_conditions_vertices_best(k, rng):
    vertices = rng.random((k, 5)) + 3
    origin, height = best_lift(vertices)
    np.testing.assert_allclose(origin, vertices.mean(axis=0))

    def condition(height):
        lifted = np.hstack([vertices - origin, np.full((k, 1), height)])
        return np.linalg.norm(lifted, axis=1).max() / np.linalg.svd(lifted, compute_uv=False)[-1]

    others = [condition(share * height) for share in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0)]
    assert condition(height) <= min(others) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_lifted_projections_are_projections_of_lifted_samples(seed):
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.ones(4), 60) @ rng.random((4, 6)) + 5
    found = lifted_spa(as_data_matrix(X), 4)
    # The first vertices: the longest sample, and successive projections around it.
    first = [int((X**2).sum(axis=1).argmax())]
    left = X - X[first[0]]
    while len(first) < 4:
        first.append(int((left**2).sum(axis=1).argmax()))
        direction = left[first[-1]] / np.linalg.norm(left[first[-1]])
        left = left - np.outer(left @ direction, direction)
    origin, height = best_lift(X[first])
    left, anchors, scores = np.hstack([X - origin, np.full((60, 1), height)]), [], []
    for _ in range(4):
        squares = (left**2).sum(axis=1)
        anchors.append(int(squares.argmax()))
        scores.append(squares.max())
        direction = left[anchors[-1]] / np.linalg.norm(left[anchors[-1]])
        left = left - np.outer(left @ direction, direction)
    np.testing.assert_array_equal(found.anchors, anchors)
    assert found.facts["height"] == pytest.approx(height)
    assert found.method == "lifted-spa"
    np.testing.assert_allclose(found.scores, np.sqrt(scores))


@pytest.mark.parametrize("preconditioner", ["whitening", "spa", "ellipsoid"])
def test_preconditioners_are_those_of_the_papers(preconditioner, rng):
    X = rng.dirichlet(np.ones(3), 40) @ (rng.random((3, 5)) + np.eye(3, 5) * [2, 1, 0.3, 1, 1])
    found = preconditioned_spa(as_data_matrix(X), 3, preconditioner=preconditioner)
    _, s, V = np.linalg.svd(X, full_matrices=False)
    points = X @ V[:3].T
    if preconditioner == "whitening":
        change = np.diag(1 / s[:3])
    elif preconditioner == "spa":
        change = np.linalg.inv(points[plain_spa(points, 3)[0]])
    else:
        values, vectors = np.linalg.eigh(smallest_ellipsoid(points, tol=1e-9))
        change = (vectors * np.sqrt(values)) @ vectors.T
    assert found.facts["preconditioner"] == preconditioner
    assert found.facts["condition"] == pytest.approx(np.linalg.cond(change), rel=1e-4)
    # On the ellipsoid all have the same length, and rounding decides which is first.
    assert set(found.anchors) == set(plain_spa(points @ change, 3)[0])
    assert found.method == "preconditioned-spa"
    assert found.best_left is None


def plain_spa(points, k):
    left, anchors, scores = points.copy(), [], []
    for _ in range(k):
        squares = (left**2).sum(axis=1)
        anchors.append(int(squares.argmax()))
        scores.append(squares.max())
        direction = left[anchors[-1]] / np.linalg.norm(left[anchors[-1]])
        left = left - np.outer(left @ direction, direction)
    return anchors, np.sqrt(scores)


def test_samples_that_span_too_little_are_not_preconditioned(rng):
    X = np.outer(rng.random(9), rng.random(4)) + np.outer(rng.random(9), rng.random(4))
    with pytest.raises(InvalidDataError, match="X has rank 2, which is less than n_components=3"):
        preconditioned_spa(as_data_matrix(X), 3)
    assert preconditioned_spa(as_data_matrix(X), 2).n_components == 2
    with pytest.raises(InvalidDataError, match="n_components=5 is more than 4"):
        preconditioned_spa(as_data_matrix(X), 5)


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e-3])
def test_a_warm_start_continues_at_the_same_iteration_in_every_unit(unit):
    data = separable_dirichlet(70, 15, 6, snr=15, rng=5)
    spa = select_anchors(data.X, 6, method="spa")
    found = select_anchors(
        unit * data.X, 6, init=spa.anchors, method_params={"lam": 0.2 * unit**2, "steps": "open-loop"},
        max_iter=2, tol=0.0,
    )  # fmt: skip
    W = from_anchors(as_data_matrix(data.X), spa.anchors).coefficients.toarray()
    left = data.X - W.T @ data.X
    size = np.sqrt((left**2).sum() / (data.X**2).sum())
    assert found.facts["t_init"] == max(1, round(1 / size))
