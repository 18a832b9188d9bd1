"""Frames and a learned model, each function against its formula."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import InvalidParameterError
from nonneg.transforms.encoding import (
    automatic_eps0,
    averaged_frames,
    coefficient_variances,
    encode,
    mean_objectives,
)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("n_realizations", [1, 2])
def test_an_average_holds_the_frames_beside_each_other(width, n_realizations):
    Y = np.random.default_rng(0).standard_normal((n_realizations, 7, 3))
    found = averaged_frames(Y, width)
    assert found.shape == (width * n_realizations, 7, 3)
    for n in range(7):
        first = min(max(n - (width - 1) // 2, 0), 7 - width)
        held = Y[:, first : first + width].swapaxes(0, 1).reshape(-1, 3)
        np.testing.assert_array_equal(found[:, n], held)


def test_more_frames_than_there_are_cannot_be_averaged():
    Y = np.ones((1, 3, 2))
    assert averaged_frames(Y, 3).shape == (3, 3, 2)
    with pytest.raises(InvalidParameterError, match="average_frames=4 is more than the number of frames 3"):
        averaged_frames(Y, 4)


def test_variances_are_mean_squares_and_the_offset_a_tenth_of_them():
    rng = np.random.default_rng(1)
    Y, transform = rng.standard_normal((3, 5, 4)), rng.standard_normal((4, 4))
    np.testing.assert_allclose(
        coefficient_variances(Y, transform), np.mean((Y @ transform.T) ** 2, axis=0), rtol=1e-13
    )
    assert automatic_eps0(Y) == pytest.approx(0.1 * np.mean(Y**2))


def test_activations_of_variances_of_a_model_are_found_and_their_objective_is_the_mean():
    rng = np.random.default_rng(2)
    W, H, eps0 = rng.random((6, 2)) + 0.2, np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]]), 0.01
    np.testing.assert_allclose(encode(W @ H, H, eps0), W, rtol=1e-3)
    V, model = rng.random((6, 4)), W @ H + eps0
    expected = ((V + eps0) / model + np.log(model)).mean(axis=1)
    np.testing.assert_allclose(mean_objectives(V, W, H, eps0), expected, rtol=1e-13)
