"""Random orthogonal matrices, and rounding removed from nearly orthogonal ones."""

from __future__ import annotations

import numpy as np

from nonneg.transforms.rotations.group import newton_schulz_step, orthogonality_error, random_orthogonal


def test_a_newton_schulz_step_squares_the_error() -> None:
    Q = random_orthogonal(20, 0)
    spoiled = Q + 1e-6 * np.random.default_rng(1).standard_normal((20, 20))
    assert orthogonality_error(spoiled) > 1e-7
    assert orthogonality_error(newton_schulz_step(spoiled)) < 1e-10
    assert orthogonality_error(newton_schulz_step(Q[:, :7]).T) < 1e-15


def test_random_matrices_are_orthogonal_and_repeat() -> None:
    assert np.array_equal(random_orthogonal(9, 3), random_orthogonal(9, 3))
    assert orthogonality_error(random_orthogonal(9, 3)) < 1e-14
    # Uniform: every entry has mean 0 and variance 1/m.
    many = np.stack([random_orthogonal(4, seed) for seed in range(400)])
    assert np.abs(many.mean(axis=0)).max() < 0.12
    assert np.abs((many**2).mean(axis=0) - 0.25).max() < 0.08
