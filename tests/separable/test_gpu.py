"""Selections on a GPU: the same anchors and weights, and results that stay there."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import SeparableNMF, select_anchors
from nonneg.separable import METHODS


@pytest.fixture
def on_gpu(torch):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return lambda X: torch.asarray(X, device="cuda")


@pytest.mark.torch
@pytest.mark.parametrize("name", METHODS)
def test_the_anchors_are_those_of_the_host(name, on_gpu, clean):
    options = {"max_iter": 60} if METHODS[name].kind == "convex" else {}
    expected = select_anchors(clean.X, 6, method=name, rng=0, **options)
    found = select_anchors(on_gpu(clean.X), 6, method=name, rng=0, **options)
    assert set(found.anchors) == set(expected.anchors) == set(clean.anchors)


@pytest.mark.torch
def test_fully_corrective_steps_follow_those_of_the_host(on_gpu, noisy):
    expected, found = (select_anchors(X, 6, method="merit-exact") for X in (noisy.X, on_gpu(noisy.X)))
    assert set(found.anchors) == set(expected.anchors)
    assert found.gap <= 0.01 * found.objective
    assert found.objective == pytest.approx(expected.objective, rel=0.01)


@pytest.mark.torch
@pytest.mark.parametrize("sum_to_one", [False, True])
def test_weights_stay_on_the_gpu(sum_to_one, on_gpu, noisy):
    X = on_gpu(noisy.X)
    model = SeparableNMF(6, method="snpa", sum_to_one=sum_to_one)
    W = model.fit_transform(X)
    assert W.device.type == model.components_.device.type == "cuda"
    expected = SeparableNMF(6, method="snpa", sum_to_one=sum_to_one).fit_transform(noisy.X)
    np.testing.assert_allclose(W.cpu().numpy(), expected, atol=1e-8)
