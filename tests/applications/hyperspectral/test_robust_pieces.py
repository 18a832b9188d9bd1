"""Pieces of the default search for endmembers, against plain formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nonneg.applications.hyperspectral import robust
from nonneg.applications.hyperspectral.facets import edge_of, facets_at_edges
from nonneg.applications.hyperspectral.robust import Found
from nonneg.applications.hyperspectral.statements import pure_statement
from nonneg.applications.hyperspectral.subspace import Subspace
from nonneg.certificates.certificate import Verdict

VERTICES = np.array([[1.0, 0.1, 0.2], [0.2, 1.0, 0.1], [0.1, 0.3, 1.0]])


def space_of(points, noise=0.01, **facts):
    options = {"exact": False, "varied": False, "sums": np.ones(points.shape[1])} | facts
    return Subspace(points, np.eye(points.shape[1]), noise, **options)


@pytest.fixture
def weights():
    return np.random.default_rng(0).dirichlet(np.ones(3), 60)


def test_the_misfit_is_in_noise_deviations_per_facet(weights):
    # Pixels behind the facet opposite to the first vertex leave their distance from it.
    dual = np.linalg.inv(VERTICES)[:, 0]
    outward = -dual / np.linalg.norm(dual)
    weights[:, 0] = 0.0
    weights[:, 1:] += 0.2
    points = weights @ VERTICES + 0.03 * outward
    space = space_of(points, noise=0.01)
    assert robust._misfit(space, VERTICES) == pytest.approx(math.sqrt(0.03**2 / 2) / 0.01)
    assert robust._outside_ratio(space, VERTICES) == pytest.approx(3.0)
    inside = space_of(np.random.default_rng(1).random((5, 3)) @ VERTICES, noise=0.01)
    assert robust._misfit(inside, VERTICES) == pytest.approx(0.0, abs=1e-6)
    # One endmember has no facet to divide by.
    one = space_of(np.array([[1.0, 0.0], [1.0, 0.3]]), noise=0.1)
    assert robust._misfit(one, np.array([[1.0, 0.0]])) == pytest.approx(math.sqrt(0.09 / 2) / 0.1)


def test_nothing_left_has_no_ratio():
    space = space_of(np.zeros((4, 3)))
    assert robust._outside_ratio(space, VERTICES) == 0.0


@pytest.mark.parametrize(("light", "dark"), [(0.26, False), (0.25, True), (0.1, True)])
def test_a_material_is_dark_with_less_than_a_quarter_of_the_light(light, dark):
    vertices = np.array([[1.0, 0.0], [0.0, light]])
    assert robust._has_dark(space_of(vertices), vertices) is dark


def test_a_pixel_in_the_shade_makes_no_dark_material():
    # The purest pixel has little light, the other pixels of the material as much as those of the other one.
    points = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 0.1], [0.1, 0.9], [0.2, 0.8]])
    assert robust._has_dark(space_of(points), points[[0, 2]]) is False


@pytest.mark.parametrize(
    ("n_near", "varied", "crowded"),
    [(14, False, False), (15, False, True), (24, True, False), (25, True, True)],
)
def test_many_pixels_near_the_vertices(n_near, varied, crowded):
    rows = np.repeat(
        [[0.0, 0.0, 1.0], [0.95, 0.05, 0.0], [0.89, 0.11, 0.0]], [2, n_near - 2, 100 - n_near], 0
    )
    space = replace(space_of((2.0 * rows) @ VERTICES), varied=varied)
    assert robust._crowded(space, VERTICES) is crowded


@pytest.mark.parametrize("factors", [(1.0, 0.5, 2.0), (1.0, 1.0, 1.0)])
def test_brightness_makes_the_weights_sum_to_one(factors, weights):
    factors = np.array(factors)
    space = space_of(weights @ (factors[:, None] * VERTICES))
    np.testing.assert_allclose(robust._brightness(space, VERTICES), factors, rtol=1e-6)


def test_brightness_of_dim_endmembers_is_left(weights):
    space = space_of(weights @ (np.array([[1.0], [0.15], [1.0]]) * VERTICES))
    np.testing.assert_allclose(robust._brightness(space, VERTICES)[[0, 2]], 1.0, rtol=1e-6)
    # The brightest has more than five times the light of the dimmest: nothing is changed.
    space = space_of(weights @ (np.array([[1.0], [6.0], [1.0]]) * VERTICES))
    np.testing.assert_array_equal(robust._brightness(space, VERTICES), 1.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_medians_of_pixels_keep_what_is_more_than_noise(scale):
    rng = np.random.default_rng(0)
    basis = np.eye(5)[:, :2]
    group = scale * (np.array([1.0, 2.0, 0.5, 0.5, 0.0]) + 0.05 * rng.standard_normal((9, 5)))
    ones = np.ones(5)
    found, share = robust._average_spectra(group, [np.arange(9)], ones, basis)
    light = group.sum(axis=1)
    scaled = group / light[:, None]
    median = np.median(scaled, axis=0)
    outside = np.r_[0.0, 0.0, median[2:]]
    variance = 0.5 * math.pi * scaled[:, 2:].var(axis=0).sum() / 8
    kept = 1 - variance / np.sum(outside**2)
    assert 0.9 < kept < 1.0
    assert share == pytest.approx(kept)
    expected = (median - (1 - kept) * outside) * np.median(light)
    np.testing.assert_allclose(found, [expected])


def test_pixels_inside_the_leading_directions_have_no_spectra_of_their_own():
    group = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    found, share = robust._average_spectra(group, [np.arange(2), np.array([1])], np.ones(3), np.eye(3)[:, :2])
    assert share == 0.0
    np.testing.assert_allclose(found, [[1.5, 3.0, 0.0], [2.0, 4.0, 0.0]])
    # One pixel alone shows no noise, and all of it is kept.
    alone, share = robust._average_spectra(
        np.array([[1.0, 1.0, 2.0]]), [np.array([0])], np.ones(3), np.eye(3)[:, :2]
    )
    assert share == 1.0
    np.testing.assert_allclose(alone, [[1.0, 1.0, 2.0]])
    # Noise larger than the median is all noise.
    wild = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.01], [1.0, 1.0, 0.02]])
    assert (
        robust._average_spectra(wild, [np.arange(3)], np.array([1.0, 1.0, 0.0]), np.eye(3)[:, :2])[1] == 0.0
    )


@pytest.mark.parametrize(("excess", "verdict"), [(1.25, Verdict.HOLDS), (1.26, Verdict.FAILS)])
def test_what_is_said_about_pure_pixels(excess, verdict):
    found = pure_statement(0.7, excess, 1.25, "minimum volume")
    assert (found.verdict, found.number, found.threshold) == (verdict, excess, 1.25)
    assert found.sentence.endswith("The endmembers are those of the smallest simplex around the pixels.")


def test_the_expected_misfit_is_that_of_noise():
    # Pixels amid the simplex leave nothing; pixels at a right-angled corner leave half a square per facet.
    space = space_of(np.tile(np.full((1, 3), 10.0), (50, 1)))
    assert robust._expected_misfit(space, np.eye(3)) == 0.0
    corner = space_of(np.tile([[10.0, 0.0, 0.0]], (50, 1)))
    assert robust._expected_misfit(corner, np.eye(3)) == pytest.approx(math.sqrt(0.5), rel=0.03)


@pytest.mark.parametrize(
    ("crowd", "excess", "facts", "limit", "share"),
    [
        (0.10, 1.00, {}, 1.2, 0.0),
        (0.10, 1.40, {}, 1.2, 1.0),
        (0.225, 1.2625, {}, 1.2625, 0.5),  # between few and many pixels near the vertices
        (0.30, 1.25, {}, 1.325, 0.0),
        (0.30, 1.40, {}, 1.325, 1.0),
        (0.40, 1.00, {}, 1.325, 0.125),  # both answers are good
        (0.50, 1.00, {}, 1.325, 0.25),
        (0.50, 1.40, {}, 1.325, 1.0),
        (0.50, 2.20, {"varied": True}, 2.35, 0.0),
        (0.50, 2.50, {"sums": np.array([1.0, 1.0, 0.1])}, 2.35, 1.0),  # a dark material
        (0.10, 2.35, {"varied": True}, 2.35, 0.5),
    ],
)
def test_the_share_of_the_smallest_simplex(crowd, excess, facts, limit, share, monkeypatch):
    monkeypatch.setattr(robust, "_crowd", lambda space, vertices: crowd)
    space = space_of(np.eye(3), **facts)
    np.testing.assert_allclose(robust._volume_share(space, np.eye(3), excess), (limit, share), atol=1e-12)


def test_a_blend_has_the_lengths_of_the_pure_pixels():
    pure = np.array([[2.0, 0.0], [0.0, 4.0]])
    volume = np.array([[0.1, 3.0], [5.0, 0.0]])  # in another order
    found = robust._blended(pure, volume, 0.5)
    np.testing.assert_allclose(found[0], [2.0, 0.0])
    np.testing.assert_allclose(found[1], 2.0 * (np.array([0.0, 1.0]) + volume[0] / np.linalg.norm(volume[0])))


def test_edges_beyond_the_crowd_are_not_taken(monkeypatch, weights):
    crowd = np.concatenate([np.repeat(np.eye(3), 20, axis=0), weights])
    space = space_of(crowd @ VERTICES, noise=1e-3)
    first = Found("pure pixels", VERTICES)
    assert robust._corrected(space, first).how == "pure pixels and edges"
    center = VERTICES.mean(axis=0)
    monkeypatch.setattr(robust, "facets_at_edges", lambda *_: center + 1.2 * (VERTICES - center))
    assert robust._corrected(space, first) is first


@pytest.mark.parametrize(
    ("misfits", "chosen", "seen"),
    [
        ((0.7, 0.1), 0, 1),  # as good as pure pixels can be: no further search
        ((0.71, 0.1), 0, 1),
        ((2.0, 1.9, 3.0), 0, 3),  # hardly better
        ((2.0, 1.7, 3.0), 1, 3),
        ((2.0, 1.7, 0.5, 0.1), 2, 3),
    ],
)
def test_the_first_search_is_kept_unless_another_is_clearly_better(misfits, chosen, seen, monkeypatch):
    asked = []
    finds = [Found(str(at), np.array([[value]])) for at, value in enumerate(misfits)]
    monkeypatch.setattr(robust, "_searches", lambda space, k: iter(finds))
    monkeypatch.setattr(
        robust, "_misfit", lambda space, vertices: (asked.append(1), float(vertices[0, 0]))[1]
    )
    assert robust._pure_pixels(None, 3) is finds[chosen]
    assert len(asked) == seen


@pytest.mark.parametrize(
    ("slope", "expected"), [(1.0, 0.6), (4.0, 0.15), (0.2, 3.0), (0.05, 4.0), (50.0, 0.0625)]
)
def test_the_weight_of_the_volume_that_leaves_pixels_outside_as_noise_does(slope, expected, monkeypatch):
    # The ratio is a power of the weight: interpolation on logarithmic scales is exact, within three octaves.
    simplex = type("Simplex", (), {"at": staticmethod(lambda weight: weight)})
    monkeypatch.setattr(robust, "_outside_ratio", lambda space, weight: 2.0 * slope * weight)
    assert robust._volume_weight(None, simplex, 1.2) == pytest.approx(expected)


def test_a_simplex_that_leaves_nothing_outside_gets_the_heaviest_volume(monkeypatch):
    simplex = type("Simplex", (), {"at": staticmethod(lambda weight: weight)})
    monkeypatch.setattr(robust, "_outside_ratio", lambda space, weight: 0.0)
    assert robust._volume_weight(None, simplex, 1.2) == 4.0


@pytest.mark.parametrize(
    ("octaves", "left"), [(0.0, 0.0), (1.0, 0.5), (-1.0, -0.5), (2.0, 1.6), (-3.0, -2.7)]
)
def test_a_measured_weight_moves_toward_that_of_evenly_spread_pixels(octaves, left):
    assert robust._shrunk(0.25 * 2.0**octaves) == pytest.approx(0.25 * 2.0**left)


def test_vertices_are_averaged_with_near_ones():
    pure = np.diag([1.0, 1.0, 4.0])
    apart = math.sqrt(2.0)
    noise = 0.01
    reach = 0.2 * apart + 6.0 * noise * math.sqrt(3)
    for gap, near in ((0.999 * reach, True), (1.001 * reach, False)):
        moved = pure.copy()
        moved[0, 1] += gap
        found = robust._averaged(space_of(pure, noise), pure, moved[[2, 0, 1]])
        expected = pure.copy()
        expected[0, 1] += 0.5 * gap * near
        np.testing.assert_allclose(found, expected)
    # All must be near, and noise is no excuse.
    assert robust._averaged(space_of(pure, noise), pure, moved, all_near=True) is None
    moved[0, 1] = 0.19 * apart
    np.testing.assert_allclose(
        robust._averaged(space_of(pure, noise), pure, moved, all_near=True)[0], [1.0, 0.095 * apart, 0.0]
    )
    assert robust._averaged(space_of(pure, noise), pure, pure + 5.0) is None


@pytest.mark.parametrize(("n", "k"), [(29, 3), (200, 1), (200, 4)])
def test_too_few_pixels_or_directions_have_no_robust_endmembers(n, k, rng):
    spectra = rng.dirichlet(np.ones(3), n) @ rng.random((3, 10))
    assert robust.robust_endmembers(spectra, k) is None


def test_pure_pixels_without_noise_are_the_endmembers(rng):
    H = 0.2 + rng.random((3, 12))
    W = rng.dirichlet(np.ones(3), 120)
    W[[7, 50, 99]] = np.eye(3)
    found = robust.robust_endmembers(W @ H, 3)
    assert found.facts["how"] == "pure pixels"
    assert sorted(found.anchors.tolist()) == [7, 50, 99]
    order = np.argsort(found.anchors)
    np.testing.assert_allclose(found.components[order], H, rtol=0.2)
    assert found.certificate["pure-pixels"].verdict == "holds"
    assert found.facts["isolated"].tolist() == []
    assert found.n_iter == 1
    # Sums of the bands may come from elsewhere, for pixels in leading directions.
    again = robust.robust_endmembers(W @ H, 3, ones=np.ones(12))
    np.testing.assert_array_equal(again.components, found.components)


@pytest.mark.parametrize(
    ("outward", "thickness"),
    [
        (np.zeros(19), 40.0),  # too few pixels
        (np.zeros(100), 3.9),  # too thin
        (np.full(100, -4.5), 40.0),  # none in the window
        (np.full(100, 6.5), 40.0),
        (np.full(100, -2.1), 4.1),  # half of a thin simplex
    ],
)
def test_facets_stay_where_nothing_is_known(outward, thickness):
    assert edge_of(outward, thickness) == 0.0


@pytest.mark.parametrize(("shift", "thickness"), [(1.0, 40.0), (-1.0, 40.0), (5.0, 40.0), (3.0, 8.0)])
def test_edges_move_by_a_limited_share(shift, thickness):
    rng = np.random.default_rng(0)
    outward = shift + rng.standard_normal(3000)
    limit = min(3.0, 0.25 * thickness)
    assert edge_of(outward, thickness) == pytest.approx(np.clip(shift, -limit, limit), abs=0.3)


def crowd(seed: int = 1, n: int = 2000) -> np.ndarray:
    """Pixels on the facets of a simplex that is a little larger than that of the unit vectors."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.ones(3), n)
    W[np.arange(n), rng.integers(3, size=n)] = 0.0
    W /= W.sum(axis=1, keepdims=True)
    return W @ (1.03 * np.eye(3) - 0.01) + 0.01 * rng.standard_normal((n, 3))


def test_facets_move_to_the_edge_of_the_pixels():
    normal, vertices, points = np.ones(3), np.eye(3), crowd()
    found = facets_at_edges(points, vertices, normal, 0.01)
    np.testing.assert_allclose(found @ normal, 1.0)
    np.testing.assert_allclose(found, 1.03 * vertices - 0.01, atol=0.01)
    np.testing.assert_allclose(facets_at_edges(points[:10], vertices, normal, 0.01), vertices, atol=1e-12)


@pytest.mark.parametrize(("unit", "light"), [(3.0, 1.0), (0.5, 1.0), (1.0, 2.0)])
def test_facets_do_not_depend_on_unit_direction_and_light(unit, light):
    points = crowd(n=300)
    found = facets_at_edges(points, np.eye(3), np.ones(3), 0.01)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    # The light of all pixels and their noise grow together; the plane stays where it is.
    other = facets_at_edges(
        light * unit * points @ turn, unit * turn, turn.T @ np.ones(3) / unit, 0.01 * light * unit
    )
    np.testing.assert_allclose(other, unit * found @ turn, rtol=1e-9, atol=1e-9)
