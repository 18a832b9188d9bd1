"""Fused line searches: those of the array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.rotations import triton as triton_rotations
from nonneg.transforms import frame_covariances
from nonneg.transforms.objective import (
    DiagonalityObjective,
    DivergenceObjective,
    FitObjective,
    has_fused_line_search,
)
from nonneg.transforms.rotations.group import random_orthogonal
from nonneg.transforms.rotations.quasi_newton import rotation_step


def test_it_is_for_tensors_on_a_gpu_alone(rng):
    assert not triton_rotations.is_supported(rng.standard_normal((3, 4, 5)))


def test_other_searches_are_left_to_the_descent(rng, monkeypatch):
    monkeypatch.setattr(triton_rotations, "is_supported", lambda virtual: True)
    data = frame_covariances(rng.standard_normal((3, 4, 5)))
    assert has_fused_line_search(data, "wolfe", "exponential", learning=True)
    assert has_fused_line_search(data, "backtracking", "polar", learning=False)
    assert not has_fused_line_search(data, "wolfe", "polar", learning=True)
    assert not has_fused_line_search(data, "wolfe", "exponential", learning=False)
    inverse = rng.random((1, 4, 5))
    assert FitObjective(data, 1e-7, inverse).fused_line_search("wolfe", "exponential") is not None
    assert DivergenceObjective(data, 1e-7, inverse).fused_line_search("wolfe", "exponential") is None


@pytest.mark.covering(1)
@pytest.mark.torch
@pytest.mark.parametrize(("S", "n_frames", "m"), [(3, 7, 4), (1, 5, 16), (20, 50, 10), (2, 128, 2)])
@pytest.mark.parametrize("method", ["tl", "jd"])
def test_the_searches_of_the_array_code(S, n_frames, m, method, rng, torch, device):
    n_transforms, n_steps = (6, 4) if device.type == "cuda" else (1, 1)  # the interpreter is slow
    if device.type == "cpu":
        n_frames = min(n_frames, 9)
    scale = rng.random((n_frames, m)) ** 3
    data = frame_covariances(torch.tensor(rng.standard_normal((S, n_frames, m)) * scale, device=device))
    transforms = np.stack([random_orthogonal(m, seed) for seed in range(n_transforms)])
    inverse = torch.tensor(1.0 / (0.1 + rng.random((n_transforms, n_frames, m)) ** 2), device=device)
    objective = FitObjective(data, 5e-7, inverse) if method == "tl" else DiagonalityObjective(data, 5e-7)
    search, retraction = ("wolfe", "exponential") if method == "tl" else ("backtracking", "polar")
    assert objective.fused_line_search(search, retraction) is not None
    point = objective.at(torch.tensor(transforms, device=device))
    for _ in range(n_steps):
        options = {"line_search": search, "retraction": retraction, "max_trials": 20}
        expected = rotation_step(objective, point, **options)
        found = rotation_step(objective, point, synchronize=False, **options)
        for a, b in zip(found.point, expected.point, strict=True):
            np.testing.assert_allclose(a.cpu(), b.cpu(), atol=1e-11)
        for name in ("step", "value"):
            np.testing.assert_allclose(
                getattr(found.search, name).cpu(), getattr(expected.search, name).cpu(), rtol=1e-10
            )
        assert (found.search.succeeded == expected.search.succeeded).all()
        point = expected.point


@pytest.mark.torch
def test_a_search_that_may_not_end_says_so(rng, torch, device):
    data = frame_covariances(torch.tensor(rng.standard_normal((3, 7, 4)), device=device))
    objective = DiagonalityObjective(data, 5e-7)
    point = objective.at(torch.eye(4, dtype=torch.float64, device=device)[None, ...])
    direction = torch.zeros((1, 4, 4), dtype=torch.float64, device=device)
    value, slope = objective.value(point), torch.tensor([-1.0], dtype=torch.float64, device=device)
    found = objective.fused_line_search("backtracking", "polar")(point, direction, value, slope, 5)
    assert not bool(found.succeeded[0])
    assert float(found.step[0]) == 0.0
    np.testing.assert_allclose(found.point[0].cpu(), point[0].cpu(), atol=0.0)
