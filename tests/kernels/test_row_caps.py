"""Caps of rows: the proximal operator by definition, and the implementations agree."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._threads import threads
from nonneg.kernels.row_caps import cap_rows

torch = pytest.importorskip("torch")


def arrays(rng, n_rows=7, n_columns=50, dtype=np.float64):
    split = np.abs(rng.normal(size=(n_rows, n_columns)))
    offset, product, dual = (rng.normal(size=split.shape) for _ in range(3))
    offset[0] -= 10.0  # a row without positive entries
    return [array.astype(dtype) for array in (offset, product, split, dual)], split.max(axis=1).astype(dtype)


@pytest.mark.parametrize("tau", [0.5, 5.0, 1e4])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_caps_are_those_of_the_definition(tau, scale):
    (offset, product, split, dual), caps = arrays(np.random.default_rng(0))
    caps *= scale
    relaxed = 1.5 * (offset + product) - 0.5 * split + dual
    first = offset + product
    before = split.copy()
    sums = cap_rows(offset, product, split, dual, caps, relax=1.5, tau=tau)
    cut = np.clip(relaxed - caps[:, None], 0.0, None).sum(axis=1)
    np.testing.assert_allclose(cut[caps > 0], tau, rtol=1e-6)
    assert (np.clip(relaxed, 0.0, None).sum(axis=1)[caps == 0] <= tau).all()
    np.testing.assert_allclose(split, np.clip(relaxed, 0.0, caps[:, None]), atol=1e-12)
    np.testing.assert_allclose(dual, relaxed - split, atol=1e-12)
    np.testing.assert_allclose(product, split - dual, atol=1e-12)
    expected = [np.sum(a**2) for a in (first - split, split - before, split, dual)]
    np.testing.assert_allclose(sums, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_portable_caps_equal_the_compiled_ones(dtype):
    given, caps = arrays(np.random.default_rng(1), dtype=dtype)
    tensors = [torch.from_numpy(array.copy()) for array in (*given, caps)]
    sums = cap_rows(*given, caps, relax=1.7, tau=3.0)
    others = cap_rows(*tensors, relax=1.7, tau=3.0)
    tol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(sums, others, rtol=tol)
    for one, other in zip((*given[1:], caps), tensors[1:], strict=True):
        np.testing.assert_allclose(one, other.numpy(), atol=10 * tol)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 33), (130, 17)])
def test_odd_sizes_on_one_and_three_threads(shape):
    results = []
    for n_jobs in (1, 3):
        given, caps = arrays(np.random.default_rng(2), max(shape[0], 1), shape[1])
        given, caps = [array[: shape[0]] for array in given], caps[: shape[0]]
        others = [torch.from_numpy(array.copy()) for array in (*given, caps)]
        with threads(n_jobs):
            sums = cap_rows(*given, caps, relax=1.6, tau=2.0)
        np.testing.assert_allclose(sums, cap_rows(*others, relax=1.6, tau=2.0), rtol=1e-10)
        results.append((sums, *(array.tobytes() for array in (*given, caps))))
    assert results[0] == results[1]
