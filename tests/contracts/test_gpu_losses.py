"""Every loss but the squared one gives the numbers of NumPy on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contracts.cases import PENALTIES, K, close, close_in_float32, entries, initial, run, steady
from tests.contracts.cases import SHAPE_ON_GPU as SHAPE

from nonneg import NMF, factorize

BETAS = (0.0, 0.5, 1.0, 1.5, -1.0)
SOLVERS = ("mu", "newton")
QUICK = [("mu", 1.0), ("mu", -1.0), ("newton", 0.0), ("newton", 1.5)]
WEIGHTS = np.random.default_rng(2).gamma(1.0, size=SHAPE[0])
pytestmark = pytest.mark.torch


def n_iter(device, several=20):
    """Return how many iterations: one where Triton's interpreter takes half a second for each."""
    # A CUDA graph is recorded after three calls, and the next iteration is queued ahead.
    return several if device.type == "cuda" else 1


def only_on_a_gpu(device, extra):
    """Skip what differs from other tests in the loss alone."""
    if extra and device.type != "cuda":
        pytest.skip("only on a GPU")


def on(torch, device, X, dtype=None):
    return torch.asarray(X if dtype is None else X.astype(dtype), device=device)


@pytest.mark.parametrize(
    ("name", "beta"),
    [
        pytest.param(name, beta, marks=() if (name, beta) in QUICK else pytest.mark.slow)
        for name in SOLVERS
        for beta in BETAS
    ],
)
def test_twenty_iterations_agree_with_numpy_to_1e_8(name, beta, torch, device):
    X = entries(beta, SHAPE)
    options = {"max_iter": n_iter(device), "sample_weight": WEIGHTS, **initial(SHAPE), **PENALTIES}
    expected = run(X, name, beta, **options)
    result = run(on(torch, device, X), name, beta, **options)
    close(result.W.cpu().numpy(), expected.W, 1e-8)
    close(result.H.cpu().numpy(), expected.H, 1e-8)
    np.testing.assert_allclose(result.history.loss, expected.history.loss, rtol=1e-8)
    assert result.certificate["stationarity"].number == pytest.approx(
        expected.certificate["stationarity"].number, rel=1e-5, abs=1e-9
    )


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("beta", BETAS)
def test_twenty_iterations_in_float32_agree_with_numpy(name, beta, torch, device):
    only_on_a_gpu(device, (name, beta) != ("newton", 1.0))
    X = steady(beta)[: SHAPE[0]]
    given = {key: value.astype(np.float32) for key, value in initial(X.shape).items()}
    expected = run(X, name, beta, max_iter=n_iter(device), **given)
    close_in_float32(run(on(torch, device, X), name, beta, max_iter=n_iter(device), **given), expected)


@pytest.mark.parametrize(("name", "beta"), [("mu", 1.0), ("newton", 1.0), ("newton", 0.0), ("newton", 1.5)])
def test_missing_entries_agree_with_numpy(name, beta, torch, device):
    only_on_a_gpu(device, (name, beta) in [("newton", 0.0), ("newton", 1.5)])
    X = entries(beta, SHAPE)
    mask = np.random.default_rng(3).random(X.shape) < 0.8
    X[~mask] = np.nan
    options = {"missing": "mask", "max_iter": n_iter(device), **initial(SHAPE)}
    expected = run(X, name, beta, **options)
    result = run(on(torch, device, X), name, beta, **options)
    close(result.W.cpu().numpy(), expected.W, 1e-8)
    close(result.H.cpu().numpy(), expected.H, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5])
def test_a_fit_ends_as_on_numpy_and_transforms_alike(beta, torch, device):
    only_on_a_gpu(device, beta != 1.0)
    X = entries(beta, SHAPE)
    options = {"beta_loss": beta, "random_state": 0, "tol": 1e-3, "max_iter": 60}
    if device.type != "cuda":
        options |= {"tol": 0.0, "max_iter": 2}
    expected, model = NMF(K, **options).fit(X), NMF(K, **options)
    W = model.fit_transform(on(torch, device, X))
    assert model.n_iter_ == expected.n_iter_
    np.testing.assert_allclose(model.history_.loss, expected.history_.loss, rtol=1e-6)
    close(W.cpu().numpy(), expected.transform(X), 1e-5)
    if device.type == "cuda":
        close(model.transform(on(torch, device, X)).cpu().numpy(), W.cpu().numpy(), 1e-7)


@pytest.mark.covering(0)
@pytest.mark.parametrize("name", SOLVERS)
def test_frozen_components_stay(name, torch, device):
    X, given = entries(1.0, SHAPE), initial(SHAPE)
    options = {**given, "frozen_components": [1], "max_iter": n_iter(device, 6)}
    expected = run(X, name, 1.0, **options)
    result = run(on(torch, device, X), name, 1.0, **options)
    np.testing.assert_array_equal(result.H.cpu().numpy()[1], given["H"][1])
    close(result.H.cpu().numpy(), expected.H, 1e-8)


@pytest.mark.covering(0)
@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (5, 130)])
def test_odd_shapes_agree_with_numpy(shape, torch, device):
    X = entries(1.0, shape=shape) + 0.1
    k = 1 if 1 in shape else 4
    options = {**initial(shape, k=k), "k": k, "max_iter": 6 if device.type == "cuda" else 1}
    for name in SOLVERS:
        expected = run(X, name, 1.0, **options)
        result = run(on(torch, device, X), name, 1.0, **options)
        close(result.W.cpu().numpy() @ result.H.cpu().numpy(), expected.W @ expected.H, 1e-8)


def test_results_are_the_same_bytes_twice(torch, device):
    if device.type != "cuda":
        pytest.skip("the interpreter has one order of sums")
    X = on(torch, device, entries(1.0, shape=(70, 90)), np.float32)
    first, second = (factorize(X, 5, beta_loss=1.0, max_iter=5, tol=0, rng=0) for _ in range(2))
    assert torch.equal(first.W, second.W)
    assert torch.equal(first.H, second.H)
    assert first.history.loss == second.history.loss


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5])
def test_arrays_of_cupy(name, beta, device):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if device.type != "cuda":
        pytest.skip("there is no GPU")
    X, options = entries(beta, SHAPE), {"sample_weight": WEIGHTS, **PENALTIES, **initial(SHAPE)}
    expected = run(X, name, beta, **options)
    found = run(cupy.asarray(X), name, beta, **options)
    assert isinstance(found.W, cupy.ndarray)
    close(found.W.get(), expected.W, 1e-8)
    close(found.H.get(), expected.H, 1e-8)
    np.testing.assert_allclose(found.history.loss, expected.history.loss, rtol=1e-8)
