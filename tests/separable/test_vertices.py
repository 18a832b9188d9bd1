"""Vertices that are averages of samples reach the estimator and the applications."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import MAIN_FORMS, as_container

from nonneg import SeparableNMF, select_anchors
from nonneg._arrays import to_float64
from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral.endmembers import METHODS as UNMIXING_METHODS
from nonneg.data import as_data_matrix
from nonneg.datasets import scene_like
from nonneg.separable import METHODS, Method, SelectionResult
from nonneg.separable.spa import spa
from nonneg.separable.vca import _signal_to_noise, vca
from nonneg.separable.vertices import in_range


def pairs(data, n_components, *, aggregate="mean"):
    """Average every anchor of successive projections with the sample after it."""
    first = spa(data, n_components)
    members = tuple(np.array([row, (row + 1) % data.shape[0]]) for row in first.anchors)
    return SelectionResult(first.anchors, "pairs", members=members, facts={"aggregate": aggregate})


@pytest.fixture(autouse=True)
def registered():
    entry = Method(pairs, "pairs of samples", options=frozenset({"aggregate"}))
    with METHODS.registered("pairs", entry), UNMIXING_METHODS.registered("pairs", entry):
        yield


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_components_are_averages_in_the_container_of_the_data(form, clean):
    X = as_container(clean.X, form)
    model = SeparableNMF(6, method="pairs").fit(X)
    expected = [clean.X[[row, (row + 1) % 90]].mean(axis=0) for row in model.anchor_indices_]
    np.testing.assert_allclose(to_float64(model.components_), expected)
    assert [rows[0] for rows in model.result_.members] == list(model.anchor_indices_)


@pytest.mark.parametrize("steps", [{"normalize": "l1"}, {"reduce": 6}, {"energy": 0.9}])
def test_averages_are_those_of_the_samples_whatever_the_preprocessing(steps, clean):
    found = select_anchors(clean.X, 4, method="pairs", **steps)
    expected = [clean.X[rows].mean(axis=0) for rows in found.members]
    np.testing.assert_allclose(found.components, expected)
    assert all(row in rows for row, rows in zip(found.anchors, found.members, strict=True))


def test_endmembers_are_averages():
    cube = scene_like(12, 15, n_bands=20, n_materials=3, noise=0.01, rng=0).X.reshape(12, 15, 20)
    model = Unmixing(3, method="pairs").fit(cube)
    spectra = cube.reshape(-1, 20)
    expected = [spectra[rows].mean(axis=0) for rows in model.result_.members]
    np.testing.assert_allclose(model.endmembers_, expected, rtol=1e-6)
    places = model.pure_pixels_ @ [15, 1]
    np.testing.assert_array_equal(places, model.result_.anchors)


@pytest.mark.parametrize(("lowest", "expected"), [(0.0, 0.0), (-1.0, -1e-9)])
def test_averages_of_nonnegative_samples_are_not_negative(lowest, expected):
    data = as_data_matrix(np.array([[lowest, 1.0], [2.0, 3.0]]))
    found = in_range(np.array([[-1e-9, 0.5]]), data)
    np.testing.assert_array_equal(found, [[expected, 0.5]])
    np.testing.assert_array_equal(in_range(np.array([[0.0, 0.5]]), data), [[0.0, 0.5]])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_ratio_of_signal_to_noise_is_that_of_the_paper(k, rng):
    X = rng.random((30, 5)) + 1.0
    mean = X.mean(axis=0)
    values = np.linalg.svd(X - mean)[1]
    inside = np.sum(values[:k] ** 2) / 30 + mean @ mean
    whole = np.sum(X**2) / 30
    ratio = (inside - k / 5 * whole) / (whole - inside)
    assert _signal_to_noise(as_data_matrix(X), k) == pytest.approx(10 * np.log10(ratio))
    assert _signal_to_noise(as_data_matrix(X[:, :1]), 1) == np.inf


@pytest.mark.parametrize(("snr", "projection"), [(18.1, "plane"), (17.9, "principal components")])
def test_samples_are_put_on_a_plane_from_a_ratio_on(snr, projection, rng):
    """15 dB and ten times the logarithm of the number of vertices: 18.01 dB for two."""
    X = rng.dirichlet(np.ones(2), 20) @ rng.random((2, 4))
    found = vca(as_data_matrix(X), 2, snr=snr, rng=0)
    assert found.facts == {"snr": snr, "projection": projection}
