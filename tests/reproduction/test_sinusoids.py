"""Sinusoids fitted to atoms."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.tlnmf.sinusoids import fit_sinusoids
from scipy.optimize import minimize_scalar

from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError


def test_sinusoids_are_found_exactly():
    rng = np.random.default_rng(0)
    frequency = rng.uniform(20, 2480, size=30)
    amplitude, phase = rng.uniform(0.1, 4, size=30), rng.uniform(-np.pi, np.pi, size=30)
    atoms = amplitude[:, None] * np.cos(
        2 * np.pi * frequency[:, None] * np.arange(200) / 5000 + phase[:, None]
    )
    fit = fit_sinusoids(atoms, sample_rate=5000)
    np.testing.assert_allclose(fit.frequency, frequency, atol=1e-5)
    np.testing.assert_allclose(fit.amplitude, amplitude, rtol=1e-6)
    np.testing.assert_allclose(np.exp(1j * fit.phase), np.exp(1j * phase), atol=1e-6)
    assert fit.residual_share.max() < 1e-12


def test_the_fit_is_the_best_of_a_slow_search():
    rng = np.random.default_rng(1)
    m = np.arange(40)
    for _ in range(3):
        atom = np.cos(0.9 * m + 0.3) * np.hanning(40) + 0.3 * rng.normal(size=40)

        def left(w, atom=atom):
            pair = np.stack([np.cos(w * m), np.sin(w * m)], axis=1)
            return np.linalg.lstsq(pair, atom)[1][0]

        first = min(np.linspace(0.1, 3.0, 400), key=left)
        found = minimize_scalar(left, (first - 0.01, first, first + 0.01), options={"xtol": 1e-9})
        best = found.fun / (atom @ atom)
        assert fit_sinusoids(atom).residual_share[0] == pytest.approx(best, rel=1e-6)


def test_noise_leaves_its_share():
    rng = np.random.default_rng(2)
    m = np.arange(400)
    noise = rng.normal(size=400)
    carrier = np.cos(0.7 * m)
    atom = carrier / np.linalg.norm(carrier) + 0.5 * noise / np.linalg.norm(noise)
    fit = fit_sinusoids(atom)
    assert fit.residual_share[0] == pytest.approx(0.25 / 1.25, abs=0.03)
    assert fit.frequency[0] == pytest.approx(0.7 / (2 * np.pi), abs=1e-4)


def test_silence():
    fit = fit_sinusoids(np.zeros((1, 8)))
    assert np.isnan(fit.frequency[0])
    assert (fit.amplitude[0], fit.phase[0], fit.residual_share[0]) == (0, 0, 0)


def test_bad_input():
    with pytest.raises(ShapeError, match=r"at least 4 samples, got \(2, 3\)"):
        fit_sinusoids(np.ones((2, 3)))
    with pytest.raises(NonFiniteDataError, match="NaN"):
        fit_sinusoids([np.nan, 1.0, 2.0, 3.0])
    with pytest.raises(InvalidParameterError, match="sample_rate must be positive, got 0"):
        fit_sinusoids(np.ones(5), sample_rate=0)


def test_frequencies_end_half_a_period_before_both_ends():
    """A constant and an alternating atom are best fitted at the ends."""
    atoms = np.stack([np.ones(10), (-1.0) ** np.arange(10)])
    np.testing.assert_allclose(fit_sinusoids(atoms, sample_rate=10).frequency, [0.5, 4.5], atol=1e-6)
    m = np.arange(4)
    fit = fit_sinusoids(np.cos(2.0 * m + 0.4))
    assert fit.frequency[0] == pytest.approx(2.0 / (2 * np.pi), abs=1e-6)
