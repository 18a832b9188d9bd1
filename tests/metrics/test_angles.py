"""The mean-removed spectral angle."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import NonFiniteDataError, ShapeError
from nonneg.metrics import mean_removed_angles, mean_removed_spectral_angle, spectral_angles


def test_formula():
    x, y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
    a, b = x - x.mean(), y - y.mean()
    expected = 100 / np.pi * np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert mean_removed_angles([x], [y])[0, 0] == pytest.approx(expected, rel=1e-12)


def test_offset_and_scale_do_not_matter():
    rng = np.random.default_rng(0)
    H = rng.random((4, 30))
    other = H[[2, 0, 3, 1]] * rng.uniform(0.5, 20, size=(4, 1)) + rng.normal(size=(4, 1))
    assert mean_removed_spectral_angle(H, other) == pytest.approx(0, abs=1e-12)


def test_ends_of_the_scale():
    x = np.array([[1.0, 2.0, 3.0]])
    assert mean_removed_spectral_angle(x, x) == 0
    assert mean_removed_spectral_angle(x, -x) == pytest.approx(100)
    assert mean_removed_spectral_angle(x, [[1.0, -2.0, 1.0]]) == pytest.approx(50)
    assert mean_removed_spectral_angle(x, [[0.3, 0.3, 0.3]]) == 50
    assert mean_removed_spectral_angle(np.zeros((1, 3)), x) == 50


def test_pairs_have_the_smallest_sum():
    rng = np.random.default_rng(1)
    true, found = rng.random((5, 12)), rng.random((5, 12))
    angles = mean_removed_angles(true, found)
    from itertools import permutations

    best = min(np.mean([angles[i, p[i]] for i in range(5)]) for p in permutations(range(5)))
    assert mean_removed_spectral_angle(true, found) == pytest.approx(best)


def test_small_angles_keep_their_digits():
    x = np.array([1.0, 0.0, -1.0])
    y = x + 1e-9 * np.array([1.0, -2.0, 1.0])
    expected = 100 / np.pi * 1e-9 * np.sqrt(6) / np.sqrt(2)
    assert mean_removed_angles([x], [y])[0, 0] == pytest.approx(expected, rel=1e-6)


def test_bad_input():
    with pytest.raises(ShapeError, match="equal n_features"):
        mean_removed_angles(np.ones((2, 3)), np.ones((2, 4)))
    for one, other in ((np.ones((2, 3)), np.ones((1, 3, 3))), (np.ones((1, 3, 3)), np.ones((2, 3)))):
        with pytest.raises(ShapeError, match="Expected two arrays of shape"):
            mean_removed_angles(one, other)
    with pytest.raises(ShapeError, match="the same number of components in both sets, got 2 and 3"):
        mean_removed_spectral_angle(np.eye(3)[:2], np.eye(3))
    with pytest.raises(NonFiniteDataError, match="`found`"):
        mean_removed_angles(np.eye(2), np.full((2, 2), np.nan))


def test_no_component_has_no_mean_angle():
    """An error, and no NaN with a warning."""
    with pytest.raises(ShapeError, match="at least one component"):
        mean_removed_spectral_angle(np.ones((0, 3)), np.ones((0, 3)))


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_spectral_angles_are_those_of_plain_cosines(scale):
    rng = np.random.default_rng(2)
    true, found = rng.random((3, 7)), rng.random((4, 7))
    cosines = true @ found.T / np.outer(np.linalg.norm(true, axis=1), np.linalg.norm(found, axis=1))
    np.testing.assert_allclose(spectral_angles(scale * true, found), np.degrees(np.arccos(cosines)))
    np.testing.assert_allclose(
        mean_removed_angles(scale * true, found), mean_removed_angles(true, found / scale), rtol=1e-9
    )


def test_spectral_angles_at_their_ends():
    true = [[1.0, 0.0], [0.0, 0.0]]
    found = [[3.0, 0.0], [0.0, 0.1], [-2.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    np.testing.assert_allclose(spectral_angles(true, found), [[0, 90, 180, 45, 90], [90] * 5], atol=1e-12)


def test_one_nan_is_enough_to_be_refused():
    holes = np.eye(3)
    holes[1, 2] = np.inf
    for one, other, name in ((holes, np.eye(3), "true"), (np.eye(3), holes, "found")):
        with pytest.raises(NonFiniteDataError, match=f"`{name}`"):
            spectral_angles(one, other)
