"""C near a transform: values, slopes and gradients of the objective itself, and the same runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transforms.test_working import notes

from nonneg.kernels import frame_rows
from nonneg.transforms import frame_covariances, local_fit
from nonneg.transforms.advance import PORTABLE
from nonneg.transforms.initialization import first_state
from nonneg.transforms.objective import DivergenceObjective, FitObjective
from nonneg.transforms.options import method_options
from nonneg.transforms.rotations import closest_orthogonal
from nonneg.transforms.working import working_frames, working_state

# Data of any scale stay in the range of single precision.
SCALES = (1.0, 1e-12, 1e9)


@pytest.mark.parametrize("scale", SCALES)
def test_the_change_is_that_of_the_objective(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_fit, "LEAST_WORK", 0)
    monkeypatch.setattr(frame_rows, "LEAST_ENTRIES", 0)
    data = working_frames(frame_covariances(scale * notes(12)))
    rng = np.random.default_rng(0)
    eps0 = 1e-3 * scale**2
    inverse = 1.0 / (scale**2 * rng.random((1, 40, 64)) + eps0)
    objective = FitObjective(data, eps0, inverse)
    P = np.linalg.qr(rng.standard_normal((64, 4)))[0][None]
    point = objective.at(P)
    local = objective.local(point)
    assert local is not None
    assert DivergenceObjective(data, eps0, inverse).local(point) is None
    assert np.allclose(local.gradient(local.start), objective.gradient(point), rtol=1e-12, atol=1e-9)
    for size in (1e-1, 1e-4):
        moved = closest_orthogonal(np.eye(64) + size * rng.standard_normal((64, 64)))[None] @ P
        there, exact = local.at(moved), objective.at(moved)
        change = objective.value(exact) - objective.value(point)
        assert np.allclose(local.value(there) - local.value(local.start), change, rtol=1e-5)
        velocity = rng.standard_normal(P.shape)
        slope = objective.slope(exact, velocity)
        assert np.allclose(local.slope(there, velocity), slope, rtol=1e-5)
        assert np.allclose(local.gradient(there), objective.gradient(exact), atol=1e-4 * np.abs(slope))


def test_runs_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = working_frames(frame_covariances(notes(12)))
    start = working_state(first_state(data.whole, 2, init=None, n_starts=1, random_state=0), data)
    monkeypatch.setattr(frame_rows, "LEAST_ENTRIES", 0)
    ends = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(local_fit, "LEAST_WORK", least)
        state = start
        for _ in range(8):
            state, found = PORTABLE["tl"](state, data, method_options("tl", eps0=1e-2))
        ends.append((state, found))
    for name, value in ends[1][1].items():
        assert np.allclose(ends[0][1][name], value, rtol=1e-5, atol=1e-7), name
    # What is taken is in double precision.
    state = ends[0][0]
    assert np.allclose(state.frames[0], data.rows @ state.transform[0].T, rtol=0, atol=1e-14)
    assert np.abs(state.transform[0].T @ state.transform[0] - np.eye(4)).max() < 1e-13


def test_where_it_serves() -> None:
    data = working_frames(frame_covariances(notes(12)))
    objective = FitObjective(data, 1e-3, np.ones((1, 40, 64)))
    point = objective.at(np.eye(64)[None, :, :4])
    # Few rows are as quick in double precision.
    assert objective.local(point) is None
    assert not local_fit.serves(data.whole, point, 1e-3)
