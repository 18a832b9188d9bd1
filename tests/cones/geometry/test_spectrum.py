from __future__ import annotations

import numpy as np
import pytest
from reproduction.cr1.theory import predicted_spectrum, second_moments

from nonneg.cones.geometry.spectrum import ConeSpectrum, ratio_condition
from nonneg.datasets import circular_cones
from nonneg.datasets.cones import equiangular_directions
from nonneg.exceptions import InvalidParameterError


def eigenvalues(spectrum):
    """All eigenvalues on the three levels, in descending order."""
    return np.r_[
        spectrum.first,
        np.full(spectrum.n_cones - 1, spectrum.floor + spectrum.gap),
        np.full(spectrum.n_features - spectrum.n_cones, spectrum.floor),
    ]


def test_lemma_14_is_the_mean_of_many_points():
    cones = {
        "size_angle": (0.1, 0.3, 0.2),
        "mean_squared_lengths": (1.0, 2.0, 5.0),
        "proportions": (0.5, 0.3, 0.2),
    }
    data = circular_cones(200_000, 6, 3, between_angle=0.9, project=False, rng=1, **cones)
    floor, weights = second_moments(data.H, *cones.values())
    expected = floor * np.eye(6) + data.H.T @ np.diag(weights) @ data.H
    found = data.X.T @ data.X / len(data.X)
    assert np.abs(found - expected).max() < 0.01 * expected.max()
    # Without the part in the axes' span the floor itself is seen, small as it is.
    outside = np.linalg.svd(data.H)[2][3:]
    np.testing.assert_allclose(outside @ found @ outside.T, floor * np.eye(3), atol=0.02 * floor)


@pytest.mark.parametrize("n_cones", [1, 2, 9])
def test_three_levels_are_the_eigenvalues_of_lemma_14(n_cones):
    axes = equiangular_directions(n_cones, 40, 0.83, rng=0)
    floor, weights = second_moments(axes, 0.2, 2.0)
    exact = np.linalg.eigvalsh(floor * np.eye(40) + axes.T @ np.diag(weights) @ axes)[::-1]
    spectrum = predicted_spectrum(40, n_cones, 0.2, 0.83, mean_squared_length=2.0)
    np.testing.assert_allclose(eigenvalues(spectrum), exact, rtol=1e-10)


@pytest.mark.parametrize(("floor", "gap"), [(1.0, 1e-3), (1.0, 1.0), (0.02, 5.0)])
def test_the_largest_epsilon_is_where_the_condition_turns(floor, gap):
    def condition(epsilon):
        return (floor + epsilon) / (floor - epsilon) < (floor + gap - epsilon) / (floor + epsilon)

    epsilon = ConeSpectrum(floor, gap, 9.0, 3, 9).largest_epsilon
    assert 0 < epsilon < floor
    assert condition(0.999 * epsilon)
    assert not condition(1.001 * epsilon)


def test_no_epsilon_without_floor_or_gap():
    assert ConeSpectrum(0.0, 1.0, 9.0, 3, 9).largest_epsilon == 0
    assert ConeSpectrum(1.0, 0.0, 9.0, 3, 9).largest_epsilon == 0


def drawn(n_samples, size_angle=0.3, **options):
    options = {"mean_squared_lengths": 1.0, "between_angle": 1.2, "project": False} | options
    X = circular_cones(n_samples, 12, 4, size_angle=size_angle, rng=2, **options).X
    return np.linalg.svd(X, compute_uv=False), float(np.square(X).sum())


def test_the_condition_holds_for_many_points_and_then_the_ratio_is_right():
    values, total = drawn(40_000, size_angle=0.6)
    found = ratio_condition(values, 4, 40_000, 12, squared_norm=total)
    assert found.holds
    assert found.deviation < found.largest_epsilon
    ratios = values[1:-1] / values[2:]
    assert 2 + ratios.argmax() == 4
    expected = predicted_spectrum(12, 4, 0.6, 1.2)
    assert found.spectrum.floor == pytest.approx(expected.floor, rel=0.02)
    assert found.spectrum.gap == pytest.approx(expected.gap, rel=0.05)
    assert found.spectrum.first == pytest.approx(expected.first, rel=0.02)
    # All twelve values are given, so that their mean is the floor as well.
    assert ratio_condition(values, 4, 40_000, 12).spectrum.floor == pytest.approx(found.spectrum.floor)


def test_the_leading_values_alone_overestimate_the_floor():
    values, total = drawn(300, size_angle=0.6)
    with_norm = ratio_condition(values[:6], 4, 300, 12, squared_norm=total).spectrum.floor
    assert ratio_condition(values[:6], 4, 300, 12).spectrum.floor > with_norm


@pytest.mark.parametrize("k", [2, 3, 5, 6])
def test_the_condition_fails_for_another_number_of_cones(k):
    values, total = drawn(40_000, size_angle=0.6)
    assert not ratio_condition(values, k, 40_000, 12, squared_norm=total).holds


def test_the_condition_fails_for_few_points_and_for_unequal_lengths():
    values, total = drawn(60, size_angle=0.6)
    assert not ratio_condition(values, 4, 60, 12, squared_norm=total).holds
    values, total = drawn(40_000, size_angle=0.6, mean_squared_lengths=(1.0, 4.0, 16.0, 64.0))
    assert not ratio_condition(values, 4, 40_000, 12, squared_norm=total).holds


def test_wrong_counts_are_refused():
    for k in (1, 5):
        with pytest.raises(InvalidParameterError, match="between 2 and 4"):
            ratio_condition(np.arange(5, 0, -1), k, 10, 20)
    with pytest.raises(InvalidParameterError, match="between 1 and n_features cones"):
        predicted_spectrum(3, 4, 0.1, 0.5)


@pytest.mark.parametrize(("n_features", "n_cones"), [(2, 1), (2, 2), (5, 5), (7, 1)])
def test_the_formulas_of_the_paper_for_few_features_and_cones(n_features, n_cones):
    size, between, length = 0.3, 0.8, 2.5
    f = 0.5 - np.sin(2 * size) / (4 * size)
    a = length * f / (n_features - 1)
    b = (length * (1 - f) - a) / n_cones
    found = predicted_spectrum(n_features, n_cones, size, between, mean_squared_length=length)
    assert found.floor == pytest.approx(a)
    assert found.gap == pytest.approx(b * (1 - np.cos(between)) if n_cones > 1 else 0.0)
    assert found.first == pytest.approx(a + b * (1 + (n_cones - 1) * np.cos(between)))
    assert eigenvalues(found).sum() == pytest.approx(length)


@pytest.mark.parametrize(("n_features", "n_cones"), [(1, 1), (3, 0), (3, 4)])
def test_numbers_without_a_spectrum(n_features, n_cones):
    with pytest.raises(InvalidParameterError, match=f"got n_features={n_features} and n_cones={n_cones}"):
        predicted_spectrum(n_features, n_cones, 0.1, 0.5)


@pytest.mark.parametrize("squared_norm", [None, 90.0])
def test_levels_and_deviation_of_what_was_seen(squared_norm):
    squares = np.array([40.0, 12.0, 10.0, 3.0, 2.0])
    found = ratio_condition(np.sqrt(squares), 3, 2.0, 9, squared_norm=squared_norm)
    floor = 1.25 if squared_norm is None else (45.0 - 31.0) / 6
    assert found.spectrum.floor == pytest.approx(floor)
    assert found.spectrum.gap == pytest.approx(5.5 - floor)
    assert found.spectrum.first == pytest.approx(20.0)
    assert (found.spectrum.n_cones, found.spectrum.n_features) == (3, 9)
    assert found.deviation == pytest.approx(max(0.5, 1.5 - floor, floor - 1.0))
    assert found.holds == (found.deviation < found.largest_epsilon)
    assert ratio_condition(np.sqrt(squares), 4, 2.0, 9).spectrum.floor == pytest.approx(1.0)
    assert ratio_condition(np.sqrt(squares), 4, 2.0, 9, squared_norm=60.0).spectrum.floor == 0.0
    for k in (1, 5):
        with pytest.raises(InvalidParameterError, match=f"k between 2 and 4.*Got {k}"):
            ratio_condition(np.sqrt(squares), k, 2.0, 9)


def test_second_moments_of_equal_shares_and_lengths():
    axes, f = np.eye(3, 5), 0.5 - np.sin(0.8) / 1.6
    floor, weights = second_moments(axes, 0.4, 2.0)
    assert floor == pytest.approx(2.0 * f / 4)
    np.testing.assert_allclose(weights, 2.0 * (1 - f - f / 4) / 3)
