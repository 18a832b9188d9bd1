"""Runs whose lists of coefficients are tensors: the run of the host, with tensors in its memory."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import select_anchors
from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.iteration import StopReason
from nonneg.kernels.self_dictionary import dictionary_of
from nonneg.kernels.self_dictionary.array_api import center_and_radius
from nonneg.kernels.self_dictionary.types import Dictionary
from nonneg.kernels.sparse_columns import no_entries
from nonneg.separable.merit.frank_wolfe import advance, open_loop
from nonneg.separable.merit.problem import SelfDictionary
from nonneg.separable.registry import split_params

pytestmark = pytest.mark.torch


@pytest.fixture
def as_on_a_gpu(torch, monkeypatch):
    """Let tensors be treated as those of a GPU are: not seen as NumPy arrays, lists where they are."""

    def made(points):
        if isinstance(points, np.ndarray):
            return dictionary_of(points)
        return Dictionary(points, *center_and_radius(points))

    monkeypatch.setattr("nonneg.separable.merit.problem.dictionary_of", made)
    monkeypatch.setattr("nonneg.separable.merit.run.runs_fused", torch.is_tensor)
    return torch.tensor


@pytest.fixture(scope="module")
def data():
    """150 points of 15 features between 6 anchors at 15 dB."""
    return separable_dirichlet(150, 15, 6, snr=15, rng=5)


@pytest.mark.parametrize(("lam", "mu"), [(0.0, 1e-5), (0.7, 1e-5), (0.3, 1e-2), (50.0, 1e-5)])
def test_every_iterate_is_that_of_the_host(lam, mu, data, as_on_a_gpu):
    host = SelfDictionary.of(as_data_matrix(data.X), lam, mu)
    there = SelfDictionary.of(as_data_matrix(as_on_a_gpu(data.X)), lam, mu)
    state, on_device = (
        host.initial_iterate(no_entries(150)),
        there.initial_iterate(no_entries(150), on_device=True),
    )
    assert on_device.on_device
    assert not state.on_device
    for _ in range(25):
        state, measures = host.call_oracle(state)
        on_device, found = there.call_oracle(on_device)
        assert np.array_equal(on_device.vertices, state.vertices)
        np.testing.assert_allclose(on_device.column_gaps, state.column_gaps, atol=1e-11 * max(1.0, lam))
        for name, value in measures.items():
            assert found[name] == pytest.approx(value, rel=1e-11)
        state = advance(host, state, open_loop(host, state))
        on_device = advance(there, on_device, open_loop(there, on_device))
        as_numpy = on_device.as_numpy
        for name in ("rows", "weights", "counts", "row_max", "row_count", "row_maxima"):
            assert np.array_equal(getattr(as_numpy, name), getattr(state, name))
        np.testing.assert_allclose(on_device.residual, state.residual, atol=1e-13)


@pytest.mark.parametrize("warm", [False, True])
def test_a_run_is_the_run_of_the_host(warm, data, as_on_a_gpu, monkeypatch):
    monkeypatch.setattr("nonneg.separable.merit.frank_wolfe.REFRESH", 8)
    # Not from anchors: their own residuals would be zero but for roundings, which decide what is chosen.
    init = select_anchors(data.X, 6, max_iter=6, method_params={"steps": "open-loop"}).coefficients
    params = {"steps": "open-loop", "lam": 0.4, "anchor_window": 40, "recovery": True}
    options = {"init": init if warm else None, "max_iter": 20, "method_params": params}
    expected = select_anchors(data.X, 6, **options)
    found = select_anchors(as_on_a_gpu(data.X), 6, **options)
    assert np.array_equal(found.anchors, expected.anchors)
    assert abs(found.coefficients - expected.coefficients).max() <= 1e-12
    assert found.gap == pytest.approx(expected.gap, rel=1e-9)
    assert found.history["new_anchors"] == expected.history["new_anchors"]
    assert found.history["entries"] == expected.history["entries"]
    assert [s.verdict for s in found.certificate] == [s.verdict for s in expected.certificate]


def test_a_resumed_run_equals_an_uninterrupted_one(data, as_on_a_gpu, tmp_path):
    X = as_on_a_gpu(data.X)
    options = {"method_params": {"steps": "open-loop", "anchor_window": 40, "lam": 0.2}}
    whole = select_anchors(X, 6, max_iter=12, **options)
    for n_iter in (5, 12):
        parts = select_anchors(X, 6, max_iter=n_iter, checkpoint=tmp_path, **options)
    assert parts.n_iter == 12
    assert abs(whole.coefficients - parts.coefficients).max() == 0
    assert whole.history["gap"] == parts.history["gap"]


@pytest.mark.parametrize(
    "options", [{"skip_converged": True, "tol": 0.5}, {"steps": "pairwise", "corrective_steps": 0}]
)
def test_other_rules_keep_their_lists_on_the_host(options, data, as_on_a_gpu):
    seen = []

    def watch(progress):
        seen.append(progress.state.on_device)

    options = split_params({"lam": 0.2, "max_iter": 15} | options)
    found = select_anchors(as_on_a_gpu(data.X), 6, callback=watch, **options)
    expected = select_anchors(data.X, 6, **options)
    assert seen
    assert not any(seen)
    assert abs(found.coefficients - expected.coefficients).max() <= 1e-6
    assert found.stop_reason is expected.stop_reason is StopReason.MAX_ITER
