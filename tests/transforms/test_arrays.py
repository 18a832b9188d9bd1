"""Other array libraries agree with NumPy, with and without reading values during a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transforms.cases import composite_frames

from nonneg import TransformNMF, joint_diagonalize, learn_transform
from nonneg._arrays import to_float64

Y = composite_frames(5, 20, 6, 2)


def torch_array(array: np.ndarray) -> Any:
    return pytest.importorskip("torch").from_numpy(array.copy())


def strict_array(array: np.ndarray) -> Any:
    return pytest.importorskip("array_api_strict").asarray(array)


CONTAINERS = [
    pytest.param(torch_array, marks=pytest.mark.torch, id="torch"),
    pytest.param(strict_array, id="strict"),
]


@pytest.mark.covering(1)
@pytest.mark.parametrize("place", CONTAINERS)
@pytest.mark.parametrize(
    "options", [{}, {"method": "jd"}, {"method_params": {"line_search": "backtracking"}}], ids=str
)
def test_results_are_those_of_numpy(place: Any, options: dict[str, Any]) -> None:
    settings = {"eps0": 1e-4, "max_iter": 12, "tol": 0, "rng": 0, "n_init": 2} | options
    expected = learn_transform(Y, 2, **settings)
    placed = place(Y)
    found = learn_transform(placed, 2, **settings)
    assert type(found.transform) is type(placed)
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)
    for name in ("transform", "W", "H", "variances"):
        assert np.allclose(to_float64(getattr(found, name)), getattr(expected, name), atol=1e-6), name
    assert np.allclose(to_float64(placed), Y)
    assert found.certificate["decomposition"].holds


@pytest.mark.parametrize("place", CONTAINERS)
def test_joint_diagonalization_of_placed_matrices(place: Any) -> None:
    sigma = np.einsum("sni,snj->nij", Y, Y) + np.eye(6)
    expected = joint_diagonalize(sigma, rng=0, max_iter=15, tol=0)
    found = joint_diagonalize(place(sigma), rng=0, max_iter=15, tol=0)
    assert np.allclose(to_float64(found.transform), expected.transform, atol=1e-7)


@pytest.mark.torch
def test_tensors_that_carry_gradients() -> None:
    torch = pytest.importorskip("torch")
    settings = {"eps0": 1e-4, "max_iter": 3}
    expected = learn_transform(Y, 2, rng=0, **settings)
    with_gradients = torch.tensor(Y, requires_grad=True)
    assert learn_transform(with_gradients, 2, rng=0, **settings).objective == pytest.approx(
        expected.objective
    )
    fitted = TransformNMF(2, method="tl", random_state=0, **settings).fit(with_gradients)
    assert fitted.result_.objective == pytest.approx(expected.objective)
    covariances = torch.einsum("sni,snj->nij", with_gradients, with_gradients)
    assert np.isfinite(joint_diagonalize(covariances, rng=0, **settings).objective)
