"""The greedy methods: exact on separable data, on every container."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import FORMS, as_container

from nonneg.datasets import separable_dirichlet
from nonneg.separable import METHODS, select_anchors

ALIKE = ("fortran", "csc", "dask", "dask-one-chunk", "dask-sparse", "streamed-sparse")
GREEDY = [name for name, method in METHODS.items() if method.kind == "greedy"]


def found(X, k, name, normalize=None, **params):
    return select_anchors(X, k, method=name, rng=0, normalize=normalize, method_params=params)


# Methods ask the data for products: one of them stands for all on containers that differ in these alone.
@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(
            name,
            *getattr(form, "values", (form,)),
            marks=[
                *getattr(form, "marks", ()),
                *([pytest.mark.slow] if form in ALIKE and name != GREEDY[0] else []),
            ],
        )
        for name in GREEDY
        for form in FORMS
    ],
)
def test_anchors_are_found_exactly_on_every_container(name, form, clean):
    result = found(as_container(clean.X, form), 6, name)
    assert set(result.anchors) == set(clean.anchors)
    assert list(result.anchors) == list(found(clean.X, 6, name).anchors)
    assert result.n_iter == len(result.history) == 6


@pytest.mark.parametrize("name", GREEDY)
def test_single_precision_finds_the_same(name, clean):
    result = found(clean.X.astype(np.float32), 6, name)
    assert set(result.anchors) == set(clean.anchors)


@pytest.mark.parametrize("name", GREEDY)
def test_the_data_are_not_changed(name, clean):
    X = clean.X.copy()
    found(X, 6, name)
    np.testing.assert_array_equal(X, clean.X)


@pytest.mark.parametrize("name", GREEDY)
def test_scale_does_not_matter(name, noisy):
    expected = found(np.abs(noisy.X), 6, name).anchors
    for factor in (1e-6, 1e6):
        assert set(found(np.abs(noisy.X) * factor, 6, name).anchors) == set(expected)


@pytest.mark.parametrize("name", GREEDY)
def test_copies_of_points_are_not_picked_twice(name, clean):
    X = np.concatenate([clean.X, clean.X])
    picks = found(X, 6, name).anchors
    assert set(picks % 90) == set(clean.anchors)


@pytest.mark.parametrize("name", GREEDY)
def test_points_of_zeros_are_no_anchors(name, clean):
    X = np.concatenate([clean.X, np.zeros((5, 20))])
    # Seen without an origin, a point of zeros is a corner like any other: it has to be left out.
    options = {"normalize": "l1"} if METHODS[name].affine else {}
    result = found(X, 6, name, **options)
    assert set(result.anchors) == set(clean.anchors)
    if options:
        assert result.details["normalize"]["n_zero"] == 5


@pytest.mark.parametrize("name", [name for name in GREEDY if not METHODS[name].simplex])
def test_rows_of_any_length_for_methods_of_cones(name, clean):
    lengths = np.random.default_rng(0).uniform(0.1, 10, size=(90, 1))
    assert set(found(clean.X * lengths, 6, name).anchors) == set(clean.anchors)


@pytest.mark.parametrize("name", GREEDY)
def test_normalisation_serves_points_of_any_length(name, clean):
    lengths = np.random.default_rng(0).uniform(0.1, 10, size=(90, 1))
    assert set(found(clean.X * lengths, 6, name, normalize="l1").anchors) == set(clean.anchors)


@pytest.mark.parametrize("name", [name for name in GREEDY if METHODS[name].signed])
def test_signed_data(name, clean):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0]
    X = clean.X @ turn
    assert X.min() < 0
    assert set(found(X, 6, name).anchors) == set(clean.anchors)


def test_more_corners_than_dimensions():
    # A regular heptagon has seven corners in the plane: hulls see them, spans do not.
    angle = 2 * np.pi * np.arange(7) / 7
    corners = np.column_stack([3 + np.cos(angle), 3 + np.sin(angle), np.ones(7)])
    inside = np.random.default_rng(0).dirichlet(np.ones(7), 60) @ corners
    X = np.concatenate([corners, inside])
    assert sorted(found(X, 7, "xray").anchors) == list(range(7))
    assert sorted(found(X, 7, "xray", variant="rand").anchors) == list(range(7))
    shifted = X[:, :2] - 3
    assert sorted(found(shifted, 7, "snpa").anchors) == list(range(7))


def test_single_point():
    for name in GREEDY:
        assert found(np.array([[1.0, 2.0]]), 1, name).anchors.tolist() == [0]


def shares(generator, names, k, n_trials=5):
    """Return the shares of the anchors that methods find, over a few draws."""
    total = dict.fromkeys(names, 0.0)
    for seed in range(n_trials):
        data = generator(seed)
        for name in names:
            total[name] += len(set(found(data.X, k, name).anchors) & set(data.anchors)) / k / n_trials
    return total


def test_hulls_stand_more_noise_than_spans():
    share = shares(lambda seed: separable_dirichlet(150, 40, 25, snr=8, rng=seed), ("spa", "snpa"), 25)
    assert share["snpa"] > 0.95
    assert share["snpa"] > share["spa"]


def test_vca_uses_principal_components_for_noisy_data(noisy):
    low = found(noisy.X, 6, "vca", snr=5.0)
    assert low.details["projection"] == "principal components"
    assert set(low.anchors) == set(noisy.anchors)
    high = found(noisy.X, 6, "vca")
    assert high.details["projection"] == "plane"
    assert high.details["snr"] == pytest.approx(25, abs=3)


def test_fast_anchor_corrects_a_pick_in_the_second_round():
    # The point farthest from the origin is a corner; without it the far side decides the first round.
    rng = np.random.default_rng(0)
    corners = np.array([[4.0, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    X = np.concatenate([rng.dirichlet(np.ones(3), 50) @ corners, corners])
    X += 0.02 * rng.normal(size=X.shape)
    result = found(X, 3, "fast-anchor")
    assert set(result.anchors) == {50, 51, 52}
    first = found(X, 3, "fast-anchor", clean_up=False)
    assert result.details["changed_in_clean_up"] == len(set(result.anchors) - set(first.anchors))


def test_workers_of_a_cluster(clean, dask_client):
    assert set(found(as_container(clean.X, "dask-one-chunk").rechunk((45, 20)), 6, "snpa").anchors) == set(
        clean.anchors
    )


@pytest.mark.parametrize("decibels", [10.0, 20.0, 30.0])
def test_vca_estimates_the_signal_to_noise_ratio(decibels, rng):
    signal = rng.dirichlet(np.ones(4), 4000) @ rng.random((4, 40))
    noise = rng.standard_normal(signal.shape)
    noise *= np.sqrt(np.mean(signal**2) / np.mean(noise**2)) * 10 ** (-decibels / 20)
    result = select_anchors(signal + noise, 4, method="vca", rng=0)
    assert result.details["snr"] == pytest.approx(decibels, abs=0.3)
