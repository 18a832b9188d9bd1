"""Small directions in single precision: frames, variances and gradients of double precision."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels import frame_rows
from nonneg.transforms import frame_covariances, row_products
from nonneg.transforms.advance import PORTABLE
from nonneg.transforms.initialization import first_state
from nonneg.transforms.objective import DiagonalityObjective
from nonneg.transforms.options import method_options
from nonneg.transforms.working import WorkingFrames, working_frames, working_state


def glides(n_realizations: int = 6) -> np.ndarray:
    """Frames of 64 samples of a slowly gliding note: their directions fall by many orders of magnitude."""
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, (n_realizations, 50, 1))
    pitches = 0.11 + 0.02 * np.sin(np.linspace(0, 3, 50))[:, None]
    return np.cos(2 * np.pi * pitches * np.arange(64) + phases)


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_rows, "LEAST_ENTRIES", 0)
    monkeypatch.setattr(row_products, "LEAST_WORK", 0)


def working(scale: float = 1.0) -> WorkingFrames:
    found = working_frames(frame_covariances(scale * glides()))
    assert isinstance(found, WorkingFrames)
    assert 0 < found.n_double < found.rows.shape[1]
    return found


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e9])
def test_products_are_those_of_double_precision(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    data, eps0 = working(scale), 1e-5 * scale**2
    P = np.linalg.qr(np.random.default_rng(1).standard_normal((64, data.rows.shape[1])))[0][None]
    objective = DiagonalityObjective(data, eps0)
    point = objective.at(P)
    gradient = objective.gradient(point)
    monkeypatch.setattr(row_products, "LEAST_WORK", 1 << 60)
    exact = DiagonalityObjective(data, eps0)
    expected = exact.at(P)
    assert np.allclose(point[1], expected[1], rtol=0, atol=1e-13 * np.abs(expected[1]).max())
    assert np.allclose(point[2], expected[2], rtol=0, atol=1e-13 * np.abs(expected[2]).max())
    assert np.allclose(exact.value(point), exact.value(expected), rtol=1e-13)
    wanted = exact.gradient(expected)
    assert np.allclose(gradient, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


def test_weights_beyond_single_precision_are_not_rounded_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = working()
    P = np.linalg.qr(np.random.default_rng(1).standard_normal((64, data.rows.shape[1])))[0][None]
    X, V = row_products.frames_and_variances(P, data)

    def unwanted(*arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr(frame_rows, "weighted_rows_twice", unwanted)
    found = row_products.weighted_sums(P, X, 1.0 / (V + 1e-40), data, 1e-40)
    assert np.isfinite(found).all()


def test_directions_of_one_size_stay_in_double_precision() -> None:
    data = working_frames(frame_covariances(np.random.default_rng(0).standard_normal((2, 12, 64))))
    assert isinstance(data, WorkingFrames)
    assert data.n_double == data.rows.shape[1]


def test_an_iteration_passes_on_what_it_knows() -> None:
    data = working()
    start = working_state(first_state(data.whole, 2, init=None, n_starts=1, random_state=0), data)
    options = method_options("jd", eps0=1e-3)
    state, _ = PORTABLE["jd"](start, data, options)
    assert not start.known
    assert state.known
    again = state.part(slice(0, 1))
    assert not again.known
    expected, measures = PORTABLE["jd"](again, data, options)
    found, same = PORTABLE["jd"](state, data, options)
    assert np.allclose(found.transform, expected.transform, atol=1e-13)
    for name, values in measures.items():
        assert np.allclose(same[name], values, rtol=1e-12), name
    # Another eps0 has another likelihood.
    other = method_options("jd", eps0=1e-2)
    found, same = PORTABLE["jd"](state, data, other)
    expected, measures = PORTABLE["jd"](again, data, other)
    assert np.allclose(same["loss"], measures["loss"], rtol=1e-12)
