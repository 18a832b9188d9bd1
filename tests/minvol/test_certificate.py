"""Certificate of a minimum-volume fit, from numbers given by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.minvol.certificate import FITS, STATIONARY, noise_fit, scatter, scattering, stationarity
from nonneg.minvol.noise import NoiseLevel
from nonneg.results import Verdict


def test_purity_and_facets_are_those_of_shares():
    W = np.array([[0.2, 0.2, 0.0], [0.0, 0.3, 0.1], [0.0, 0.0, 0.0], [0.9, 0.0, 0.1]])
    shares, n_without = scatter(as_data_matrix(np.ones((4, 2))), W)
    np.testing.assert_allclose(shares, [0.9, 0.75, 0.25])
    np.testing.assert_array_equal(n_without, [2, 2, 2])


@pytest.mark.parametrize(("residual", "good"), [(STATIONARY, True), (1.01 * STATIONARY, False)])
def test_fit_and_volume_balance_up_to_a_limit(residual, good):
    found = stationarity(residual)
    assert found.holds is good
    assert (found.number, found.threshold) == (residual, STATIONARY)
    assert ("fit and volume balance" in found.sentence) is good
    assert f"is {residual:.2e} times that of its volume term" in found.sentence


@pytest.mark.parametrize(("n", "m", "k"), [(2000, 40, 3), (400, 60, 9)])
@pytest.mark.parametrize(("share", "good"), [(FITS, True), (1.01 * FITS, False)])
def test_the_residual_of_noise_has_the_degrees_of_freedom_that_are_left(n, m, k, share, good):
    # The mean of the Tracy-Widom law, by which the largest singular value gives the level.
    a, b = np.sqrt(n - k - 0.5), np.sqrt(m - k - 0.5)
    mean = (a + b) ** 2 - 1.2065 * (a + b) * (1 / a + 1 / b) ** (1 / 3)
    white = 0.5 * (np.sqrt(n) + np.sqrt(m)) / np.sqrt(mean)
    noise = NoiseLevel(0.5, True, np.eye(m), white * np.sqrt((n - k) * (m - k)))
    error = share * white * np.sqrt(n * (m - k + 1)) * (1 - 1e-12)
    found = noise_fit(as_data_matrix(np.ones((n, m))), error, k, noise)
    assert found.number == pytest.approx(share)
    assert found.holds is good
    assert ("no more than noise" in found.sentence) is good
    assert found.quantities["noise_level"] == 0.5
    given = noise_fit(as_data_matrix(np.ones((n, m))), 1.0, k, NoiseLevel(0.5, False, np.eye(m)))
    assert (given.number, given.verdict) == (None, Verdict.NOT_VERIFIABLE)
    assert f"beyond {k} components" in given.sentence


@pytest.mark.parametrize(
    ("purity", "facets", "verdict"),
    [
        ([0.9, 0.5, 0.7, 0.6], [3, 9, 9, 9], Verdict.NOT_VERIFIABLE),
        ([0.9, 0.5 - 1e-7, 0.7, 0.6], [3, 3, 3, 3], Verdict.NOT_VERIFIABLE),
        ([0.9, 0.49, 0.7, 0.6], [3, 3, 3, 3], Verdict.FAILS),
        ([0.9, 0.5, 0.7, 0.6], [3, 2, 3, 3], Verdict.FAILS),
    ],
)
def test_purity_and_facets_that_are_needed(purity, facets, verdict):
    found = scattering(np.array(purity), np.array(facets))
    assert found.verdict is verdict
    assert found.number == min(purity)
    assert found.threshold == 0.5
    assert f"number of samples without it is at least {min(facets)} (needed: 3)" in found.sentence
    assert found.quantities == {
        "smallest_purity": min(purity), "fewest_samples_on_a_facet": min(facets), "needed_purity": 0.5,
        "needed_samples_on_a_facet": 3,
    }  # fmt: skip


def test_one_component_has_nothing_to_identify():
    one = scattering(np.array([1.0]), np.array([0]))
    assert one.holds
    assert scattering(np.array([1.0, 1.0]), np.array([1, 1])).verdict is Verdict.NOT_VERIFIABLE
