"""Long frames in the directions that they span: the same runs as with whole transforms, and cheaper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nonneg import learn_transform
from nonneg.transforms import frame_covariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.loop import ARRAY_STEPS
from nonneg.transforms.options import method_options
from nonneg.transforms.reduction import ReducedFrames, completed_transform, reduced_frames, reduced_state
from nonneg.transforms.rotations.group import orthogonality_error


def notes(n_realizations: int) -> np.ndarray:
    """Frames of 64 samples with two sinusoids, the second in some of the frames only."""
    rng = np.random.default_rng(0)
    t = np.arange(64)
    phases = rng.uniform(0, 2 * np.pi, (n_realizations, 40, 1, 2))
    gains = rng.random((40, 1, 2))
    gains[:20, :, 1] = 0.0
    return np.sum(gains * np.cos(2 * np.pi * np.array([0.11, 0.17]) * t[:, None] + phases), axis=-1)


@pytest.mark.parametrize("n_realizations", [1, 12])
@pytest.mark.parametrize("method", ["tl", "jd"])
def test_reduced_runs_are_whole_runs(method: str, n_realizations: int) -> None:
    data = frame_covariances(notes(n_realizations))
    work = reduced_frames(data)
    assert isinstance(work, ReducedFrames)
    assert work.basis.shape == (64, 4)
    assert work.rows.shape == ((40, 4) if n_realizations == 1 else (20 * 2 + 20 * 4, 4))
    whole = initial_state(data, 2, init=None, n_init=1, rng=0)
    reduced = reduced_state(whole, work)
    options = method_options(method, eps0=1e-2)
    for _ in range(8):
        whole, expected = ARRAY_STEPS[method](whole, data, options)
        reduced, found = ARRAY_STEPS[method](reduced, work, options)
    for name, value in expected.items():
        assert np.allclose(found[name], value, rtol=1e-7, atol=1e-9), name
    completed = completed_transform(reduced.transform[0], work)
    assert orthogonality_error(completed) < 1e-12
    assert np.allclose(data.variances(completed), data.variances(whole.transform[0]), atol=1e-7)


def test_the_answer_is_orthogonal_and_certified() -> None:
    Y = notes(5)
    for method in ("tl", "jd"):
        result = learn_transform(Y, 2, method=method, eps0=1e-3, max_iter=40, rng=0, tol=0)
        assert orthogonality_error(result.transform) < 1e-12
        assert result.certificate["decomposition"].holds
        assert result.certificate["descent"].holds
        V = np.mean((Y @ result.transform.T) ** 2, axis=0)
        assert np.allclose(result.variances, V, atol=1e-12)
        last = result.history["L"][-1]
        assert last == pytest.approx(result.likelihood, rel=1e-9)


def test_full_rank_frames_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    data = frame_covariances(rng.standard_normal((80, 60)))
    assert reduced_frames(data) is data


def test_a_silent_frame_keeps_a_row() -> None:
    Y = notes(3)
    Y[:, 7] = 0.0
    work: Any = reduced_frames(frame_covariances(Y))
    assert work.counts[7] == 1
    assert not work.rows[work.offsets[7]].any()


def glides(n_realizations: int = 6) -> np.ndarray:
    """Frames of 64 samples of a slowly gliding note: their directions fall by many orders of magnitude."""
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, (n_realizations, 50, 1))
    pitches = 0.11 + 0.02 * np.sin(np.linspace(0, 3, 50))[:, None]
    return np.cos(2 * np.pi * pitches * np.arange(64) + phases)
