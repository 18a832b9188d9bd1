"""The search for endmembers: what goes together, and what is passed on."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import EndmemberCount
from nonneg.applications.hyperspectral import endmembers as module
from nonneg.applications.hyperspectral.abundances import weights_of
from nonneg.applications.hyperspectral.endmembers import EndmemberSearch, _scaled, reduced_pixels
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.exceptions import InvalidParameterError, UnsupportedError
from nonneg.io.cube import Cube


def search(**changes):
    options = {
        "method": "snpa", "n_endmembers": 3, "constraint": "normalized", "normalize": "auto",
        "whiten": "auto", "smooth": 1, "reduce": None,
    }  # fmt: skip
    return EndmemberSearch(**(options | changes))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"smooth": 0}, InvalidParameterError, "smooth must be an odd number of pixels"),
        ({"smooth": 2}, InvalidParameterError, "got 2"),
        ({"smooth": 3.0}, InvalidParameterError, "smooth must"),
        (
            {"normalize": "l3"},
            InvalidParameterError,
            "normalize must be None, 'auto', 'l1' or 'l2', got 'l3'",
        ),
        ({"whiten": "yes"}, InvalidParameterError, "whiten must be True, False or 'auto', got 'yes'"),
        ({"smooth": 3, "reduce": 5}, UnsupportedError, "smooth and whiten need the pixels in memory"),
        ({"whiten": True, "reduce": 5}, UnsupportedError, "smooth and whiten need the pixels in memory"),
        ({"method": "auto", "tol": 0.1}, InvalidParameterError, "method='auto' does not accept tol"),
        ({"method": "auto", "max_iter": 3}, InvalidParameterError, "does not accept max_iter"),
        ({"method": "auto", "checkpoint": "a"}, InvalidParameterError, "does not accept checkpoint"),
        ({"method": "auto", "normalize": "l1"}, InvalidParameterError, "does not accept normalize"),
        ({"method": "auto", "method_params": {"depth": 1}}, UnsupportedError, "depth"),
        ({"method": "min-volume", "reduce": 5}, UnsupportedError, "needs nonnegative points, but reduce=5"),
    ],
)
def test_parameters_that_do_not_go_together(changes, error, message):
    with pytest.raises(error, match=message):
        search(**changes).check()


@pytest.mark.parametrize(
    "changes",
    [{}, {"smooth": 3}, {"whiten": True}, {"reduce": 5}, {"reduce": 5, "whiten": False}, {"method": "auto"}],
)
def test_parameters_that_go_together(changes):
    search(**changes).check()


@pytest.mark.parametrize(
    ("method", "normalize", "norm"),
    [
        ("snpa", "auto", None),
        ("smoothed-spa", "auto", "l1"),
        ("snpa", "l2", "l2"),
        ("smoothed-spa", None, None),
    ],
)
def test_averages_are_of_pixels_divided_by_their_sums(method, normalize, norm):
    assert search(method=method, normalize=normalize).norm() == norm


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2)])
def test_pixels_divided_by_a_norm(norm, order, rng):
    spectra = rng.random((6, 4)).astype(np.float32)
    spectra[2] = 0.0
    found = _scaled(spectra, norm)
    sizes = np.linalg.norm(np.delete(found, 2, axis=0), ord=order, axis=1)
    np.testing.assert_allclose(sizes, 1.0)
    assert not found[2].any()
    assert found.dtype == np.float64
    np.testing.assert_array_equal(_scaled(spectra, None), spectra)


@pytest.mark.parametrize("norm", [None, "l1"])
@pytest.mark.parametrize(("n_directions", "k"), [(2, 2), (6, 6), (9, 6), (None, 6)])
def test_pixels_in_leading_directions(n_directions, k, norm, rng, monkeypatch):
    values = 0.1 + rng.random((5, 4, 6))
    monkeypatch.setattr("nonneg.applications.hyperspectral.pixels.BLOCK_BYTES", 1)  # row by row
    mask = np.ones((5, 4), dtype=bool)
    mask[2, 1] = False
    pixels = ImagePixels(Cube(values), mask, 0.05)
    points, directions = reduced_pixels(pixels, n_directions, norm)
    scaled = _scaled(values[mask], norm)
    assert points.shape == (19, k)
    np.testing.assert_allclose(directions.T @ directions, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(points, scaled @ directions)
    leading = np.linalg.svd(scaled)[2][:k]
    np.testing.assert_allclose(directions @ directions.T, leading.T @ leading, atol=1e-9)


def test_options_are_passed_to_the_method(monkeypatch):
    seen = {}

    def select(points, k, **options):
        seen.clear()
        seen.update(options, k=k)
        return "found"

    monkeypatch.setattr(module, "select_anchors", select)
    points = np.ones((4, 3))
    given = {"tol": 0.1, "max_iter": 7, "random_state": 5, "n_jobs": 2, "verbose": 1}
    assert search(**given)._search(points) == "found"
    expected = {
        "k": 3, "method": "snpa", "normalize": None, "tol": 0.1, "max_iter": 7, "method_params": {}, "rng": 5,
        "n_jobs": 2,
    }  # fmt: skip
    assert {name: value for name, value in seen.items() if name != "verbose"} == expected
    search(method="smoothed-spa")._search(points)
    assert seen["normalize"] == "l1"
    assert "tol" not in seen
    assert "max_iter" not in seen
    assert seen["method_params"] == {"depth": 0.15}
    search(method="smoothed-spa", method_params={"depth": 0.3})._search(points, normalize=False)
    assert seen["normalize"] is None
    assert seen["method_params"] == {"depth": 0.3}
    monkeypatch.setattr(module, "robust_endmembers", lambda points, k, ones: None)
    search(method="auto")._search(points)
    assert (seen["method"], seen["normalize"]) == ("smoothed-spa", "l1")


def test_minimum_volume_is_told_the_constraint(monkeypatch):
    seen = {}
    monkeypatch.setattr(
        module, "min_volume_endmembers", lambda points, k, **options: seen.update(options, k=k)
    )
    search(method="min-volume", normalize="l2", verbose=2, method_params={"lam": 1.0})._search(
        np.ones((4, 3))
    )
    assert seen == {
        "k": 3, "constraint": "normalized", "normalize": "l2", "method_params": {"lam": 1.0}, "rng": None,
        "n_jobs": None, "verbose": 2,
    }  # fmt: skip


@pytest.mark.parametrize(("reduce", "robust"), [(8, True), (7, False)])
def test_the_default_needs_directions_for_the_noise(reduce, robust, monkeypatch, rng):
    norms = []
    monkeypatch.setattr(
        module,
        "reduced_pixels",
        lambda pixels, k, norm: (norms.append(norm), (np.ones((20, 2)), np.eye(12, 2)))[1],
    )
    asked = []

    def select(self, points, *, normalize=True, ones=None):
        asked.append((self.method, normalize, ones.tolist()))
        return type(
            "Result",
            (),
            {
                "method": self.method,
                "components": np.full((3, 2), -1.0),
                "members": None,
                "anchors": np.arange(3),
            },
        )

    monkeypatch.setattr(EndmemberSearch, "_search", select)
    pixels = ImagePixels(Cube(rng.random((5, 4, 12))), None, 0.05)
    _, spectra = search(method="auto", reduce=reduce)._reduced(pixels)
    assert asked == [("auto" if robust else "smoothed-spa", False, [1.0, 1.0])]
    assert norms == [None if robust else "l1"]
    if robust:  # what lies below zero is zero
        np.testing.assert_array_equal(spectra, 0.0)
    else:
        np.testing.assert_array_equal(spectra, pixels.cube.values[0, :3])


def unmixing(**changes):
    return Unmixing(**({"n_endmembers": 3, "method": "snpa"} | changes))


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"reduce": 3}, False),
        ({"reduce": 2}, True),
        ({"reduce": 0}, True),
        ({"reduce": True}, True),
        ({"reduce": 1, "n_endmembers": "auto"}, False),
        ({"negative_tol": 0}, False),
        ({"negative_tol": 0.0}, False),
        ({"negative_tol": -1e-9}, True),
        ({"negative_tol": True}, True),
        ({"negative_tol": float("nan")}, True),
        ({"n_endmembers": 1}, False),
        ({"n_endmembers": True}, True),
        ({"n_endmembers": None}, True),
        ({"n_endmembers": None, "method": "merit"}, False),
    ],
)
def test_parameters_at_their_ends(changes, refused):
    if refused:
        with pytest.raises(InvalidParameterError):
            unmixing(**changes)._checked_search()
    else:
        found = unmixing(**changes)._checked_search()
        wanted = changes.get("n_endmembers", 3)
        assert found.n_endmembers == (None if wanted == "auto" else wanted)
        assert found.method_params == {}


@pytest.mark.parametrize(
    ("changes", "recommended"),
    [({}, None), ({"n_endmembers": "auto"}, 5), ({"n_endmembers": "auto", "reduce": 4}, 4),
     ({"n_endmembers": "auto", "reduce": 9}, 5), ({"n_endmembers": "auto", "method": "merit"}, None)],
)  # fmt: skip
def test_the_number_is_estimated_where_the_method_needs_one(changes, recommended, monkeypatch):
    count = EndmemberCount(5, "why", 5, 4, 3, 2)
    asked = []
    monkeypatch.setattr(
        "nonneg.applications.hyperspectral.unmixing.estimate_n_endmembers",
        lambda spectra: (asked.append(spectra), count)[1],
    )
    pixels = type("Pixels", (), {"every": staticmethod(lambda n: ("every", n))})
    matrix = None if "reduce" in changes else "matrix"
    found = unmixing(**changes)._estimated(pixels, matrix)
    assert (found if found is None else found.recommended) == recommended
    if recommended is not None:
        assert asked == [("every", 20_000) if "reduce" in changes else "matrix"]


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_pixels_are_unmixed_in_pieces(rows, monkeypatch, rng):
    monkeypatch.setattr("nonneg.applications.hyperspectral.unmixing.ROWS", rows)
    values = 0.1 + rng.random((3, 4, 5))
    mask = np.ones((3, 4), dtype=bool)
    mask[1, 1] = False
    endmembers = 0.1 + rng.random((2, 5))
    whole = ImagePixels(Cube(values), mask, 0.05)
    expected = weights_of(values[mask], endmembers, "nonnegative")
    for matrix in (None, whole.gathered()):
        found = unmixing(constraint="nonnegative")._unmixed(whole, matrix, endmembers, "nonnegative")
        assert found.n_pixels == 11
        np.testing.assert_allclose(found.maps[mask.ravel()], expected, atol=1e-9)
        assert np.isnan(found.maps[5]).all()
