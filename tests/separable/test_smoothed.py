"""Methods that average samples: smoothed SPA and VCA, and SPA on pseudo-points."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from reproduction.studies.vertex_draws import planted_points, vertex_error
from tests.references.containers import TORCH, as_container

from nonneg import SeparableNMF, select_anchors
from nonneg._arrays import to_float64
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError
from nonneg.separable.recovery_bounds import first_vertex_bound, lifted_bound, spa_bound, translated_bound
from nonneg.separable.reduced_points import ReducedPoints, reduced_points
from nonneg.separable.smoothed import _largest_residual, _Search, _vertices, automatic_members, even_members

AVERAGING = ("smoothed-spa", "smoothed-vca", "pp-spa")


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


@pytest.mark.parametrize("method", AVERAGING)
def test_smoothing_does_not_pull_single_pure_samples_inward(method):
    # The automatic size of an average is one sample or few; a fixed one of 20 mixes in others.
    assert mean_error(method, {"snr": 30}) < 0.05
    if method != "pp-spa":
        assert mean_error(method, {"snr": 30}, n_members=20) > 0.2


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


def test_isolated_samples_are_set_aside_and_named():
    planted = planted_points({}, np.random.default_rng(0))
    X = planted.X.copy()
    bad = [7, 500]
    X[bad] = 20.0 * np.eye(2, 50)
    found = select_anchors(X, 5, method="smoothed-spa")
    assert found.facts["isolated"].tolist() == bad
    assert "(7, 500)" in found.certificate["isolated-samples"].sentence
    longer = np.concatenate([np.zeros((3, 50)), X])
    shifted = select_anchors(longer, 5, method="smoothed-spa", normalize="l1")
    assert set(np.array(bad) + 3) <= set(shifted.facts["isolated"])
    kept = select_anchors(X, 5, method="pp-spa", method_params={"min_neighbors": 0})
    assert set(bad) <= set(kept.anchors)


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


def test_a_radius_and_wrong_values():
    planted = planted_points({}, np.random.default_rng(0))
    found = select_anchors(planted.X, 5, method="pp-spa", method_params={"radius": 0.0, "min_neighbors": 0})
    assert all(len(rows) == 1 for rows in found.members)
    for params, said in (
        ({"n_members": 0}, "n_members must be 'auto' or an integer of at least 1"),
        ({"depth": 2.0}, "depth must be a share"),
    ):
        with pytest.raises(InvalidParameterError, match=said):
            select_anchors(planted.X, 5, method="smoothed-spa", method_params=params)


@pytest.mark.parametrize(
    ("method", "bound"),
    [("spa", spa_bound), ("translated-spa", translated_bound), ("lifted-spa", lifted_bound)],
)
def test_recovery_bounds_hold_on_planted_data(method, bound):
    # Noise of exactly the largest norm that the theorem allows, at the true vertices.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        vertices = np.eye(4, 8) + 0.3 * rng.random((4, 8))
        weights = np.concatenate([np.eye(4), rng.dirichlet(np.full(4, 0.5), 60)])
        limit = bound(vertices)
        noise = rng.normal(size=(64, 8))
        noise *= 0.99 * limit.limit / np.linalg.norm(noise, axis=1, keepdims=True)
        X = weights @ vertices + noise
        found = select_anchors(X, 4, method=method)
        gaps = np.linalg.norm(X[found.anchors][:, None] - vertices[None], axis=2)
        assert gaps.min(axis=0).max() <= 0.99 * limit.limit * limit.factor
        assert found.certificate["recovery-bound"].verdict in ("holds", "not verifiable")
        first = first_vertex_bound(vertices)
        if 0.99 * limit.limit < first.limit:
            assert gaps[0].min() <= 0.99 * limit.limit * first.factor


def test_bounds_say_nothing_where_noise_is_large(noisy, clean):
    for method in ("spa", "translated-spa", "lifted-spa", "pp-spa", "smoothed-vca"):
        loud = select_anchors(noisy.X, 6, method=method, rng=0).certificate["recovery-bound"]
        assert loud.verdict == "not verifiable"
        if not method.startswith("smoothed"):
            quiet = select_anchors(clean.X, 6, method=method).certificate["recovery-bound"]
            assert quiet.holds
            assert quiet.number < 1e-6


def test_with_little_noise_a_vertex_rests_on_an_even_share_of_the_samples(rng):
    points = rng.dirichlet(np.ones(3), 2000) @ np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    reduced = ReducedPoints(points, np.arange(2000), np.eye(2), np.zeros(2), noise=1e-9)
    assert even_members(2000, 3, 0.2) == pytest.approx(80)
    assert automatic_members(reduced, 3, 0.2, lift=True) == 80
    assert (
        automatic_members(replace(reduced, noise=0.02), 3, 0.0, lift=True) > 1
    )  # as many as noise cannot tell
    assert automatic_members(replace(reduced, noise=0.0), 3, 0.2, lift=True) == 1


def test_the_bound_of_the_first_vertex_is_the_one_derived():
    bound = first_vertex_bound(np.array([[2.0, 0.0], [0.0, 1.0]]))  # d = 1, R = 2
    assert (bound.limit, bound.factor) == (pytest.approx(1 / 32), pytest.approx(17.0))


def test_one_vertex_of_pseudo_points_is_the_longest_sample(rng):
    X = rng.random((30, 4))
    found = select_anchors(X, 1, method="pp-spa")
    assert found.anchors.tolist() == [int(np.argmax(np.linalg.norm(X, axis=1)))]
    assert found.method == "pp-spa"


def test_seconds_count_from_the_beginning():
    planted = planted_points({"n": 60}, np.random.default_rng(0))
    before = time.perf_counter()
    found = select_anchors(planted.X, 3, method="pp-spa")
    assert list(found.history.n_iter) == [1, 2, 3]
    assert 0.0 <= found.history.seconds[0] <= found.history.seconds[-1] <= time.perf_counter() - before


def test_samples_of_a_vertex_that_are_extreme_again_give_one_of_them():
    # The three on the right are extreme along both directions; their median has no part in the second.
    points = np.array([[10.0, 3.0], [10.0, 0.5], [10.0, 0.4], [1.0, -1.0], [0.5, -0.5], [0.0, 0.0]])
    search = _Search("smoothed-spa", _largest_residual, both_ends=False, aggregate="median", p=3)
    found = [rows.tolist() for rows, _ in _vertices(points, 2, search)]
    assert sorted(found[0]) == [0, 1, 2]
    assert found[1:] == [[0]]
