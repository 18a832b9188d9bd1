"""Fits of dense tensors on a GPU are those of NumPy; without one they run through Triton's interpreter."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from tests.contracts.cases import ALL, PENALTIES, K, close, close_in_float32, entries, initial, run, steady
from tests.contracts.cases import SHAPE_ON_GPU as SHAPE

import nonneg
from nonneg.iteration import captured

WEIGHTS = np.random.default_rng(2).gamma(1.0, size=SHAPE[0])
FROBENIUS = [name for name, solver in ALL.items() if solver.minimizes(2.0) and solver.betas == (2.0, 2.0)]


@pytest.fixture
def gpu(device, monkeypatch):
    """A GPU, or the interpreter, for which few large programs take less time."""
    if device.type != "cuda":
        monkeypatch.setattr("nonneg.kernels.hals.triton.FULL", 1)
    return device


def iterations(gpu):
    """Twenty, or a few where each takes half a second."""
    return 20 if gpu.type == "cuda" else 2


def host(array):
    return array.detach().cpu().numpy()


@pytest.mark.parametrize("name", FROBENIUS)
def test_twenty_iterations_are_those_of_numpy(name, torch, gpu):
    X, options = entries(2.0, SHAPE), {"sample_weight": WEIGHTS, **PENALTIES, **initial(SHAPE)}
    options["max_iter"] = 1 if name == "anls" and gpu.type != "cuda" else iterations(gpu)
    expected = run(X, name, 2.0, **options)
    found = run(torch.asarray(X).to(gpu), name, 2.0, **options)
    assert found.W.dtype == torch.float64
    assert found.W.is_contiguous()
    close(host(found.W), expected.W, 1e-8)
    close(host(found.H), expected.H, 1e-8)
    np.testing.assert_allclose(found.history.loss, expected.history.loss, rtol=1e-8)
    assert found.loss == pytest.approx(expected.loss, rel=1e-8)
    residuals = [result.certificate["stationarity"].number for result in (found, expected)]
    assert residuals[0] == pytest.approx(residuals[1], rel=1e-3)


@pytest.mark.covering(0)
@pytest.mark.parametrize("name", FROBENIUS)
def test_twenty_iterations_in_float32_are_those_of_numpy(name, torch, gpu):
    X = steady(2.0)[: SHAPE[0]]
    given = {key: value.astype(np.float32) for key, value in initial(X.shape).items()}
    options = {"max_iter": 20 if gpu.type == "cuda" else 1, **given}
    expected = run(X, name, 2.0, **options)
    close_in_float32(run(torch.asarray(X).to(gpu), name, 2.0, **options), expected)


@pytest.mark.covering(0)
@pytest.mark.parametrize(("shape", "k"), [((1, 7), 1), ((7, 1), 1), ((35, 9), 2), ((9, 35), 5)])
def test_odd_shapes(shape, k, torch, gpu):
    if k == 2 and gpu.type != "cuda":
        pytest.skip("takes long in the interpreter; several programs of rows are in test_triton_rows.py")
    X = entries(2.0, shape)
    given = initial(shape, k=k)
    max_iter = 2 if gpu.type == "cuda" else 1
    for name in ("hals", "anls"):
        expected = run(X, name, 2.0, k=k, max_iter=max_iter, **given)
        found = run(torch.asarray(X).to(gpu), name, 2.0, k=k, max_iter=max_iter, **given)
        close(host(found.W), expected.W, 1e-8)
        close(host(found.H), expected.H, 1e-8)


@pytest.mark.covering(0)
@pytest.mark.parametrize("name", ["hals", "anls"])
def test_a_run_ends_where_that_of_numpy_does(name, torch, gpu):
    X = entries(2.0, (30, 12))
    tol = 1e-3 if gpu.type == "cuda" else 0.4
    options = {"max_iter": 200, "tol": tol, **initial((30, 12))}
    expected = run(X, name, 2.0, **options)
    found = run(torch.asarray(X).to(gpu), name, 2.0, **options)
    assert found.n_iter == expected.n_iter < 200
    assert found.stop_reason is expected.stop_reason
    np.testing.assert_allclose(found.history.loss, expected.history.loss, rtol=1e-7)
    np.testing.assert_allclose(
        found.history["violation"],
        expected.history["violation"],
        rtol=1e-5,
        atol=1e-9 * found.history["violation"][0],
    )
    close(host(found.H), expected.H, 1e-6)
    assert np.all(np.diff(found.history.loss) <= 1e-12 * found.history.loss[0])


def test_frozen_components_and_missing_entries(torch, gpu):
    X = entries(2.0, SHAPE)
    mask = np.random.default_rng(0).random(X.shape) < 0.8
    given = {"max_iter": 3 if gpu.type == "cuda" else 1, **initial(SHAPE)}
    expected = run(X, "hals", 2.0, mask=mask, **given)
    found = run(torch.asarray(X).to(gpu), "hals", 2.0, mask=torch.asarray(mask).to(gpu), **given)
    close(host(found.W), expected.W, 1e-8)
    np.testing.assert_allclose(found.history.loss, expected.history.loss, rtol=1e-8)
    for name in ("hals", "anls"):
        expected = run(X, name, 2.0, frozen_components=[1], **given)
        found = run(torch.asarray(X).to(gpu), name, 2.0, frozen_components=[1], **given)
        close(host(found.H), expected.H, 1e-8)


def test_a_callback_sees_every_iteration_and_may_stop_the_run(torch, gpu):
    X = entries(2.0, SHAPE)
    seen = []

    def callback(progress):
        seen.append((progress.n_iter, progress.history.loss[-1], host(progress.state.W)))
        return progress.n_iter == 3

    found = run(torch.asarray(X).to(gpu), "hals", 2.0, callback=callback, **initial(SHAPE))
    expected = run(X, "hals", 2.0, max_iter=3, **initial(SHAPE))
    assert [n for n, _, _ in seen] == [1, 2, 3]
    np.testing.assert_allclose([loss for _, loss, _ in seen], expected.history.loss, rtol=1e-8)
    assert not np.array_equal(seen[0][2], seen[1][2])
    close(host(found.W), expected.W, 1e-8)


def test_a_checkpoint_resumes(torch, gpu, tmp_path):
    X = torch.asarray(entries(2.0, SHAPE)).to(gpu)
    whole = run(X, "hals", 2.0, max_iter=3, **initial(SHAPE))
    run(X, "hals", 2.0, max_iter=1, checkpoint=tmp_path, **initial(SHAPE))
    resumed = run(X, "hals", 2.0, max_iter=3, checkpoint=tmp_path, **initial(SHAPE))
    assert resumed.n_iter == 3
    np.testing.assert_allclose(resumed.history.loss, whole.history.loss, rtol=1e-12)
    close(host(resumed.W), host(whole.W), 1e-10)


@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
def test_the_default_fit_and_its_transform_agree_with_numpy(torch, gpu):
    X = entries(2.0, (40, 60) if gpu.type == "cuda" else (8, 10))
    options = {"random_state": 0, "max_iter": 40 if gpu.type == "cuda" else 2}
    expected = nonneg.NMF(K, **options).fit(X)
    tensor = torch.asarray(X).to(gpu)
    model = nonneg.NMF(K, **options)
    W = model.fit_transform(tensor)
    assert model.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-6)
    close(host(model.transform(tensor)), host(W), 1e-8)


def test_memory_beyond_the_data(torch, gpu):
    if gpu.type != "cuda":
        pytest.skip("there is no GPU")
    n_rows, n_columns, k = 400_000, 300, 40
    X = torch.rand((n_rows, n_columns), device=gpu)
    factors = 4 * (n_rows + n_columns) * k
    X[:50] @ X[:50].T  # cuBLAS takes memory of its own once
    X.clamp_(min=1e-3)
    too_much = {}
    for solver, beta in (
        ("hals", 2.0),
        ("anls", 2.0),
        ("newton", 1.0),
        ("newton", 0.0),
        ("mu", 1.0),
        ("mu", 0.0),
    ):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        nonneg.NMF(k, solver=solver, beta_loss=beta, max_iter=5, tol=0).fit(X)
        used = torch.cuda.max_memory_allocated() - before
        # Least squares keep four copies of the factors; the array code of the other losses a dozen.
        allowed = (4 if beta == 2.0 else 12) * factors + 256e6
        if used > allowed:
            too_much[solver, beta] = used / 1e6
    assert not too_much


def test_fits_leave_no_memory_behind(torch, gpu):
    if gpu.type != "cuda":
        pytest.skip("there is no GPU")
    X = torch.rand((300, 200), device=gpu)
    held = []
    for _ in range(4):
        for options in ({}, {"beta_loss": 1.0}, {"beta_loss": 1.0, "n_init": 3}, {"n_init": 3}):
            nonneg.NMF(5, init="random", random_state=0, max_iter=12, tol=0, **options).fit(X)
        gc.collect()
        held.append(torch.cuda.memory_allocated())
    # cuBLAS keeps 32 MB for every stream on which it has worked.
    assert held[-1] - held[0] < 1e6, held


def test_results_do_not_hinge_on_the_setting_for_tf32(torch, gpu):
    if gpu.type != "cuda":
        pytest.skip("there is no GPU")
    X = torch.rand((500, 300), device=gpu)
    plain = nonneg.factorize(X, 5, max_iter=10, tol=0, rng=0).history.loss
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        assert nonneg.factorize(X, 5, max_iter=10, tol=0, rng=0).history.loss == plain
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    finally:
        torch.backends.cuda.matmul.fp32_precision = "ieee"
    with nonneg.float32_products("tf32"):
        rounded = nonneg.factorize(X, 5, max_iter=10, tol=0, rng=0).history.loss
    assert rounded != plain
    np.testing.assert_allclose(rounded, plain, rtol=1e-2)


@pytest.mark.parametrize("name", ["hals", "anls"])
def test_arrays_of_cupy(name, gpu):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if gpu.type != "cuda":
        pytest.skip("there is no GPU")
    X, options = entries(2.0, SHAPE), {"sample_weight": WEIGHTS, **PENALTIES, **initial(SHAPE)}
    expected = run(X, name, 2.0, **options)
    found = run(cupy.asarray(X), name, 2.0, **options)
    assert isinstance(found.W, cupy.ndarray)
    close(found.W.get(), expected.W, 1e-8)
    np.testing.assert_allclose(found.history.loss, expected.history.loss, rtol=1e-8)
    mask = np.random.default_rng(0).random(X.shape) < 0.8
    expected = run(X, "hals", 2.0, mask=mask, max_iter=8, **initial(SHAPE))
    found = run(cupy.asarray(X), "hals", 2.0, mask=cupy.asarray(mask), max_iter=8, **initial(SHAPE))
    close(found.W.get(), expected.W, 1e-8)


def test_a_graph_and_single_launches_give_the_same_bytes(torch, gpu, monkeypatch):
    if gpu.type != "cuda":
        pytest.skip("there is no GPU")
    X = torch.rand((3000, 500), device=gpu)
    results = []
    for graph in (False, True):
        monkeypatch.setattr(captured, "RECORDED_ENTRIES", 1 << 22 if graph else 0)
        results.append(nonneg.factorize(X, 7, solver="hals", max_iter=20, tol=0, rng=0))
    assert torch.equal(results[0].W, results[1].W)
    assert results[0].history.loss == results[1].history.loss
