"""One iteration of each method: what it counts, returns and measures."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transforms.cases import composite_frames

from nonneg.transforms import frame_covariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.objective import COMPILED_ENTRIES, objectives
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import FactorState, concatenated
from nonneg.transforms.steps import fit_measures, jd_step, nmf_step, tl_step


@pytest.fixture
def data():
    return frame_covariances(composite_frames(4, 12, 6, 3))


@pytest.fixture
def state(data):
    return initial_state(data, 3, init=None, n_init=2, rng=0)


def parts(V, W, H, eps0):
    V, model = V + eps0, W @ H + eps0
    ratio = V / model
    return (
        np.sum(ratio + np.log(model), axis=(1, 2)),
        np.sum(1 + np.log(V), axis=(1, 2)),
        np.sum(ratio - np.log(ratio) - 1, axis=(1, 2)),
    )


@pytest.mark.parametrize(("objective", "l1"), [("C", 0.0), ("I", 0.0), ("I", 0.3)])
def test_an_iteration_of_tl_nmf(data, state, objective, l1):
    options = TransformOptions(eps0=1e-3, objective=objective, l1=l1)
    new, found = tl_step(state, data, options)
    assert (new.n_done, state.n_done) == (1, 0)
    V = np.stack([data.variances(transform) for transform in new.transform])
    C, L, part = parts(V, new.activations, new.components, 1e-3)
    for name, expected in (("C", C), ("L", L), ("I", part)):
        np.testing.assert_allclose(found[name], expected, rtol=1e-9)
    wanted = C if objective == "C" else part + l1 * new.activations.sum(axis=(1, 2))
    np.testing.assert_allclose(found["loss"], wanted, rtol=1e-9)


def test_iterations_of_joint_diagonalization(data, state):
    options = TransformOptions(eps0=1e-3)
    for n_done in (1, 2):
        state, found = jd_step(state, data, options)
        V = np.stack([data.variances(transform) for transform in state.transform])
        assert state.n_done == n_done
        np.testing.assert_allclose(found["L"], np.sum(1 + np.log(V + 1e-3), axis=(1, 2)), rtol=1e-10)
        np.testing.assert_array_equal(found["loss"], found["L"])
        np.testing.assert_allclose(state.known["V"], V, rtol=1e-9)
        np.testing.assert_allclose(state.known["L", 1e-3], np.log(V + 1e-3).sum(axis=(1, 2)), rtol=1e-9)


@pytest.mark.parametrize(("objective", "l1"), [("C", 0.0), ("I", 0.2)])
def test_an_iteration_of_the_factors(data, state, objective, l1):
    V = data.variances(np.eye(6))[None]
    begin = FactorState(state.activations, state.components, state.restarts, n_done=4)
    options = TransformOptions(eps0=1e-3, objective=objective, l1=l1)
    new, found = nmf_step(begin, V, options)
    assert new.n_done == 5
    _, _, part = parts(V, new.activations, new.components, 1e-3)
    np.testing.assert_allclose(found["I"], part, rtol=1e-9)
    np.testing.assert_allclose(found["loss"], part + l1 * new.activations.sum(axis=(1, 2)), rtol=1e-9)
    assert (part < parts(V, begin.activations, begin.components, 1e-3)[2]).all()


@pytest.mark.parametrize("n_frames", [5, COMPILED_ENTRIES // 8 + 1])
def test_objectives_of_short_and_long_data_are_their_formulas(n_frames):
    rng = np.random.default_rng(0)
    V, W, H = rng.random((2, n_frames, 8)), rng.random((2, n_frames, 3)), rng.random((2, 3, 8))
    before = V.copy()
    for found, expected in zip(objectives(V, 1 / (W @ H + 0.1), 0.1), parts(V, W, H, 0.1), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(V, before)
    measured = fit_measures(V, 1 / (W @ H + 0.1), W, TransformOptions(eps0=0.1, objective="I", l1=0.5))
    np.testing.assert_allclose(measured["loss"], measured["I"] + 0.5 * W.sum(axis=(1, 2)))


def test_restarts_are_taken_apart_and_put_together(state):
    first, last = state.part(slice(0, 1)), state.part(np.array([1]))
    assert (state.batch, first.batch, last.batch) == (2, 1, 1)
    np.testing.assert_array_equal(last.transform, state.transform[1:])
    both = concatenated([first, last])
    assert both.pruning_losses is None
    for name in ("transform", "frames", "activations", "components", "restarts"):
        np.testing.assert_array_equal(getattr(both, name), getattr(state, name))
    assert concatenated([first]) is first
