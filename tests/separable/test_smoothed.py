"""Smoothed SPA: vertices that are medians of samples."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.studies.vertex_draws import planted_points, vertex_error
from tests.references.containers import TORCH, as_container

from nonneg import SeparableNMF, select_anchors
from nonneg._arrays import to_float64
from nonneg.data import as_data_matrix
from nonneg.separable.smoothed import extreme_members, reduced_points


def error_of(planted, method, **params):
    found = select_anchors(planted.X, len(planted.vertices), method=method, method_params=params, rng=0)
    vertices = planted.X[found.anchors] if found.components is None else found.components
    return vertex_error(vertices, planted)


def mean_error(method, kind, n_draws=4, **params):
    draws = [planted_points({"n": 400, **kind}, np.random.default_rng([5, seed])) for seed in range(n_draws)]
    return np.mean([error_of(planted, method, **params) for planted in draws])


def test_noise_averages_out_where_samples_repeat():
    kind = {"copies": 12, "snr": 12}
    assert mean_error("smoothed-spa", kind) < 0.4 * mean_error("spa", kind)


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", [{"outliers": 0.005}, {"dark": 0.02}, {"closer": 8.0, "snr": 35}])
def test_what_misleads_spa(kind):
    assert mean_error("smoothed-spa", kind) < 0.5 * mean_error("spa", kind)


def test_the_automatic_number_of_members_follows_noise_and_copies():
    def members(kind):
        planted = planted_points(kind, np.random.default_rng(3))
        return select_anchors(planted.X, 5, method="smoothed-spa").details["n_members"]

    assert members({"snr": 40}) == 1
    assert 8 <= members({"copies": 12}) <= 16
    assert members({"alpha": 0.3, "snr": 5}) > members({"alpha": 0.3, "snr": 30})


@pytest.mark.covering(1)
@pytest.mark.parametrize("form", ["csr", TORCH, "dask"])
def test_vertices_do_not_depend_on_the_container(form):
    planted = planted_points({"copies": 6, "n": 300}, np.random.default_rng(0))
    X = np.abs(planted.X)
    X[[70, 200]] = 20.0 * np.eye(2, 50)
    expected = select_anchors(X, 5, method="smoothed-spa")
    found = select_anchors(as_container(X, form), 5, method="smoothed-spa")
    assert found.details["isolated"].tolist() == [70, 200]
    np.testing.assert_array_equal(found.anchors, expected.anchors)
    np.testing.assert_allclose(to_float64(found.components), expected.components, rtol=1e-8)


def test_vertices_do_not_depend_on_the_unit():
    planted = planted_points({"copies": 6, "n": 300}, np.random.default_rng(0))
    X = np.abs(planted.X)
    expected = SeparableNMF(5, method="smoothed-spa", random_state=0).fit(X)
    larger = SeparableNMF(5, method="smoothed-spa", random_state=0).fit(1e5 * X)
    np.testing.assert_allclose(larger.components_, 1e5 * expected.components_, rtol=1e-6)
    single = SeparableNMF(5, method="smoothed-spa", random_state=0).fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    np.testing.assert_allclose(single.components_, expected.components_, rtol=1e-3, atol=1e-4)
    assert all(
        anchor in rows
        for anchor, rows in zip(expected.anchor_indices_, expected.result_.members, strict=True)
    )


def test_noise_is_estimated_outside_the_span():
    planted = planted_points({"snr": 20}, np.random.default_rng(0))
    clean = planted.weights @ planted.vertices
    size = np.sqrt(np.mean(clean**2) / 100)
    assert reduced_points(as_data_matrix(planted.X), 5).noise == pytest.approx(size, rel=0.02)
    assert reduced_points(as_data_matrix(clean), 5).noise == 0.0


def test_samples_of_a_vertex_that_are_extreme_again_give_one_of_them():
    # The three on the right are extreme along both directions; their median has no part in the second.
    points = np.array([[10.0, 3.0], [10.0, 0.5], [10.0, 0.4], [1.0, -1.0], [0.5, -0.5], [0.0, 0.0]])
    found = [rows.tolist() for rows in extreme_members(points, 2, 3)[0]]
    assert sorted(found[0]) == [0, 1, 2]
    assert found[1:] == [[0]]


@pytest.mark.parametrize("steps", [{}, {"normalize": "l1"}, {"reduce": 12}, {"energy": 0.9}])
def test_vertices_are_medians_of_the_samples_whatever_the_preprocessing(steps):
    planted = planted_points({"copies": 6, "n": 300}, np.random.default_rng(0))
    X = np.abs(planted.X)
    found = select_anchors(X, 5, method="smoothed-spa", method_params={"n_members": 3}, **steps)
    medians = np.array([np.median(X[rows], axis=0) for rows in found.members])
    assert {len(rows) for rows in found.members} == {3}
    # The median of projections is that of the samples up to the noise outside the directions.
    np.testing.assert_allclose(found.components, medians, atol=0.2 * medians.max())
    assert all(row in rows for row, rows in zip(found.anchors, found.members, strict=True))
    assert (found.components >= 0).all()
