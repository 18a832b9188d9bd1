"""Small separable data."""

from __future__ import annotations

import pytest

from nonneg.datasets import separable_dirichlet


@pytest.fixture(scope="session")
def clean():
    """90 points of 20 features between 6 anchors, without noise."""
    return separable_dirichlet(90, 20, 6, rng=3)


@pytest.fixture(scope="session")
def noisy():
    """90 points of 20 features between 6 anchors at 25 dB."""
    return separable_dirichlet(90, 20, 6, snr=25, rng=3)
