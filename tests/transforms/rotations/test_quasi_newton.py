"""The descent over orthogonal matrices: it finds eigenvectors, and says when a search fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nonneg.exceptions import UnknownNameError
from nonneg.transforms.rotations.group import orthogonality_error, random_orthogonal, skew_part
from nonneg.transforms.rotations.quasi_newton import newton_direction, rotation_step


class OneDiagonal:
    """sum_a c_a (P S P')_aa: least where P has the eigenvectors of S in the order of c."""

    def __init__(self, S: np.ndarray, c: np.ndarray) -> None:
        self.S, self.c = S, c

    def at(self, P: Any) -> Any:
        return (P,)

    def value(self, point: Any) -> Any:
        P = point[0]
        return np.sum(self.c[:, None] * (P @ self.S) * P, axis=(1, 2))

    def gradient(self, point: Any) -> Any:
        P = point[0]
        return 2.0 * self.c[:, None] * (P @ self.S @ np.swapaxes(P, 1, 2))

    def slope(self, point: Any, velocity: Any) -> Any:
        return np.sum(2.0 * self.c[:, None] * (point[0] @ self.S) * velocity, axis=(1, 2))

    def curvature(self, point: Any) -> Any:
        power = np.einsum("bai,ij,baj->ba", point[0], self.S, point[0])
        return np.abs((self.c[:, None] - self.c) * (power[:, None, :] - power[:, :, None])) + 0.1


@pytest.mark.parametrize("search", ["wolfe", "backtracking"])
@pytest.mark.parametrize("retraction", ["exponential", "polar"])
def test_either_retraction_serves(retraction: str, search: str) -> None:
    rng = np.random.default_rng(0)
    Q, values = random_orthogonal(6, rng), np.array([1.0, 2.0, 3.5, 5.0, 7.0, 9.0])
    objective = OneDiagonal((Q * values) @ Q.T, np.arange(6.0, 0.0, -1.0))
    point = objective.at(np.stack([random_orthogonal(6, seed) for seed in range(3)]))
    before = objective.value(point)
    for _ in range(70):
        step = rotation_step(objective, point, line_search=search, retraction=retraction)
        point = step.point
        assert (objective.value(point) <= before + 1e-12).all()
        before = objective.value(point)
    assert np.allclose(before, np.sum(np.arange(6.0, 0.0, -1.0) * values), atol=1e-6)
    assert orthogonality_error(point[0]).max() < 1e-11
    assert (step.gradient_norm < 1e-2).all()


def test_the_direction_is_skew_and_avoids_pairs_without_curvature() -> None:
    rng = np.random.default_rng(1)
    skew = skew_part(rng.standard_normal((1, 4, 4)))
    curvature = np.ones((1, 4, 4))
    curvature[0, 0, 1] = curvature[0, 1, 0] = 0.0
    E = newton_direction(skew, curvature)
    assert np.array_equal(E, -np.swapaxes(E, 1, 2))
    assert E[0, 0, 1] == 0.0
    assert np.sum(E * skew) < 0


def test_unknown_names_are_refused() -> None:
    objective = OneDiagonal(np.eye(3), np.ones(3))
    with pytest.raises(UnknownNameError, match="wolfe"):
        rotation_step(objective, (np.eye(3)[None],), line_search="wolf")
    with pytest.raises(UnknownNameError, match="polar"):
        rotation_step(objective, (np.eye(3)[None],), retraction="cayley")
