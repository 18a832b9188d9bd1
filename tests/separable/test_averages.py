"""Methods that average samples: points, neighbors, members and bounds against plain formulas."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from nonneg.certificates.certificate import Verdict
from nonneg.data import as_data_matrix
from nonneg.separable import css_nmf, reduced_points, smoothed
from nonneg.separable.reduced_points import ReducedPoints


def reduced(points, noise=0.0):
    k = points.shape[1]
    return ReducedPoints(points, np.arange(len(points)), np.eye(k), np.zeros(k), noise)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("n_vertices", [1, 2, 4])
def test_points_in_the_span_of_their_vertices(affine, n_vertices, rng):
    X = rng.random((30, 6)) * [9.0, 5.0, 3.0, 1.0, 0.5, 0.2] + 2.0
    found = reduced_points._projection(as_data_matrix(X), n_vertices, affine)
    d = n_vertices - 1 if affine else n_vertices
    origin = X.mean(axis=0) if affine else np.zeros(6)
    assert found.points.shape == (30, d)
    np.testing.assert_allclose(found.origin, origin)
    values, vectors = np.linalg.eigh((X - origin).T @ (X - origin))
    np.testing.assert_allclose(np.abs(np.sum(found.basis * vectors[:, ::-1][:, :d], axis=0)), 1.0)
    np.testing.assert_allclose(found.points, (X - origin) @ found.basis, atol=1e-9)
    left = values[::-1][d:].sum() / ((30 - d - 1) * (6 - d))
    assert found.noise == pytest.approx(math.sqrt(left))
    assert found.noise_radius == pytest.approx(2.0 * found.noise * math.sqrt(max(1, d)))
    np.testing.assert_allclose(found.in_features(found.points), origin + found.points @ found.basis.T)


def test_exact_data_have_no_noise(rng):
    X = rng.random((30, 2)) @ rng.random((2, 6))
    found = reduced_points._projection(as_data_matrix(X), 4, False)
    assert (found.points.shape[1], found.noise) == (2, 0.0)
    whole = reduced_points._projection(as_data_matrix(rng.random((30, 3))), 3, False)
    assert (whole.points.shape[1], whole.noise) == (3, 0.0)


def test_lifted_points_and_their_spread(rng):
    points = rng.random((9, 3))
    np.testing.assert_array_equal(
        reduced_points.lifted(points, points[0], 0.5), np.hstack([points - points[0], np.full((9, 1), 0.5)])
    )
    assert reduced_points.spread(points) == pytest.approx(math.sqrt((points**2).sum() / 9))


def test_residuals_step_by_step(rng):
    points = rng.random((12, 3))
    left, found = points.copy(), list(reduced_points.residual_steps(points, 5))
    for squares in found[:3]:
        np.testing.assert_allclose(squares, (left**2).sum(axis=1), atol=1e-12)
        direction = left[squares.argmax()] / math.sqrt(squares.max())
        left = left - np.outer(left @ direction, direction)
    assert len(list(reduced_points.residual_steps(np.zeros((3, 2)), 4))) == 1
    assert len(list(reduced_points.residual_steps(points, 2))) == 2


@pytest.mark.parametrize("entries", [1, 40, 1 << 18])
def test_neighbors_within_a_radius(entries, monkeypatch, rng):
    monkeypatch.setattr(reduced_points, "_PAIR_ENTRIES", entries)
    points, centers = rng.random((25, 2)), rng.random((4, 2))
    near = np.linalg.norm(points[:, None] - centers, axis=2) <= 0.3
    np.testing.assert_array_equal(reduced_points.neighbor_counts(points, centers, 0.3), near.sum(axis=0))
    for found, column in zip(reduced_points.neighborhoods(points, centers, 0.3), near.T, strict=True):
        np.testing.assert_array_equal(found, np.flatnonzero(column))
    # A distance equal to the radius is within it.
    assert reduced_points.neighbor_counts(np.array([[0.0], [3.0]]), np.zeros((1, 1)), 3.0).tolist() == [2]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("noise", [0.0, 50.0])
def test_the_radius_of_isolation(d, noise, rng):
    points = rng.random((40, d))
    middle = np.median(points, axis=0)
    size = np.median(np.linalg.norm(points - middle, axis=1))
    edge = math.sqrt(2 * (d + 1) * (d + 2) / d) * size
    expected = max(2 * noise * math.sqrt(d), 1.25 * edge * (math.log(40) / 40) ** (1 / d))
    assert reduced_points.isolation_radius(reduced(points, noise)) == pytest.approx(expected)


@pytest.mark.parametrize("affine", [True, False])
def test_isolated_samples_are_set_aside(affine, rng):
    X = rng.dirichlet(np.ones(3), 200) @ (np.eye(3, 12) + 0.2) + 0.001 * rng.standard_normal((200, 12))
    X[17, 5:] += 3.0
    found = reduced_points.reduced_points(as_data_matrix(X), 3, affine=affine)
    np.testing.assert_array_equal(found.isolated, [17])
    np.testing.assert_array_equal(found.rows, np.delete(np.arange(200), 17))
    assert len(found.points) == 199
    plain = reduced_points.reduced_points(as_data_matrix(X), 3, affine=affine, min_neighbors=0)
    assert (len(plain.points), len(plain.isolated)) == (200, 0)
    # A lone pure sample lies in the span of the others and comes back.
    X[17] = [2.5, -0.75, -0.75] @ (np.eye(3, 12) + 0.2)
    found = reduced_points.reduced_points(as_data_matrix(X), 3, affine=affine)
    assert len(found.isolated) == 0


@pytest.mark.parametrize(
    ("p", "rows"), [(1, [2]), (2, [2, 4]), (3, [2, 4, 0]), (4, [2, 4, 0, 3]), (9, [2, 4, 0, 3, 1])]
)
def test_extreme_rows_are_sorted_and_the_first_of_tied_ones(p, rows):
    np.testing.assert_array_equal(smoothed.extreme_rows(np.array([1.0, -5.0, 7.0, 1.0, 3.0]), p), rows)


@pytest.mark.parametrize(
    ("n", "k", "depth", "expected"),
    [(1000, 3, 0.0, 0.0), (1000, 3, 0.5, 250.0), (1000, 3, 0.01, math.log(1000)), (100, 3, 0.01, 1.0)],
)
def test_samples_near_a_vertex_of_an_even_simplex(n, k, depth, expected):
    assert smoothed.even_members(n, k, depth) == pytest.approx(expected)


@pytest.mark.parametrize("lift", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05, 9.0])
def test_how_many_samples_noise_cannot_tell_from_a_vertex(lift, noise, rng):
    points = rng.dirichlet(np.ones(3), 120)[:, :2]
    k = 3 if lift else 2
    found = smoothed.automatic_members(reduced(points, noise), k, 0.0, lift)
    steps = points if not lift else np.hstack([points, np.full((120, 1), math.sqrt((points**2).sum() / 120))])
    picks, left = [], steps
    for _ in range(k):
        picks.append(int((left**2).sum(axis=1).argmax()))
        direction = left[picks[-1]] / np.linalg.norm(left[picks[-1]])
        left = left - np.outer(left @ direction, direction)
    radius = 2 * noise * math.sqrt(2)
    near = np.median([(np.linalg.norm(points - points[at], axis=1) <= radius).sum() for at in picks])
    assert found == (1 if noise == 0 else min(int(near), 120 // (4 * k)))


@pytest.mark.parametrize("aggregate", ["mean", "median"])
@pytest.mark.parametrize("p", [1, 4])
def test_vertices_are_averages_of_extreme_samples(aggregate, p, rng):
    points = rng.random((50, 3)) * [1.0, 2.0, 3.0]
    search = smoothed._Search("m", smoothed._largest_residual, both_ends=False, aggregate=aggregate, p=p)
    found = smoothed._vertices(points, 3, search)
    basis, average = np.zeros((3, 0)), getattr(np, aggregate)
    for rows, score in found:
        left = points - points @ basis @ basis.T
        unit = left[(left**2).sum(axis=1).argmax()]
        along = points @ (unit / np.linalg.norm(unit))
        expected = np.argsort(-along, kind="stable")[:p]
        np.testing.assert_array_equal(rows, expected)
        assert score == pytest.approx(abs(np.median(along[expected])))
        new = average(points[expected], axis=0)
        new = new - basis @ (basis.T @ new)
        basis = np.column_stack([basis, new / np.linalg.norm(new)])
    assert len(found) == 3
    # Points in the span of the vertices have no direction left.
    assert len(smoothed._vertices(points[:, [0, 1, 1]] * [1, 1, 0], 3, search)) == 2


def test_the_farther_end_of_a_direction_counts():
    points = np.array([[1.0, 0.2], [-3.0, 0.1], [0.9, 0.3], [-2.9, 0.2], [0.0, 0.1]])
    search = smoothed._Search(
        "m", lambda points, basis: np.array([1.0, 0.0]), both_ends=True, aggregate="mean", p=2
    )
    ((rows, score), *_) = smoothed._vertices(points, 1, search)
    np.testing.assert_array_equal(rows, [1, 3])
    assert score == pytest.approx(2.95)
    one_end = dataclasses.replace(search, both_ends=False)
    np.testing.assert_array_equal(smoothed._vertices(points, 1, one_end)[0][0], [0, 2])


@pytest.mark.parametrize(("few", "rows"), [(1, [0, 1]), (3, [0, 1, 2])])
def test_samples_that_lie_deep_are_left_out_but_for_a_few(few, rows):
    points = np.array([[10.0], [9.0], [5.0], [4.0], [1.0]])
    search = smoothed._Search(
        "m", smoothed._largest_residual, both_ends=False, aggregate="mean", p=4, lowest=0.8, few=few
    )
    np.testing.assert_array_equal(smoothed._vertices(points, 1, search)[0][0], rows)


def test_steps_with_a_squared_diagonal(rng):
    points = rng.random((6, 4))
    step = css_nmf._SquaredDiagonalStep(points, points.sum(axis=1), target=2.0, lowest=0.1, last=10)
    diagonal = rng.random(6)
    assert step.step_size(0.5) == pytest.approx(1 / (np.linalg.norm(points, 2) ** 2 + 0.5), rel=1e-3)
    np.testing.assert_allclose(step.slopes(diagonal, 0.5), 0.5 * diagonal)
    assert step.penalty(diagonal, 0.5) == pytest.approx(0.25 * (diagonal**2).sum())


def test_members_share_the_weight_of_a_vertex():
    # Samples 0 and 1 share a vertex, 2 is another, 3 to 5 are mixtures, of which 5 has some weight.
    C = np.zeros((6, 6))
    C[0, [0, 1]] = C[1, [0, 1]] = 0.5
    C[2, 2] = 1.0
    C[[0, 1, 2], 3] = [0.3, 0.3, 0.4]
    C[[0, 1, 2], 4] = [0.1, 0.1, 0.8]
    C[[0, 1, 2, 5], 5] = [0.3, 0.3, 0.1, 0.3]
    found = css_nmf._members(C, np.ones(6), 2, 0.95)
    assert [group.tolist() for group in found] == [[0, 1], [2]]
    # A share below half of the largest one is that of a mixture.
    C[1, 1] = 0.2
    assert [group.tolist() for group in css_nmf._members(C, np.ones(6), 2, 0.95)] == [[2], [0]]


def test_clusters_of_mutual_coefficients():
    blocks = np.zeros((6, 6))
    for rows in ([0, 3], [1, 4], [2, 5]):
        blocks[np.ix_(rows, rows)] = 0.5
    labels = css_nmf._clusters(blocks + 0.01, 3)
    np.testing.assert_array_equal(labels[:3], labels[3:])
    assert len(set(labels.tolist())) == 3


def test_vertices_that_repeat_others_are_dropped():
    vertices = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1e-12], [0.0, 1.0], [5.0, 5.0]])
    np.testing.assert_array_equal(css_nmf._distinct(vertices), [0, 1, 4])
    (distances,) = css_nmf._distances([np.array([[0.0, 0.0], [3.0, 4.0]])], np.zeros((1, 2)))
    np.testing.assert_array_equal(distances, [0, 5])
    assert css_nmf._nearest(np.array([7, 9]), np.array([2.0, 1.0])) == 9


@pytest.mark.parametrize("kept", [1.0, 0.4])
def test_the_bound_on_the_error_of_vertices(kept, rng):
    vertices = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
    X = np.vstack([vertices, vertices, rng.dirichlet(np.ones(3), 6) @ vertices]) + 1e-3 * rng.random((12, 3))
    C = np.zeros((12, 12))
    members = [np.array([0, 3]), np.array([1, 4]), np.array([2, 5])]
    for group in members:
        C[np.ix_(group, group)] = 0.5 * kept
    found = css_nmf._error_statement(as_data_matrix(X), C, members, vertices, "mean")
    kappa = css_nmf.hull_distance(vertices)
    gamma, diameter, eps = 4.0, 5.0, found.quantities["eps"]
    worst = 0.0
    for group in members:
        left = np.linalg.norm(X[group] - C[:, group].T @ X, axis=1).max()
        eta = kept * (left + (1 + kept) * eps + (1 - kept) * gamma)
        worst = max(worst, eps + diameter * eta / (0.5 * kept * 2 * kappa))
    assert found.number == pytest.approx(worst)
    assert found.threshold == pytest.approx(0.5 * kappa)
    assert found.verdict is (Verdict.HOLDS if kept == 1.0 else Verdict.FAILS)
    assert found.quantities == pytest.approx(
        {"eps": eps, "kappa": kappa, "diameter": diameter, "longest_vertex": gamma}
    )
    assert f"within {worst:.4g} of the true one" in found.sentence
    assert found.sentence.endswith(f"the hull of the others is {0.5 * kappa:.4g}.")
    apart = css_nmf._error_statement(as_data_matrix(X), np.eye(12), members, vertices, "mean")
    assert apart.number == math.inf
    median = css_nmf._error_statement(as_data_matrix(X), C, members, vertices, "median")
    assert (median.number, median.verdict) == (None, Verdict.NOT_VERIFIABLE)
