"""Abundances by their definitions, and what is said about the mixtures in an image."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from nonneg.applications.hyperspectral.abundances import CONSTRAINTS, Mixtures, image_statements, weights_of
from nonneg.certificates.certificate import Verdict

ENDMEMBERS = np.array([[1.0, 0.2, 0.1, 0.4], [0.1, 1.0, 0.3, 0.2], [0.3, 0.1, 0.9, 0.8]])


SPECTRA = ENDMEMBERS[:2]


def constrained(spectrum, matrix, total):
    """Least squares with nonnegative weights of a given sum: the sum as one heavy row."""
    heavy = 1e5
    return nnls(np.vstack([matrix.T, heavy * np.ones(len(matrix))]), np.append(spectrum, heavy * total))[0]


@pytest.mark.parametrize("constraint", sorted(CONSTRAINTS))
def test_abundances_are_those_of_least_squares(constraint, rng):
    spectra = 2 * rng.random((12, 4))
    found = weights_of(spectra, ENDMEMBERS, constraint)
    for row, spectrum in zip(found, spectra, strict=True):
        free = nnls(ENDMEMBERS.T, spectrum)[0]
        if constraint == "sum-to-one" or (constraint == "at-most-one" and free.sum() > 1):
            expected = constrained(spectrum, ENDMEMBERS, 1.0)
        else:
            expected = free
        np.testing.assert_allclose(row, expected, atol=1e-4)


def image(energies, squared_residual):
    return Mixtures(np.zeros((10, 2)), np.zeros(10), np.diag(energies), squared_residual, 10, 9.0)


@pytest.mark.parametrize(
    ("squared_residual", "verdict"), [(2.0, Verdict.HOLDS), (7.9, Verdict.HOLDS), (8.1, Verdict.FAILS)]
)
def test_no_spectra_leave_less_than_the_bound(squared_residual, verdict):
    # Eckart and Young: two spectra leave at least the squares of the third direction on.
    found = image_statements(image([50.0, 48.0, 1.5, 0.5], squared_residual), SPECTRA)[0]
    assert found.verdict == verdict
    assert found.number == pytest.approx(math.sqrt(squared_residual / 2.0))
    assert found.quantities["lower_bound"] == pytest.approx(math.sqrt(0.02))
    assert found.quantities["relative_error"] == pytest.approx(math.sqrt(squared_residual / 100))
    assert found.quantities["n_pixels"] == 10
    assert f"leave {10 * math.sqrt(squared_residual):.3g}% of the image" in found.sentence
    assert "no 2 spectra leave less than 14.1%" in found.sentence


def test_images_that_spectra_explain_up_to_rounding():
    found = image_statements(image([60.0, 40.0, 0.0], 1e-12), SPECTRA)[0]
    assert (found.verdict, found.number) == (Verdict.HOLDS, None)
    found = image_statements(image([60.0, 40.0, 0.0], 1e-6), SPECTRA)[0]
    assert found.verdict == Verdict.NOT_VERIFIABLE
    assert image_statements(image([60.0, 0.0], 0.0), SPECTRA[:1])[0].verdict == Verdict.HOLDS


@pytest.mark.parametrize(
    ("spectra", "residual", "verdict", "word"),
    [
        (SPECTRA, 0.5, "holds", "none too bright"),
        (0.1 * SPECTRA, 0.5, "fails", "is dim"),
        (0.0 * SPECTRA, 0.0, "fails", "is dim"),
        (10 * SPECTRA, 0.5, "fails", "is too bright"),
    ],
)
def test_endmembers_that_are_dim_or_too_bright_are_said(spectra, residual, verdict, word):
    found = image_statements(image([60.0, 40.0, 1.0], 10 * residual**2), spectra)[-1]
    assert (found.name, found.verdict) == ("endmember-brightness", verdict)
    assert word in found.sentence


def test_the_bound_is_below_the_error_where_all_sums_are_rounded_in_one_direction():
    pixels = np.repeat(0.1 * np.array([[1.0, 1.1, 0.3, 0.9, 1.0]]), 1000, axis=0)
    found = Mixtures(np.zeros((1, 1)), np.zeros(1), np.zeros((5, 5)))
    for _ in range(200):
        found.gram += pixels.T @ pixels
        found.n_pixels += len(pixels)
    statement = image_statements(found, pixels[:1])[0]
    assert statement.quantities["lower_bound"] == 0.0  # that of copies of one pixel
    assert statement.verdict == Verdict.HOLDS
