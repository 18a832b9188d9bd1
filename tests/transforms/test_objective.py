"""C, L and I and their derivatives, against differences and printed definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from tests.transforms.cases import composite_frames

from nonneg.kernels.majorization_equalization import portable_update_factors as update_factors
from nonneg.transforms import frame_covariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.objective import (
    DiagonalityObjective,
    FitObjective,
    divergence,
)
from nonneg.transforms.reduction import ReducedFrames, reduced_frames, reduced_state
from nonneg.transforms.rotations.group import skew_part

EPS0 = 1e-3


def parts(kind: str, n_realizations: int, reduced: bool) -> tuple[Any, Any]:
    m = 48 if reduced else 9
    frames = composite_frames(n_realizations, 20, m, 3)
    if reduced:
        # Frames of 48 samples in 7 directions, some with fewer realizations than others.
        frames = frames[..., :7] @ np.linalg.qr(np.random.default_rng(1).standard_normal((m, m)))[0][:7]
        frames[2:, 5:] = 0.0
    whole = frame_covariances(frames)
    data = reduced_frames(whole)
    state = reduced_state(initial_state(whole, 3, init=None, n_init=2, rng=0), data)
    assert isinstance(data, ReducedFrames) is reduced
    inverse = 1.0 / (state.activations @ state.components + EPS0)
    objective = {
        "C": lambda: FitObjective(data, EPS0, inverse),
        "L": lambda: DiagonalityObjective(data, EPS0),
    }[kind]()
    return objective, state


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("n_realizations", [1, 4])
@pytest.mark.parametrize("kind", ["C", "L"])
def test_gradients_are_differences(kind: str, n_realizations: int, reduced: bool) -> None:
    objective, state = parts(kind, n_realizations, reduced)
    P = state.transform
    m, h = P.shape[1], 1e-5
    gradient = objective.gradient(objective.at(P))
    rng = np.random.default_rng(0)
    for _ in range(4):
        E = skew_part(rng.standard_normal((1, m, m)))
        E /= np.linalg.norm(E)
        ahead, behind = (objective.value(objective.at(expm(s * E) @ P)) for s in (h, -h))
        expected = (ahead - behind) / (2 * h)
        assert np.allclose(np.sum(gradient * E, axis=(1, 2)), expected, rtol=1e-6, atol=1e-5)
        assert np.allclose(objective.slope(objective.at(P), E @ P), expected, rtol=1e-6, atol=1e-5)


def test_updates_of_the_factors_are_multiplicative_with_exponent_one() -> None:
    rng = np.random.default_rng(0)
    V = rng.random((12, 7)) ** 3
    W, H = rng.random((12, 3)) + 0.5, rng.random((3, 7)) + 0.5
    activations, components, _ = update_factors(V[None], EPS0, W[None], H[None], 5)
    for _ in range(5):
        inverse = 1.0 / (W @ H + EPS0)
        W = W * (((V + EPS0) * inverse**2) @ H.T) / (inverse @ H.T)
        inverse = 1.0 / (W @ H + EPS0)
        H = H * (W.T @ ((V + EPS0) * inverse**2)) / (W.T @ inverse)
    assert np.allclose(activations[0] @ components[0], W @ H, rtol=1e-11)


def test_updates_never_raise_the_divergence_and_keep_the_norms() -> None:
    rng = np.random.default_rng(3)
    V = rng.random((2, 15, 8)) ** 4
    activations, components = rng.random((2, 15, 3)) + 1.0, rng.random((2, 3, 8))
    components /= components.sum(axis=2, keepdims=True)

    def loss() -> np.ndarray:
        inverse = 1.0 / (activations @ components + EPS0)
        return divergence(V, inverse, EPS0)

    before = loss()
    for _ in range(60):
        activations, components, _ = update_factors(V, EPS0, activations, components, 1)
        after = loss()
        assert (after <= before + 1e-12 * np.abs(before)).all()
        before = after
    assert np.allclose(components.sum(axis=2), 1.0, rtol=1e-14)


def test_scaling_of_the_components_does_not_change_the_product() -> None:
    rng = np.random.default_rng(4)
    V = rng.random((1, 10, 6))
    A, B = rng.random((1, 10, 2)), rng.random((1, 2, 6))
    scaled = B / B.sum(axis=2, keepdims=True), A * B.sum(axis=2)[:, None, :]
    one = update_factors(V, EPS0, A, B, 3)
    other = update_factors(V, EPS0, scaled[1], scaled[0], 3)
    assert np.allclose(one[0] @ one[1], other[0] @ other[1], rtol=1e-12)


def test_curvatures_are_those_of_the_paper() -> None:
    # Sums over frames of weights and variances, both ways (44, 49).
    for kind in ("C", "L"):
        objective, state = parts(kind, 4, False)
        point = objective.at(state.transform)
        V = point[2]
        if kind == "L":
            weights = 1.0 / (V + EPS0)
        else:
            weights = objective.inverse_model
        products = np.einsum("bna,bnc->bac", weights, V + EPS0 if kind == "L" else V)
        expected = products + np.swapaxes(products, 1, 2)
        if kind == "L":
            expected = np.maximum(expected - 2.0 * 20, 0.0)
        np.testing.assert_allclose(objective.curvature(point), expected, rtol=1e-9, atol=1e-9)
        if kind == "L":
            assert (np.diagonal(objective.curvature(point), axis1=1, axis2=2) == 0).all()
