"""XRAY: its picks are those of the slow version, however the next direction was guessed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from tests.references.containers import MAIN_FORMS, as_container

from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.separable.xray import PREFETCH_FROM, _RaySearch, xray


@pytest.fixture(autouse=True)
def _guesses_on_small_data_too(monkeypatch):
    monkeypatch.setattr("nonneg.separable.xray.PREFETCH_FROM", 0)


def residual(point, rays):
    """What a nonnegative combination of rays leaves of a point."""
    return point - scipy.optimize.nnls(rays.T, point)[0] @ rays if len(rays) else point


def by_hand(X, k):
    """Return the picks of Algorithm 1 with the rule "max"."""
    picks = []
    for _ in range(k):
        left = np.stack([residual(point, X[picks]) for point in X])
        worst = np.argmax(np.sum(left**2, axis=1))
        picks.append(int(np.argmax(X @ left[worst] / X.sum(axis=1))))
    return picks


def points(seed):
    """Return points whose rays and worst explained points differ: mixtures of any length, with noise."""
    rng = np.random.default_rng(seed)
    X = np.abs(separable_dirichlet(70, 12, 6, snr=12, rng=seed).X)
    return X * rng.uniform(0.2, 5, size=(70, 1))


@pytest.mark.parametrize("seed", range(3))
def test_picks_are_those_of_the_slow_version(seed):
    X = points(seed)
    result = xray(as_data_matrix(X), 8)
    assert result.anchors.tolist() == by_hand(X, 8)
    assert result.scores[3] == pytest.approx(
        max(np.linalg.norm(residual(point, X[result.anchors[:3]])) for point in X)
    )
    assert result.n_passes == 10  # one an anchor, the norms, and the first ray


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_every_container_foresees_the_worst_point(form):
    X = points(3)
    result = xray(as_data_matrix(as_container(X, form)), 6)
    assert result.anchors.tolist() == by_hand(X, 6)
    assert result.n_passes == 8


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("variant", ["max", "rand"])
def test_a_guess_that_fails_costs_a_pass_and_no_pick(variant, dtype, monkeypatch):
    data = as_data_matrix(points(4).astype(dtype))
    foreseen = xray(data, 7, variant=variant, rng=5)
    assert foreseen.n_passes == 9
    monkeypatch.setattr(_RaySearch, "_predicted_from_pool", lambda self: [])
    monkeypatch.setattr(_RaySearch, "_predicted_draw", lambda self: [])
    plain = xray(data, 7, variant=variant, rng=5)
    assert plain.anchors.tolist() == foreseen.anchors.tolist()
    assert plain.n_passes == 15
    monkeypatch.setattr(_RaySearch, "_predicted_from_pool", any_in_pool)
    assert xray(data, 7, variant=variant, rng=5).anchors.tolist() == foreseen.anchors.tolist()


def test_small_data_in_this_process_take_the_second_pass(monkeypatch):
    monkeypatch.setattr("nonneg.separable.xray.PREFETCH_FROM", PREFETCH_FROM)
    X = points(7)
    small, chunked = (xray(as_data_matrix(as_container(X, form)), 6) for form in ("csr", "dask"))
    assert small.anchors.tolist() == chunked.anchors.tolist() == by_hand(X, 6)
    assert (small.n_passes, chunked.n_passes) == (13, 8)
    many = np.tile(X, (1 + PREFETCH_FROM // X.size, 1))
    assert xray(as_data_matrix(many), 6).n_passes == 8


def any_in_pool(self):
    """Guess without a look at the residuals."""
    point = self.pool[min(self.pool)]
    return [(point, self._residual(point))]


def test_copies_of_the_worst_point_are_known_to_be_it():
    X = points(5)
    result = xray(as_data_matrix(np.concatenate([X, X[::-1], X])), 6)
    np.testing.assert_array_equal(
        X[[i % 70 if i // 70 != 1 else 139 - i for i in result.anchors]], X[by_hand(X, 6)]
    )
    assert result.n_passes == 8


def test_drawn_points_are_drawn_once():
    # A generator that is handed in has given as many numbers as there are anchors and refused draws.
    X = points(6)
    rng, twin = np.random.default_rng(1), np.random.default_rng(1)
    xray(as_data_matrix(X), 4, variant="rand", rng=rng)
    twin.integers(70, size=4)
    assert rng.integers(70) == twin.integers(70)
