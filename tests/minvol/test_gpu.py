"""Minimum volume on a GPU: the numbers of the host, and results that stay there."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.mixtures import mixtures

from nonneg import MinVolNMF


@pytest.mark.torch
@pytest.mark.parametrize("constraint", ["sum-to-one", "at-most-one"])
def test_the_components_are_those_of_the_host(torch, constraint):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    planted = mixtures(600, 30, 4, purity=0.75, snr=30.0, rng=0)
    options = {"init": "mv-dual", "max_iter": 20, "tol": 0.0, "constraint": constraint}
    expected = MinVolNMF(4, **options).fit(planted.X)
    model = MinVolNMF(4, **options)
    W = model.fit_transform(torch.asarray(planted.X, device="cuda"))
    assert W.device.type == model.components_.device.type == "cuda"
    np.testing.assert_allclose(model.components_.cpu().numpy(), expected.components_, rtol=1e-6)
    np.testing.assert_allclose(W.cpu().numpy(), expected.transform(planted.X), atol=1e-6)
