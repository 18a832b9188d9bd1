from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import low_rank_plus_noise
from nonneg.exceptions import InvalidParameterError, UnknownNameError


@pytest.mark.parametrize("noise", ["gaussian", "gamma"])
def test_without_noise_the_data_are_the_product(noise):
    data = low_rank_plus_noise(30, 20, 4, noise=noise, level=0, rng=0)
    np.testing.assert_allclose(data.X, data.W @ data.H)
    assert np.linalg.matrix_rank(data.X) == 4


@pytest.mark.parametrize("noise", ["gaussian", "poisson", "gamma"])
def test_noise_has_the_stated_level(noise):
    data = low_rank_plus_noise(200, 150, 20, noise=noise, level=0.2, rng=1)
    clean = data.W @ data.H
    left = data.X - clean
    relative = {
        "gaussian": left.std() / np.sqrt(np.mean(clean**2)),
        "poisson": np.sqrt(np.mean(left**2 / clean) / clean.mean()),
        "gamma": (left / clean).std(),
    }
    assert relative[noise] == pytest.approx(0.2, rel=0.03)


def test_counts_are_whole_numbers_of_the_stated_mean():
    data = low_rank_plus_noise(200, 150, 20, noise="poisson", level=0.5, rng=2)
    np.testing.assert_array_equal(data.X, np.rint(data.X))
    assert data.X.mean() == pytest.approx(4, rel=0.05)


def test_multiplied_noise_leaves_no_zero():
    assert low_rank_plus_noise(100, 80, 5, noise="gamma", level=0.5, rng=3).X.min() > 0


def test_float32_and_the_seed_are_kept():
    first, second = (low_rank_plus_noise(20, 10, 3, rng=4, dtype=np.float32) for _ in range(2))
    assert first.X.dtype == first.W.dtype == first.H.dtype == np.float32
    np.testing.assert_array_equal(first.X, second.X)
    assert first.X.min() >= 0


def test_unknown_noise_is_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'gaussian'"):
        low_rank_plus_noise(5, 5, 2, noise="gausian")


@pytest.mark.parametrize(("noise", "level"), [("gaussian", -0.1), ("poisson", 0.0)])
def test_impossible_levels_are_refused(noise, level):
    with pytest.raises(InvalidParameterError, match="level must be at least 0"):
        low_rank_plus_noise(5, 5, 2, noise=noise, level=level)
