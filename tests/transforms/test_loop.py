"""Compiled iterations of small problems equal those of the array code."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import gaussian_composite

from nonneg._compiled import core
from nonneg._threads import threads
from nonneg.transforms.covariances import frame_covariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.loop import ARRAY_STEPS, batch_step, compiled_step
from nonneg.transforms.options import method_options
from nonneg.transforms.state import concatenated, part_of

pytestmark = pytest.mark.skipif(core() is None, reason="the core was not built")

N_INIT = 3


def problem(n_realizations, m=6, n=13, k=3, seed=0):
    data = frame_covariances(gaussian_composite(n_realizations, n, m, k, rng=seed).Y)
    return data, initial_state(data, k, init=None, n_init=N_INIT, rng=seed)


def advanced_both_ways(method, data, state, options, n_iter):
    """Compare after every iteration, the next one beginning at the same point."""
    fast = compiled_step(method, data, options)
    steps = set()
    for _ in range(n_iter):
        new, measures = fast(state)
        parts = [
            ARRAY_STEPS[method](part_of(state, slice(i, i + 1)), data, options) for i in range(state.batch)
        ]
        expected = concatenated([part for part, _ in parts])
        for name in ("transform", "frames", "activations", "components"):
            if getattr(expected, name, None) is not None:
                np.testing.assert_allclose(
                    getattr(new, name), getattr(expected, name), rtol=1e-9, atol=1e-9, err_msg=name
                )
        names = set(parts[0][1])
        assert set(measures) == names
        for name in names:
            values = np.concatenate([part[name] for _, part in parts])
            np.testing.assert_allclose(measures[name], values, rtol=1e-8, atol=1e-9, err_msg=name)
        assert new.n_done == state.n_done + 1
        steps |= set(np.round(measures.get("step", np.ones(1)), 12).tolist())
        state = new
    return state, steps


@pytest.mark.parametrize("n_realizations", [1, 3, 20])
def test_transform_learning(n_realizations):
    data, state = problem(n_realizations)
    options = method_options("tl", eps0=1e-8, n_nmf_updates=3)
    _, steps = advanced_both_ways("tl", data, state, options, 25)
    # Searches that shorten or double the first step were compared too.
    assert n_realizations > 1 or len(steps) > 5


@pytest.mark.parametrize("n_realizations", [1, 3, 20])
def test_joint_diagonalization(n_realizations):
    data, state = problem(n_realizations)
    options = method_options("jd", eps0=1e-8)
    _, steps = advanced_both_ways("jd", data, state, options, 12)
    assert n_realizations > 1 or 0.5 in steps


def test_joint_diagonalization_of_invertible_covariances_without_offset():
    data, state = problem(20)
    advanced_both_ways("jd", data, state, method_options("jd", eps0=0.0), 6)


@pytest.mark.parametrize(("m", "n", "k"), [(7, 9, 1), (5, 8, 8), (2, 2, 1)])
def test_odd_sizes_and_several_rotations(m, n, k):
    data, state = problem(4, m, n, k)
    advanced_both_ways("tl", data, state, method_options("tl", eps0=1e-6, n_rotation_updates=2), 6)
    advanced_both_ways("jd", data, state, method_options("jd", eps0=1e-6, n_rotation_updates=2), 4)


def test_nothing_given_is_changed():
    data, state = problem(3)
    arrays = state.transform, state.frames, state.activations, state.components
    before = [array.copy() for array in arrays]
    for method in ("tl", "jd"):
        compiled_step(method, data, method_options(method, eps0=1e-8))(state)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_run_taken_up_again_goes_on_with_the_same_bits():
    data, state = problem(6)
    options = method_options("tl", eps0=1e-8)
    advance = batch_step("tl", data, options)
    for _ in range(3):
        state, _ = advance(state)
    # Another advance knows nothing of the last iteration and makes the moments of the frames anew.
    again, measures = batch_step("tl", data, options)(state)
    new, expected = advance(state)
    for name in ("transform", "frames", "activations", "components"):
        np.testing.assert_array_equal(getattr(again, name), getattr(new, name), err_msg=name)
    for name in expected:
        np.testing.assert_array_equal(measures[name], expected[name], err_msg=name)


def test_threads_and_batches_do_not_change_a_bit():
    data, state = problem(6)
    options = method_options("tl", eps0=1e-8)
    advance = batch_step("tl", data, options)
    with threads(1):
        one, _ = advance(state)
    with threads(3):
        two, _ = advance(state)
    alone, _ = advance(part_of(state, slice(1, 2)))
    np.testing.assert_array_equal(one.transform, two.transform)
    np.testing.assert_array_equal(one.activations[1], alone.activations[0])
