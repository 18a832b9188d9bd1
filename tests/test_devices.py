"""The `device` option: names, the rule of "auto", clear errors, NumPy in and out, larger than the device."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import nonneg._devices as devices
from nonneg import NMF, factorize, load, non_negative_factorization, open_matrix
from nonneg.data import streamed
from nonneg.data.door import Request, wrap
from nonneg.data.streamed import StreamedMatrix
from nonneg.exceptions import (
    DeviceMemoryError,
    InvalidParameterError,
    MissingDependencyError,
    NonFiniteDataError,
    NonnegWarning,
)
from nonneg.solvers import SOLVERS


@pytest.fixture
def gpu(torch, monkeypatch):
    """A device: a GPU, or else the processor with PyTorch, which takes the same way through the code."""
    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    monkeypatch.setattr(devices, "checked_device", lambda device: torch.device("cpu") if device else None)
    return torch.device("cpu")


@pytest.fixture
def small_gpu(gpu, monkeypatch):
    """A device with so little memory that 60 x 40 numbers are streamed, in blocks of a few rows."""
    monkeypatch.setattr(streamed, "free_memory", lambda device: 12 * 4 * 40 * 8.0)
    return gpu


# Names and the rule of "auto".


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CUDA", "mps"])
def test_what_is_no_device_is_refused(name):
    with pytest.raises(
        InvalidParameterError, match=r"is not a device\. Expected None, 'cpu', 'auto', 'cuda'"
    ):
        factorize(np.ones((4, 3)), 1, device=name)


def test_without_pytorch_the_error_says_what_to_install(monkeypatch):
    def missing(name, *, extra, purpose):
        raise MissingDependencyError(f"{purpose} needs torch. Install it with: pip install 'nonneg[{extra}]'")

    monkeypatch.setattr(devices, "import_optional", missing)
    with pytest.raises(MissingDependencyError, match=r"device='cuda' needs torch.*nonneg\[torch\]"):
        NMF(2, device="cuda").fit(np.ones((4, 3)))


def test_a_gpu_without_triton_is_said_once(device, torch, low_rank, monkeypatch):
    monkeypatch.setattr(devices, "is_installed", lambda name: name != "triton")
    devices._warn_without_triton.cache_clear()
    X = torch.as_tensor(low_rank[:7, :5], device=device)
    try:
        with pytest.warns(NonnegWarning, match="more than 10 times as long.*pip install triton") as said:
            factorize(X, 2, max_iter=2, tol=0)
        NMF(2, max_iter=2, tol=0).fit(X)  # a second warning would be an error
    finally:
        devices._warn_without_triton.cache_clear()
    assert [each.filename for each in said] == [__file__]


def test_without_a_gpu_the_error_says_what_to_do(torch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    message = r"finds no GPU, or was built without CUDA\. nvidia-smi.*pytorch\.org.*leave device"
    with pytest.raises(MissingDependencyError, match=message):
        NMF(2, device="cuda").fit(np.ones((4, 3)))
    with pytest.raises(MissingDependencyError, match=message):
        non_negative_factorization(np.ones((4, 3)), n_components=1, device="cuda:1")


def test_a_gpu_that_does_not_exist_is_named(torch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InvalidParameterError, match=r"'cuda:5' does not exist: the last GPU is 'cuda:1'"):
        NMF(2, device="cuda:5").fit(np.ones((4, 3)))


def test_auto_counts_work():
    large = (200_000, 2_000)
    assert devices.pays(large, 4e8, 40, 50)
    assert not devices.pays((500, 200), 1e5, 5, 50)
    assert not devices.pays(large, 4e8, 40, 1)
    # Sparse work counts its nonzeros.
    assert not devices.pays(large, 1e6, 5, 50)
    # Two hundred restarts of a small table do what one does not.
    assert not devices.pays((96, 2_700), 96 * 2700.0, 20, devices.likely_iterations(1000))
    assert devices.pays((96, 2_700), 96 * 2700.0, 20, devices.likely_iterations(1000, 200, beta=1.0))


@pytest.mark.torch
def test_auto_asks_whether_cuda_has_started(torch, monkeypatch):
    assert not devices.pays((2_000, 500), 1e6, 10, 50, started=True)
    monkeypatch.setattr(devices, "checked_device", lambda *given: torch.device("cuda", 0))
    for started in (False, True):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda started=started: started)
        assert (devices.chosen_device("auto", np.ones((20_000, 100)), 40, n_iter=100) is not None) == started


def test_auto_is_the_processor_for_small_work_and_without_a_gpu(monkeypatch, low_rank):
    monkeypatch.setattr(devices, "checked_device", lambda *given: pytest.fail("no GPU was needed"))
    plain, auto = (NMF(4, random_state=0, device=device).fit(low_rank) for device in (None, "auto"))
    assert np.array_equal(plain.components_, auto.components_)
    monkeypatch.setattr(devices, "is_installed", lambda name: False)
    monkeypatch.undo()
    monkeypatch.setattr(devices, "is_installed", lambda name: False)
    assert devices.checked_device("auto") is None


@pytest.mark.torch
def test_a_tensor_stays_where_it_is(torch, low_rank):
    X = torch.asarray(low_rank)
    with pytest.raises(
        InvalidParameterError, match=r"device='cuda' is for data in host memory.*torch Tensor"
    ):
        NMF(2, device="cuda").fit(X)
    assert torch.is_tensor(NMF(2, device="auto", random_state=0).fit(X).components_)


# NumPy in, NumPy out, and the numbers of the processor.


@pytest.mark.torch
@pytest.mark.parametrize("beta", [2.0, 1.0, 0.0])
def test_results_are_those_of_the_processor_as_numpy_arrays(gpu, low_rank, beta):
    given = {"beta_loss": beta, "random_state": 0, "max_iter": 20, "tol": 0, "init": "random"}
    host, device = NMF(4, **given), NMF(4, device="cuda", **given)
    W, on_device = host.fit_transform(low_rank), device.fit_transform(low_rank)
    assert isinstance(on_device, np.ndarray)
    assert isinstance(device.components_, np.ndarray)
    assert isinstance(device.result_.W, np.ndarray)
    assert device.components_.flags.c_contiguous
    np.testing.assert_allclose(device.history_.loss, host.history_.loss, rtol=1e-8)
    np.testing.assert_allclose(device.components_, host.components_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(on_device, W, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(device.transform(low_rank), on_device, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(device.reconstruction_err_, host.reconstruction_err_, rtol=1e-6)
    np.testing.assert_allclose(device.score(low_rank), host.score(low_rank), rtol=1e-5)
    if beta == 2.0:
        number = device.certify(low_rank)["eckart-young-bound"].number
        np.testing.assert_allclose(number, host.certify(low_rank)["eckart-young-bound"].number, rtol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("solver", [name for name, entry in SOLVERS.items() if "array" in entry.inputs])
def test_every_solver_takes_the_steps_of_the_processor(gpu, low_rank, solver):
    beta = 2.0 if SOLVERS[solver].minimizes(2.0) else 1.0
    given = {"rng": 0, "max_iter": 20, "tol": 0, "init": "random", "solver": solver, "beta_loss": beta}
    host, device = (factorize(low_rank, 4, device=at, **given) for at in (None, "cuda"))
    np.testing.assert_allclose(device.loss, host.loss, rtol=1e-6)
    np.testing.assert_allclose(device.W, host.W, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(device.H, host.H, rtol=1e-5, atol=1e-7)


@pytest.mark.torch
def test_functions_weights_missing_entries_and_scales(gpu, low_rank):
    weights = 1.0 + np.arange(60) % 3
    holes = low_rank.copy()
    holes[3, 5] = holes[10, 0] = np.nan
    for options in ({"sample_weight": weights}, {"missing": "mask"}):
        X = holes if "missing" in options else low_rank
        host, device = (
            factorize(X, 3, rng=0, max_iter=15, tol=0, init="random", device=at, **options)
            for at in (None, "cuda")
        )
        assert isinstance(device.W, np.ndarray)
        np.testing.assert_allclose(device.history.loss, host.history.loss, rtol=1e-8)
    host, device = (
        NMF(3, scale="max", init="random", random_state=0, max_iter=15, tol=0, device=at).fit(low_rank)
        for at in (None, "cuda")
    )
    np.testing.assert_allclose(device.components_, host.components_, rtol=1e-6, atol=1e-9)
    W, H, _ = non_negative_factorization(low_rank, n_components=3, random_state=0, device="cuda")
    assert isinstance(W, np.ndarray)
    again, _, _ = non_negative_factorization(low_rank, H=H, update_H=False, device="cuda")
    assert isinstance(again, np.ndarray)
    np.testing.assert_allclose(again, W, rtol=1e-6, atol=1e-8)


@pytest.mark.torch
def test_float32_integers_and_fortran_order(gpu, low_rank):
    assert NMF(3, device="cuda").fit(low_rank.astype(np.float32)).components_.dtype == np.float32
    whole = np.asfortranarray(np.round(low_rank * 10).astype(int))
    host, device = (NMF(3, device=at, max_iter=10, tol=0).fit(whole) for at in (None, "cuda"))
    np.testing.assert_allclose(device.components_, host.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.torch
def test_batches_are_learned_on_the_device(gpu, low_rank):
    host, device = (NMF(3, random_state=0, device=at) for at in (None, "cuda"))
    for batch in (low_rank[:30], low_rank[30:]):
        for model in (host, device):
            model.partial_fit(batch)
    assert isinstance(device.components_, np.ndarray)
    np.testing.assert_allclose(device.components_, host.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.torch
def test_nan_is_found_on_the_device(gpu, low_rank):
    low_rank[7, 3] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"contains NaN: entry \[7, 3\]"):
        NMF(2, device="cuda").fit(low_rank)


# scikit-learn's contract, saved models.


def test_the_device_is_a_parameter_like_others():
    model = NMF(2, device="cuda:1")
    assert clone(model).get_params()["device"] == "cuda:1"
    assert pickle.loads(pickle.dumps(model)).device == "cuda:1"  # noqa: S301


@pytest.mark.torch
def test_a_model_from_a_gpu_works_where_there_is_none(gpu, low_rank, tmp_path, monkeypatch, torch):
    model = NMF(3, device="cuda", random_state=0).fit(low_rank)
    W = model.transform(low_rank)
    model.save(tmp_path / "model.npz")
    sent = pickle.dumps(model)
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for found in (load(tmp_path / "model.npz"), pickle.loads(sent)):  # noqa: S301
        assert found.device == "cuda"
        with pytest.warns(NonnegWarning, match="runs on the CPU here"):
            np.testing.assert_allclose(found.transform(low_rank), W, rtol=1e-6, atol=1e-8)
        with pytest.raises(MissingDependencyError):
            found.fit(low_rank)


# Out of memory.


@pytest.mark.torch
def test_out_of_memory_says_what_to_do(gpu, low_rank, monkeypatch, torch):
    def full(*given, **named):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.00 GiB.\nDetails")

    monkeypatch.setattr(importlib.import_module("nonneg.solvers.factorize"), "certify", full)
    message = r"out of memory for X \(60 x 40 float64\).*float32.*fewer components.*streamed.*3\.00 GiB"
    with pytest.raises(DeviceMemoryError, match=message):
        NMF(3, device="cuda").fit(low_rank)
    with pytest.raises(DeviceMemoryError) as found:
        NMF(3, device="cuda").fit(low_rank.astype(np.float32))
    assert "use float32" not in str(found.value)
    assert isinstance(found.value, MemoryError)


# Larger than the device.


@pytest.mark.torch
@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_what_does_not_fit_is_streamed_with_the_same_numbers(small_gpu, low_rank, beta):
    given = {"beta_loss": beta, "random_state": 0, "max_iter": 6, "tol": 0, "init": "random"}
    data = wrap(low_rank, Request(device=small_gpu))
    assert isinstance(data, StreamedMatrix)
    assert sum(1 for _ in data.local_blocks()) > 5
    host, device = NMF(4, **given), NMF(4, device="cuda", **given)
    W, on_device = host.fit_transform(low_rank), device.fit_transform(low_rank)
    assert isinstance(on_device, np.ndarray)
    np.testing.assert_allclose(device.history_.loss, host.history_.loss, rtol=1e-8)
    np.testing.assert_allclose(device.components_, host.components_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(on_device, W, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(device.transform(low_rank), on_device, rtol=1e-6, atol=1e-8)


@pytest.mark.torch
def test_an_iteration_reads_the_data_once(small_gpu, low_rank):
    from nonneg.losses.penalties import Penalties
    from nonneg.solvers.hals import hals

    data = wrap(low_rank, Request(device=small_gpu))
    assert data.n_passes == 1  # the check, which also finds all statistics
    rng = np.random.default_rng(0)
    W, Ht = data.to_device(rng.random((60, 3))), data.to_device(rng.random((40, 3)))
    hals(data, W, Ht, penalties=Penalties(), momentum=0.0, passes=(1, 1), max_iter=5, tol=0)
    assert data.n_passes == 1 + 5


@pytest.mark.torch
def test_files_memory_maps_weights_and_missing_entries_are_streamed(small_gpu, low_rank, tmp_path):
    path = tmp_path / "X.npy"
    low_rank[4, 7] = np.nan
    np.save(path, low_rank)
    weights = 1.0 + np.arange(60) % 2
    options = {"rng": 0, "max_iter": 4, "tol": 0, "init": "random", "missing": "mask"}
    options["sample_weight"] = weights
    host = factorize(low_rank, 3, **options)
    for X in (np.load(path, mmap_mode="r"), open_matrix(path), open_matrix(path, memory="6kB")):
        device = factorize(X, 3, device="cuda", **options)
        assert isinstance(device.W, np.ndarray)
        np.testing.assert_allclose(device.history.loss, host.history.loss, rtol=1e-8)
    with pytest.raises(NonFiniteDataError, match=r"\[4, 7\]"):
        factorize(open_matrix(path, memory="6kB"), 3, device="cuda")


@pytest.mark.torch
def test_sparse_data_are_not_streamed(small_gpu, counts):
    with pytest.raises(DeviceMemoryError, match="Sparse data are not streamed through a GPU"):
        wrap(sp.csr_array(np.ones((60, 40))), Request(device=small_gpu))


@pytest.mark.torch
@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_sparse_data_are_worked_on_as_sparse(gpu, counts, beta):
    given = {"rng": 0, "max_iter": 15, "tol": 0, "init": "random", "beta_loss": beta}
    given["solver"] = "hals" if beta == 2.0 else "newton"
    data = wrap(counts, Request(device=gpu))
    assert "sparse" in data.container
    host, device = (factorize(counts, 4, device=at, **given) for at in (None, "cuda"))
    assert isinstance(device.W, np.ndarray)
    np.testing.assert_allclose(device.history.loss, host.history.loss, rtol=1e-8)
    np.testing.assert_allclose(device.H, host.H, rtol=1e-5, atol=1e-7)
