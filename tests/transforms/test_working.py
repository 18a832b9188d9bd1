"""Long frames in the directions that they span: the same runs as with whole transforms, and cheaper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nonneg import learn_transform
from nonneg.kernels import frame_rows
from nonneg.transforms import frame_covariances
from nonneg.transforms.advance import PORTABLE
from nonneg.transforms.factor_updates import update_factors
from nonneg.transforms.initialization import first_state
from nonneg.transforms.likelihoods import divergence, full_objective, likelihood
from nonneg.transforms.options import method_options
from nonneg.transforms.rotations import orthogonality_error
from nonneg.transforms.working import WorkingFrames, whole_transform, working_frames, working_state


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
    work = working_frames(data)
    assert isinstance(work, WorkingFrames)
    assert work.basis.shape == (64, 4)
    assert work.rows.shape == ((40, 4) if n_realizations == 1 else (20 * 2 + 20 * 4, 4))
    whole = first_state(data, 2, init=None, n_starts=1, random_state=0)
    reduced = working_state(whole, work)
    options = method_options(method, eps0=1e-2)
    for _ in range(8):
        whole, expected = PORTABLE[method](whole, data, options)
        reduced, found = PORTABLE[method](reduced, work, options)
    for name, value in expected.items():
        assert np.allclose(found[name], value, rtol=1e-7, atol=1e-9), name
    completed = whole_transform(reduced.transform[0], work)
    assert orthogonality_error(completed) < 1e-12
    assert np.allclose(data.variances(completed), data.variances(whole.transform[0]), atol=1e-7)


def test_the_answer_is_orthogonal_and_certified() -> None:
    Y = notes(5)
    for method in ("tl", "jd"):
        result = learn_transform(Y, 2, method=method, eps0=1e-3, max_iter=40, random_state=0, tol=0)
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
    assert working_frames(data) is data


def test_a_silent_frame_keeps_a_row() -> None:
    Y = notes(3)
    Y[:, 7] = 0.0
    work: Any = working_frames(frame_covariances(Y))
    assert work.counts[7] == 1
    assert not work.rows[work.starts[7]].any()


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_kernels_are_the_array_code(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 5, 91)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    X = rng.standard_normal((1, int(counts.sum()), 50))
    V = frame_rows.sums_of_squares(X, starts, counts)
    assert np.allclose(V, np.add.reduceat(X * X, starts, axis=1), rtol=1e-13)
    weights = rng.random((1, 91, 50))
    expected = 2.0 * X * np.repeat(weights, counts, axis=1)
    assert np.allclose(frame_rows.weighted_rows(X, weights, 2.0, starts, counts), expected, rtol=1e-13)
    A, B = rng.random((1, 91, k)) + 1.0, rng.random((1, k, 50))
    B /= B.sum(axis=2, keepdims=True)
    before = A.copy(), B.copy()
    found = frame_rows.equalized_factors(V, 1e-3, A, B, 4)
    assert np.array_equal(A, before[0])
    assert np.array_equal(B, before[1])
    known = update_factors(V, A, B, 1e-3, 4)
    assert np.allclose(found[0], known[0], rtol=1e-11)
    assert np.allclose(found[1], known[1], rtol=1e-11)
    inverse = 1.0 / (known[0] @ known[1] + 1e-3)
    assert np.allclose(found[2], inverse, rtol=1e-10)
    assert frame_rows.serves(V)
    assert not frame_rows.serves(V.astype(np.float32))
    C, L, part = frame_rows.measured_fit(V, 1e-3, inverse)
    with monkeypatch.context() as patch:
        patch.setattr(frame_rows, "LEAST_ENTRIES", 1 << 40)
        assert not frame_rows.serves(V)
        assert np.allclose(C, full_objective(V, inverse, 1e-3), rtol=1e-13)
        assert np.allclose(L, likelihood(V, 1e-3), rtol=1e-13)
        assert np.allclose(part, divergence(V, inverse, 1e-3), rtol=1e-11)


def test_single_precision_takes_the_array_code() -> None:
    Y = notes(2).astype(np.float32)
    result = learn_transform(Y, 2, eps0=1e-2, max_iter=10, random_state=0, tol=0)
    assert result.transform.dtype == result.W.dtype == result.H.dtype == np.float32
    double = learn_transform(Y.astype(np.float64), 2, eps0=1e-2, max_iter=10, random_state=0, tol=0)
    assert result.objective == pytest.approx(double.objective, rel=1e-2)
    assert replace(result, method="jd").method == "jd"
