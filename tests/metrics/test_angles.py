"""Spectral angles, and how many anchors were found."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.metrics import anchors_found, spectral_angles


def test_bad_input():
    with pytest.raises(ShapeError, match="equal n_features"):
        spectral_angles(np.ones((2, 3)), np.ones((2, 4)))
    for one, other in ((np.ones((2, 3)), np.ones((1, 3, 3))), (np.ones((1, 3, 3)), np.ones((2, 3)))):
        with pytest.raises(ShapeError, match=r"of shape .n_components, n_features"):
            spectral_angles(one, other)
    with pytest.raises(NonFiniteDataError, match="`estimated`"):
        spectral_angles(np.eye(2), np.full((2, 2), np.nan))


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_spectral_angles_are_those_of_plain_cosines(scale):
    rng = np.random.default_rng(2)
    true, found = rng.random((3, 7)), rng.random((4, 7))
    cosines = true @ found.T / np.outer(np.linalg.norm(true, axis=1), np.linalg.norm(found, axis=1))
    np.testing.assert_allclose(spectral_angles(scale * true, found), np.degrees(np.arccos(cosines)))
    tiny = spectral_angles([[1.0, 0.0]], [[scale, 1e-9 * scale]])
    assert tiny[0, 0] == pytest.approx(np.degrees(1e-9), rel=1e-6)  # the cosine would lose it


def test_spectral_angles_at_their_ends():
    true = [[1.0, 0.0], [0.0, 0.0]]
    found = [[3.0, 0.0], [0.0, 0.1], [-2.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    np.testing.assert_allclose(spectral_angles(true, found), [[0, 90, 180, 45, 90], [90] * 5], atol=1e-12)


def test_one_nan_is_enough_to_be_refused():
    holes = np.eye(3)
    holes[1, 2] = np.inf
    for one, other, name in ((holes, np.eye(3), "true"), (np.eye(3), holes, "estimated")):
        with pytest.raises(NonFiniteDataError, match=f"`{name}`"):
            spectral_angles(one, other)


def test_share_of_anchors():
    assert anchors_found([1, 5, 9], [9, 2, 1]) == pytest.approx(2 / 3)
    assert anchors_found(np.array([4]), [4]) == 1.0
    with pytest.raises(InvalidParameterError, match="at least one true anchor"):
        anchors_found([], [1])
