"""The plane of the endmembers, volumes on it, and the brightness of pixels, against plain formulas."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications.hyperspectral import cone_volume, min_volume
from nonneg.applications.hyperspectral.cone_volume import (
    ConeProblem,
    Plane,
    SmallestSimplex,
    cone_weights,
    evenly_lit,
)
from nonneg.applications.hyperspectral.preview import preview_bands, rgb_preview
from nonneg.exceptions import InvalidDataError, InvalidParameterError
from nonneg.iteration import StopReason


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_coordinates_on_the_plane(k, sign, rng):
    endmembers = sign * (rng.random((k, k)) + 2 * np.eye(k))
    plane = Plane.of(endmembers)
    np.testing.assert_allclose(endmembers @ plane.normal, 1.0)
    np.testing.assert_allclose(plane.directions.T @ plane.directions, np.eye(k - 1), atol=1e-12)
    np.testing.assert_allclose(plane.directions.T @ plane.normal, 0.0, atol=1e-12)
    assert plane.origin @ plane.normal == pytest.approx(1.0)
    np.testing.assert_allclose(plane.directions.T @ plane.origin, 0.0, atol=1e-12)
    # Brightness does not count on the plane.
    np.testing.assert_allclose(plane.outside(plane.inside(3.0 * endmembers)), endmembers)


def test_the_fit_of_a_simplex(rng):
    k = 3
    endmembers = rng.random((k, k)) + np.eye(k)
    points = rng.random((20, k)) @ endmembers + 0.05 * rng.random((20, k))
    plane = Plane.of(endmembers)
    problem = ConeProblem.of(points, plane, 0.1, weight=2.0)
    assert problem.lam == pytest.approx(2.0 * 20 * 0.01)
    assert ConeProblem.of(points, plane, 0.1).lam == pytest.approx(0.5 * 20 * 0.01)
    Ht = plane.inside(endmembers).T + 0.1
    H, fit = plane.outside(Ht.T), problem.fit(Ht)
    W = cone_weights(points, H)
    left = points - W @ H
    np.testing.assert_allclose(fit.W, W, atol=1e-9)
    assert fit.loss == pytest.approx(0.5 * ((left**2).sum() + problem.lam * problem.log_volume(Ht)))
    np.testing.assert_allclose(fit.gram, W.T @ W, atol=1e-8)
    # Weights are those of nonnegative least squares: no feasible change helps.
    gradient = W @ H @ H.T - points @ H.T
    assert gradient.min() > -1e-8
    assert np.abs(gradient * W).max() < 1e-8
    assert W.min() >= 0


def test_endmembers_get_the_brightness_of_the_pixels_that_they_dominate(monkeypatch, rng):
    monkeypatch.setattr(cone_volume, "N_LIT", 1)
    vertices = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    points = np.array([[3.0, 0.1, 0.0], [5.0, 0.1, 0.0], [9.0, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.4, 0.05]])
    sums = np.array([3.05, 5.05, 9.0])
    expected = vertices * [[np.median(sums)], [0.2], [1.0]]  # clipped to 0.2 to 5
    expected[0] = vertices[0] * 5.0
    np.testing.assert_allclose(evenly_lit(points, vertices), expected, atol=1e-9)
    points[:3] /= 4
    np.testing.assert_allclose(evenly_lit(points, vertices)[0], vertices[0] * 5.05 / 4, atol=1e-9)
    np.testing.assert_allclose(evenly_lit(points, vertices)[1], vertices[1] * 0.2, atol=1e-9)


@pytest.mark.parametrize(("n", "rows"), [(5, range(5)), (9, range(5)), (3, [0, 2, 4]), (2, [0, 4])])
def test_evenly_spaced_pixels(n, rows):
    points = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(cone_volume._evenly(points, n), points[list(rows)])


@pytest.mark.parametrize("divided", [False, True])
def test_the_smallest_simplex_around_pixels_without_noise(divided, rng):
    endmembers = np.array([[1.0, 0.2, 0.1], [0.1, 1.0, 0.3], [0.2, 0.1, 1.0]])
    shares = rng.dirichlet(0.5 * np.ones(3), 400)
    points = shares * rng.uniform(0.5, 2.0, (400, 1)) @ endmembers
    plane = Plane.of(endmembers)
    near = SmallestSimplex.near(points, endmembers * [[1.1], [0.9], [1.2]], plane, 1e-3, divided=divided)
    np.testing.assert_allclose(near.start, plane.inside(endmembers))
    assert near.points is points
    np.testing.assert_allclose(near.at(0.5), endmembers, atol=0.05)


def test_bright_pixels_are_divided_by_their_brightness(rng):
    plane = Plane.of(np.diag([2.0, 1.0, 4.0]))
    points = rng.random((30, 3)) + 0.1
    points[4] *= 1e-3  # mostly noise
    light = points @ plane.normal
    problem = SmallestSimplex(points, plane, 0.1, np.zeros((3, 2)), divided=True)._problem(0.7)
    kept = np.delete(np.arange(30), 4)
    assert set(np.flatnonzero(light > 0.2 * np.median(light))) == set(kept)
    rows = np.asarray(problem.data.take_rows(np.arange(29)))
    np.testing.assert_allclose(plane.outside(rows), points[kept] / light[kept, None])
    variance = (0.1 / np.median(light)) ** 2
    assert problem.delta == pytest.approx(variance)
    assert problem.lam == pytest.approx(0.7 * 29 * variance)


def fake_minimum_volume(seen):
    def minimum_volume(data, k, **options):
        seen.append((np.asarray(data.take_rows(np.arange(data.shape[0]))), options))
        raise RuntimeError

    return minimum_volume


@pytest.mark.parametrize(("normalize", "norm"), [("auto", 1), ("l1", 1), ("l2", 2)])
def test_dark_pixels_are_left_out_and_others_divided_by_their_size(normalize, norm, monkeypatch, rng):
    spectra = rng.random((9, 4)) * 0.1
    spectra[2] *= 1e-3
    spectra[5] = 0.0
    seen = []
    monkeypatch.setattr(min_volume, "minimum_volume", fake_minimum_volume(seen))
    with pytest.raises(RuntimeError):
        min_volume.min_volume_endmembers(
            spectra, 3, constraint="normalized", normalize=normalize, method_params=None
        )
    kept = np.delete(spectra, [2, 5], axis=0)
    np.testing.assert_allclose(seen[0][0], kept / np.linalg.norm(kept, ord=norm, axis=1, keepdims=True))
    assert seen[0][1] == {"constraint": "sum-to-one", "caller": "Unmixing"}


@pytest.mark.parametrize("constraint", ["at-most-one", "sum-to-one"])
def test_pixels_are_taken_as_they_are_where_their_brightness_counts(constraint, monkeypatch, rng):
    spectra = rng.random((9, 4))
    seen = []
    monkeypatch.setattr(min_volume, "minimum_volume", fake_minimum_volume(seen))
    for normalize, asked in (("auto", constraint), (None, constraint), ("l1", "sum-to-one")):
        with pytest.raises(RuntimeError):
            min_volume.min_volume_endmembers(
                spectra, 3, constraint=constraint, normalize=normalize, method_params={"lam": 0.5}
            )
        size = 1.0 if normalize != "l1" else spectra.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(seen[-1][0], spectra / size)
        assert seen[-1][1] == {"constraint": asked, "caller": "Unmixing", "lam": 0.5}


def test_too_few_bright_pixels():
    spectra = np.vstack([np.eye(3), 1e-4 * np.ones((2, 3))])
    with pytest.raises(
        InvalidDataError, match=r"3 pixels are brighter than .* of the median, fewer than n_endmembers=4"
    ):
        min_volume.min_volume_endmembers(
            spectra, 4, constraint="normalized", normalize="auto", method_params={}
        )


def test_bands_of_a_preview():
    assert preview_bands(None, 7) == (5, 3, 1)
    assert preview_bands(None, 13) == (10, 6, 2)
    assert preview_bands(None, 14, np.arange(14) % 2 == 0) == (10, 6, 2)
    visible = np.arange(400.0, 701.0, 10.0)
    assert preview_bands(visible, 31) == (24, 15, 6)
    assert preview_bands(visible / 1000, 31) == (24, 15, 6)
    kept = np.ones(31, dtype=bool)
    kept[[24, 15]] = False
    assert preview_bands(visible, 31, kept) == (23, 14, 6)
    # No band near enough to red: bands that are spread over the spectrum.
    assert preview_bands(np.arange(400.0, 601.0, 10.0), 21) == (17, 10, 3)
    assert preview_bands(np.arange(400.0, 611.0, 10.0), 22) == (21, 15, 6)


def test_a_preview_is_stretched_and_gray_without_data():
    cube = np.zeros((1, 101, 3))
    cube[0, :, 0] = np.arange(101.0)
    cube[0, :, 1] = np.nan
    cube[0, :, 2] = 7.0
    mask = np.ones((1, 101), dtype=bool)
    mask[0, 100] = False
    picture = rgb_preview(cube, mask=mask, bands=(1, 0, 2))
    assert (picture.shape, picture.dtype) == ((1, 101, 3), np.uint8)
    assert (picture[:, :, 0] == 128).all()
    low, high = np.percentile(np.arange(100.0), (2, 98))
    level = np.round(255 * np.clip((np.arange(100.0) - low) / (high - low), 0, 1))
    np.testing.assert_array_equal(picture[0, :100, 1], level)
    np.testing.assert_array_equal(picture[0, :100, 2], 0)
    assert (picture[0, 100] == 128).all()


@pytest.mark.parametrize("bands", [(0, 1), (0, 1, 3), (-1, 0, 1), (0, 1, 2, 0)])
def test_bands_that_there_are_not(bands):
    with pytest.raises(InvalidParameterError, match="three numbers from 0 to 2"):
        rgb_preview(np.ones((2, 2, 3)), bands=bands)
    assert rgb_preview(np.ones((2, 2, 3)), bands=(0, 2, 1)).shape == (2, 2, 3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_plane_across_the_first_axis(sign):
    endmembers = np.array([[sign, 0.0, 1.0], [sign, 5.0, 0.0], [sign, -1.0, -1.0]])
    plane = Plane.of(endmembers)
    np.testing.assert_allclose(plane.normal, [sign, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(plane.directions.T @ plane.directions, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(plane.outside(plane.inside(endmembers)), endmembers)


@pytest.mark.parametrize(
    ("losses", "chosen", "n_tried"),
    [
        ([1.0, 0.5, 0.7], 1, 3),
        ([1.0, 1.0 - 1e-9, 1.2], 0, 2),  # the lowest twice: no further start
        ([3.0, 2.0, 2.0 - 1e-9], 1, 3),
        ([3.0, 3.0 + 1e-3, 2.0], 2, 3),  # the weight is 0.017: not the same
    ],
)
def test_the_first_of_the_best_starts_is_taken(losses, chosen, n_tried, monkeypatch, rng):
    left, asked = iter(losses), []

    def minimize(problem, start, *, max_iter, tol):
        asked.append((start, max_iter, tol))
        return SimpleNamespace(state=SimpleNamespace(loss=next(left), Ht=start))

    points, first = rng.random((40, 3)) + 0.1, np.eye(3) + 0.1
    plane = Plane.of(first)
    others = [rng.random((3, 2)), rng.random((3, 2))]
    monkeypatch.setattr(cone_volume, "minimize_volume", minimize)
    monkeypatch.setattr(cone_volume, "_other_starts", lambda *_: others)
    found = cone_volume.SmallestSimplex.anywhere(points, first, plane, np.ones(3), 0.1, divided=True)
    assert found.divided
    np.testing.assert_allclose(found.start, [plane.inside(first), *others][chosen])
    assert len(asked) == n_tried
    assert {(most, tol) for _, most, tol in asked} == {(40, 1e-2)}


def test_other_starts_are_around_pixels_divided_by_their_light(monkeypatch, rng):
    plane = Plane.of(np.diag([2.0, 1.0, 4.0]))
    points = rng.random((50, 3)) + 0.1
    points[7] *= 1e-3  # too dark to divide
    seen, answers = [], iter([np.eye(3), np.diag([1.0, 2.0, 3.0])])

    def best(reduced):
        seen.append(reduced)
        return next(answers)

    monkeypatch.setattr(cone_volume, "best", best)
    sums = np.array([1.0, 2.0, 3.0])
    monkeypatch.setattr(cone_volume, "dual_from", lambda reduced, vertices: np.eye(3) + abs(vertices))
    lights = [points @ sums, points @ plane.normal]
    found = list(cone_volume._other_starts(points, plane, lights, 0.1))
    turned = np.random.default_rng(0).standard_normal((3, 3))
    np.testing.assert_allclose(found[2], plane.inside(np.eye(3) + abs(turned)))
    assert len(found) == 2 + cone_volume.N_TURNED
    np.testing.assert_allclose(found[0], plane.inside(np.eye(3)))
    np.testing.assert_allclose(found[1], plane.inside(np.diag([1.0, 2.0, 3.0])))
    for reduced, normal in zip(seen, (sums, plane.normal), strict=True):
        light = points @ normal
        bright = light > 0.2 * np.median(light)
        assert not bright[7]
        np.testing.assert_allclose(reduced.points, (points / light[:, None])[bright])
        np.testing.assert_allclose(reduced.points @ normal, 1.0)


@pytest.mark.parametrize(
    ("n", "sums", "answer", "n_found"),
    [
        (4, 1.0, np.eye(3), 2),
        (3, 1.0, np.eye(3), 0),  # no more pixels than dimensions
        (9, -1.0, np.eye(3), 1),  # without light by one measure
        (9, 0.0, np.eye(3), 1),
        (9, 1.0, np.diag([1.0, np.nan, 1.0]), 0),
        (9, 1.0, np.diag([1.0, -1.0, 1.0]), 0),  # behind the plane
    ],
)
def test_starts_that_make_no_sense_are_left_out(n, sums, answer, n_found, monkeypatch):
    plane = Plane.of(np.eye(3))
    monkeypatch.setattr(cone_volume, "best", lambda reduced: answer)
    monkeypatch.setattr(cone_volume, "N_TURNED", 0)
    points = np.random.default_rng(0).random((n, 3)) + 0.5
    lights = [points @ np.full(3, sums), points @ plane.normal]
    assert len(list(cone_volume._other_starts(points, plane, lights, 0.1))) == n_found


@pytest.mark.parametrize(
    ("constraint", "free"), [("normalized", True), ("nonnegative", True), ("sum-to-one", False)]
)
def test_endmembers_have_the_mean_brightness_where_it_is_free(constraint, free, monkeypatch, rng):
    spectra = rng.random((6, 3)) + 0.1
    W, H = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]), np.eye(2, 3)
    seen = {}

    def minimum_volume(data, k, **options):
        seen.update(options, k=k, points=data.values)
        return SimpleNamespace(
            W=W, H=H, history=None, certificate=None, lam=0.5, n_iter=4, stop_reason=StopReason.CONVERGED,
            noise=SimpleNamespace(sigma=0.25), purity=np.array([0.9, 0.8]),
        )  # fmt: skip

    monkeypatch.setattr(min_volume, "minimum_volume", minimum_volume)
    monkeypatch.setattr(min_volume, "as_data_matrix", lambda points: SimpleNamespace(values=points))
    found = min_volume.min_volume_endmembers(
        spectra, 2, constraint=constraint, normalize="auto", method_params=None
    )
    sums = spectra.sum(axis=1)
    np.testing.assert_allclose(seen["points"], spectra / sums[:, None] if free else spectra)
    np.testing.assert_allclose(found.components, H * (sums.mean() if free else 1.0))
    assert found.anchors.tolist() == [4, 0]
    assert seen["constraint"] == "sum-to-one"
    assert found.facts == {"noise_level": 0.25, "smallest_purity": 0.8}
