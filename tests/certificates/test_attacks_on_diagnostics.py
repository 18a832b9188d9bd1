"""Data built against what is said of energies, transforms, noise and purification: none makes it false."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.minvol.certificate import noise_fit
from nonneg.minvol.noise import noise_level
from nonneg.purification.certificate import correlation_statement
from nonneg.results import Verdict
from nonneg.transforms.encoding import encode
from nonneg.transforms.selection import TransformChoice, choice_statement, chosen


def held_out(fixed, learned):
    """Return the choice between two transforms, by their objectives on three blocks."""
    return chosen(np.array([np.broadcast_to(fixed, 3), learned], dtype=float), [4, 4, 4], 40)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["fixed", "learned"])
def test_likelihoods_that_are_not_numbers_choose_nothing(bad, which):
    rows = {"fixed": np.zeros(3), "learned": np.array([-1.0, -1.1, -0.9])}
    rows[which][:] = bad
    with np.errstate(invalid="ignore"):
        choice = held_out(**rows)
    assert choice.name == "dct"
    found = choice_statement(choice)
    assert (found.verdict, found.number) == (Verdict.NOT_VERIFIABLE, None)
    assert "nan" not in found.sentence
    assert " inf" not in found.sentence


def test_likelihoods_that_are_equal_up_to_rounding_choose_nothing():
    assert held_out(-34.0, np.full(3, -34.0) - 1e-14).name == "dct"
    assert held_out(-34.0, np.full(3, -35.0)).name == "learned"


def test_a_transform_that_is_kept_although_another_is_better_on_average():
    learned = np.array([-1.0, 1.5, -2.0])
    found = choice_statement(held_out(0.0, learned))
    assert "The DCT is kept" in found.sentence
    error = np.std(learned) / math.sqrt(2)
    assert f"0.5 lower per coefficient than that of the DCT, with a standard error of {error:.2g}:" in (
        found.sentence
    )
    assert found.sentence.endswith(": not clearly lower.")
    assert "1.5 higher per" in choice_statement(held_out(0.0, np.abs(learned))).sentence


def test_a_difference_that_five_digits_hide_is_given():
    found = choice_statement(held_out(690.1, 690.1 - np.array([1e-3, 1.1e-3, 0.9e-3])))
    assert "The learned transform is used" in found.sentence
    assert (
        "0.001 lower per coefficient than that of the DCT, with a standard error of 5.8e-05" in found.sentence
    )


def test_frames_that_are_too_few_for_their_averages_are_not_too_few_to_hold_out():
    found = choice_statement(TransformChoice("dct", ("dct",), (), 0.0, 500, 0))
    assert "500 frames are too few to hold out blocks of 4 (or of as many as are averaged)" in found.sentence


@pytest.mark.parametrize(
    ("dtype", "unit"), [(np.float64, 2.0**-1000), (np.float64, 2.0**900), (np.float32, 2.0**-90)]
)
@pytest.mark.parametrize("own", [1.0, None])
def test_activations_of_held_out_frames_have_no_units(dtype, unit, own, rng):
    V, H = (rng.random(shape).astype(dtype) for shape in ((9, 6), (2, 6)))
    own = unit if own is None else own
    found = encode(V * dtype(unit), H * dtype(own), 0.1 * unit) * (own / unit)
    np.testing.assert_allclose(found, encode(V, H, 0.1), rtol=1e-4)


def of_components(n, m, k, sigma, rng, dtype=np.float64, unit=1.0):
    """Return the statement about white noise on mixtures, fitted by their true components."""
    H = rng.random((k, m))
    X = (unit * (rng.dirichlet(np.ones(k), n) @ H + sigma * rng.standard_normal((n, m)))).astype(dtype)
    directions = np.linalg.qr((H[1:] - H[0]).T)[0]
    rest = X / unit - H[0]
    error = unit * float(np.linalg.norm(rest - rest @ directions @ directions.T))
    data = as_data_matrix(X)
    return noise_fit(data, error, k, noise_level(data, k)), (data, error)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("n", "m", "k"),
    [(60, 50, 20), (60, 50, 30), (300, 40, 36), (40, 12, 9), (12, 8, 6), (7, 5, 4), (500, 30, 3)],
)
def test_the_right_components_are_not_said_to_be_wrong(n, m, k, dtype):
    # k components take more than a share of k / m of the largest direction of small noise.
    for draw in range(3):
        found, _ = of_components(n, m, k, 0.01, np.random.default_rng(draw), dtype)
        assert found.verdict is not Verdict.FAILS
        if (n - k) * (m - k) >= 1000:
            assert found.holds


@pytest.mark.parametrize("unit", [1e-140, 1e-30, 1e30, 1e140])
def test_noise_has_no_units(unit):
    plain, scaled = (
        of_components(200, 20, 3, 0.01, np.random.default_rng(0), unit=each)[0] for each in (1.0, unit)
    )
    assert scaled.number == pytest.approx(plain.number, rel=1e-6)


def test_a_residual_twice_as_large_as_noise_is_still_said_to_be():
    found, (data, error) = of_components(300, 30, 4, 0.01, np.random.default_rng(0))
    assert found.holds
    wrong = noise_fit(data, 2.0 * error, 4, noise_level(data, 4))
    assert wrong.verdict is Verdict.FAILS
    assert "the iterations ended early" in wrong.sentence  # `max_iter` may have left it there


def test_one_strong_direction_is_not_taken_for_noise_in_all(rng):
    # Beyond three components there is one direction. Noise as strong in all of them would leave much more.
    left, right = (np.linalg.qr(rng.standard_normal((size, 4)))[0] for size in (300, 40))
    data = as_data_matrix(left * [9.0, 5.0, 4.0, 1.0] @ right.T)
    level = noise_level(data, 3)
    assert math.sqrt(300 * 38) * level.sigma > 4.0  # four times what the best three components leave
    assert noise_fit(data, 3.0, 3, level).verdict is Verdict.NOT_VERIFIABLE
    near = noise_fit(data, 1.02, 3, level)
    assert "is not white: another component may be missing" in near.sentence


@pytest.mark.parametrize("noise", [1e-5, 0.0])
def test_noise_that_is_too_weak_to_be_measured_is_not_said_to_be_nothing(noise, rng):
    X = rng.dirichlet(np.ones(3), 60) @ rng.random((3, 9)) + noise * rng.standard_normal((60, 9))
    found = noise_fit(as_data_matrix(X), 1.0, 3, noise_level(as_data_matrix(X), 3))
    assert found.verdict is Verdict.NOT_VERIFIABLE
    assert "nothing is left" not in found.sentence
    assert (
        "1 component is"
        in noise_fit(as_data_matrix(X), 1.0, 1, noise_level(as_data_matrix(X), 1, 0.1)).sentence
    )


@pytest.mark.parametrize("constants", [[0.1, 0.3, 0.7], [1e-150, 3e-150, 7e-150], [0.1, 0.1, 1e9 / 3]])
def test_weights_that_differ_by_rounding_are_not_correlated(constants):
    weights = np.tile(constants, (37, 1))
    weights[::3] *= 1.0 + 2e-16
    assert correlation_statement(weights).verdict is Verdict.NOT_VERIFIABLE
