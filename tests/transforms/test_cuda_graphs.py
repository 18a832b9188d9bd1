"""Iterations with few trials, made again where a search has not ended, equal those that read every time."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import gaussian_composite
from nonneg.transforms import cuda_graphs
from nonneg.transforms.covariances import frame_covariances
from nonneg.transforms.cuda_graphs import GraphedStep
from nonneg.transforms.dispatch import ARRAY_STEPS
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.options import method_options
from nonneg.transforms.rotations import line_search

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def problem(n_realizations, n_init=4):
    Y = torch.asarray(gaussian_composite(n_realizations, 13, 6, 3, rng=0).Y)
    data = frame_covariances(Y)
    return data, initial_state(data, 3, init=None, n_init=n_init, rng=0)


@pytest.mark.covering(1)
@pytest.mark.parametrize("method", ["tl", "jd"])
@pytest.mark.parametrize(("n_realizations", "trials"), [(1, (1,)), (1, (1, 2, 4)), (20, (1, 2))])
def test_the_numbers_are_those_of_the_reading_way(method, n_realizations, trials, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "TRIALS", trials)
    data, state = problem(n_realizations)
    options = method_options(method, eps0=1e-8, n_nmf_updates=2)
    advance = GraphedStep(ARRAY_STEPS[method], data, options, retries=True, skip_failed=method == "jd")
    steps = []
    for _ in range(6):
        new, measures = advance(state)
        expected, values = ARRAY_STEPS[method](state, data, options)
        for name in ("transform", "frames", "activations", "components"):
            np.testing.assert_allclose(getattr(new, name), getattr(expected, name), rtol=1e-9, atol=1e-10)
        for name in values:
            np.testing.assert_allclose(measures[name], values[name], rtol=1e-9, atol=1e-10)
        assert new.n_done == state.n_done + 1
        steps += measures["step"].tolist()
        state = new
    # Longer and shorter steps were among them where there is one realization.
    assert n_realizations > 1 or min(steps) < 1


def test_a_restart_that_is_done_is_not_searched_again(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "TRIALS", (1,))
    # As if rounding were not known: searches at the end then fail after the most trials.
    monkeypatch.setattr(line_search, "NOISE", 0.0)
    data, state = problem(300, n_init=2)
    calls = []

    def counted(part, *rest):
        calls.append((part.batch, rest[1].synchronize))
        return ARRAY_STEPS["jd"](part, *rest)

    advance = GraphedStep(counted, data, method_options("jd", eps0=1e-8), retries=True, skip_failed=True)
    for _ in range(24):
        state, measures = advance(state)
    assert not measures["step"].any()
    calls.clear()
    # The first iteration after a re-orthogonalization searches again; the next ones do not.
    for _ in range(5):
        state, measures = advance(state)
    assert sum(synchronize for _, synchronize in calls) <= 1
    assert not measures["search_succeeded"].any()


def test_more_trials_are_made_where_needed_and_fewer_again_later(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "PATIENCE", 2)
    data, state = problem(1)
    advance = GraphedStep(
        ARRAY_STEPS["tl"], data, method_options("tl", eps0=1e-8), retries=True, skip_failed=False
    )
    for _ in range(6):
        state, measures = advance(state)
        assert measures["search_succeeded"].all()
    # With one realization, first steps are too long.
    needed = advance.level
    assert needed >= 1
    advance.level = len(advance.trials) - 1
    for _ in range(12):
        state, measures = advance(state)
    assert advance.level < len(advance.trials) - 1


def test_a_few_that_need_more_trials_make_them_alone(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "SMALLEST_PART", 2)
    monkeypatch.setattr(cuda_graphs, "FEW", 1.0)
    monkeypatch.setattr(cuda_graphs, "LATE", 100)
    data, state = problem(1, n_init=12)
    sizes = []

    def counted(part, *rest):
        sizes.append(part.batch)
        return ARRAY_STEPS["tl"](part, *rest)

    options = method_options("tl", eps0=1e-8, n_nmf_updates=2)
    advance = GraphedStep(counted, data, options, retries=True, skip_failed=False)
    advance.level = 0
    for _ in range(15):
        new, measures = advance(state)
        expected, values = ARRAY_STEPS["tl"](state, data, options)
        np.testing.assert_allclose(new.transform, expected.transform, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(measures["loss"], values["loss"], rtol=1e-9)
        state = new
    assert set(sizes) > {12}
    assert advance.level == 0
