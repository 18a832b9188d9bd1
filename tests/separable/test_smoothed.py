"""Methods that average samples: smoothed SPA and VCA."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.studies.vertex_draws import planted_points, vertex_error
from tests.references.containers import TORCH, as_container

from nonneg import SeparableNMF, select_anchors
from nonneg._arrays import to_float64
from nonneg.data import as_data_matrix
from nonneg.separable.reduced_points import reduced_points
from nonneg.separable.smoothed import _largest_residual, _Search, _vertices

AVERAGING = ("smoothed-spa", "smoothed-vca")


def error_of(planted, method, **params):
    found = select_anchors(planted.X, len(planted.vertices), method=method, method_params=params, rng=0)
    vertices = planted.X[found.anchors] if found.components is None else found.components
    return vertex_error(vertices, planted)


def mean_error(method, kind, n_draws=4, **params):
    draws = [planted_points({"n": 400, **kind}, np.random.default_rng([5, seed])) for seed in range(n_draws)]
    return np.mean([error_of(planted, method, **params) for planted in draws])


@pytest.mark.parametrize("method", AVERAGING)
def test_noise_averages_out_where_samples_repeat(method):
    kind = {"copies": 12, "snr": 12}
    assert mean_error(method, kind) < 0.4 * mean_error("spa", kind)


@pytest.mark.covering(1)
@pytest.mark.parametrize("method", AVERAGING)
@pytest.mark.parametrize("kind", [{"outliers": 0.005}, {"dark": 0.02}, {"closer": 8.0, "snr": 35}])
def test_what_misleads_spa(method, kind):
    assert mean_error(method, kind) < 0.5 * mean_error("spa", kind)


def test_the_automatic_number_of_members_follows_noise_and_copies():
    def members(kind):
        planted = planted_points(kind, np.random.default_rng(3))
        return select_anchors(planted.X, 5, method="smoothed-spa").facts["n_members"]

    assert members({"snr": 40}) == 1
    assert 8 <= members({"copies": 12}) <= 16
    assert members({"alpha": 0.3, "snr": 5}) > members({"alpha": 0.3, "snr": 30})


@pytest.mark.covering(1)
@pytest.mark.parametrize("form", ["csr", TORCH, "dask"])
@pytest.mark.parametrize("method", AVERAGING)
def test_vertices_do_not_depend_on_the_container(method, form):
    planted = planted_points({"copies": 6, "n": 300}, np.random.default_rng(0))
    X = np.abs(planted.X)
    X[[70, 200]] = 20.0 * np.eye(2, 50)
    expected = select_anchors(X, 5, method=method, rng=0)
    found = select_anchors(as_container(X, form), 5, method=method, rng=0)
    assert found.facts["isolated"].tolist() == [70, 200]
    np.testing.assert_array_equal(found.anchors, expected.anchors)
    np.testing.assert_allclose(to_float64(found.components), expected.components, rtol=1e-8)


@pytest.mark.parametrize("method", AVERAGING)
def test_vertices_do_not_depend_on_the_unit(method):
    planted = planted_points({"copies": 6, "n": 300}, np.random.default_rng(0))
    X = np.abs(planted.X)
    expected = SeparableNMF(5, method=method, random_state=0).fit(X)
    larger = SeparableNMF(5, method=method, random_state=0).fit(1e5 * X)
    np.testing.assert_allclose(larger.components_, 1e5 * expected.components_, rtol=1e-6)
    single = SeparableNMF(5, method=method, random_state=0).fit(X.astype(np.float32))
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
    search = _Search("smoothed-spa", _largest_residual, both_ends=False, aggregate="median", p=3)
    found = [rows.tolist() for rows, _ in _vertices(points, 2, search)]
    assert sorted(found[0]) == [0, 1, 2]
    assert found[1:] == [[0]]
