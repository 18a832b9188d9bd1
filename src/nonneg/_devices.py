"""The `device` option: which GPU to use, whether it pays off, and clear errors if it is missing or full."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from nonneg._optional import import_optional, is_installed
from nonneg.exceptions import DeviceMemoryError, DeviceWarning, InvalidParameterError, MissingDependencyError

# "auto" takes the GPU from this many operations of a whole fit on, and from this many per entry of X. On an
# H200 (docs/benchmarks/gpu.md), 6.4e11 operations take 16 cores 2.4 s and the GPU 0.13 s, twice as many 5.2
# and 0.20 s, and the first fit of a process takes 3 to 4 s longer on the GPU: from about 1e12 on, even that
# one is faster. Where CUDA has started already, 2e9 operations take 0.05 and 0.04 s, 2e10 of another loss
# 0.82 and 0.09 s. The last number is several times the copy of an entry (estimated).
LEAST_OPERATIONS = 1e12
LEAST_OPERATIONS_STARTED = 2e10
LEAST_PER_ENTRY = 2e3
# A fit with the default `max_iter` seldom takes more iterations; what only may happen does not count.
LIKELY_ITERATIONS = 50
# An entry takes about this many times as long on a CPU if the loss has quotients and logarithms (estimated).
DIVERGENCE_COST = 10.0
# Iterations that encoding new samples costs about.
ENCODING_ITERATIONS = 5
# Where the number of components is to be estimated.
LIKELY_COMPONENTS = 10
# Part of the free memory that X may take: factors, their copies and products need the rest.
PART_FOR_DATA = 0.75

_EXPECTED = "None, 'cpu', 'auto', 'cuda', or 'cuda:1' for the second GPU"
_warned: set[str] = set()


def check_device_name(device: Any, name: str = "device") -> None:
    """Reject an invalid device name, without looking for the device."""
    named = device is None or (isinstance(device, str) and re.fullmatch(r"cpu|auto|cuda(:\d+)?", device))
    if not named:
        raise InvalidParameterError(f"{name}={device!r} (--device) is not a device. Expected {_EXPECTED}.")


def checked_device(device: str | None, name: str = "device") -> Any:
    """Return a PyTorch device, None for the CPU; "auto" is the GPU if there is one."""
    check_device_name(device, name)
    if device in (None, "cpu"):
        return None
    if device == "auto":
        if not is_installed("torch"):
            return None
        import torch

        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None
    torch = import_optional("torch", extra="torch", purpose=f"{name}={device!r}")
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not n_devices:
        raise MissingDependencyError(
            f"{name}={device!r}: {_why_no_gpu(torch)} Or leave {name} (--device) out."
        )
    found = torch.device(device)
    if found.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    if found.index >= n_devices:
        have = (
            "there is one GPU, 'cuda:0'" if n_devices == 1 else f"GPUs are 'cuda:0' to 'cuda:{n_devices - 1}'"
        )
        raise InvalidParameterError(f"{name}={device!r} does not exist: {have}.")
    return found


def _why_no_gpu(torch: Any) -> str:
    version = torch.__version__
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return (
            f"PyTorch {version} was built without CUDA. Install a build for your GPU with the command that "
            "https://pytorch.org/get-started/locally shows."
        )
    return (
        f"PyTorch {version} finds no GPU. nvidia-smi shows whether there is one, and whether its driver is "
        "recent enough."
    )


def chosen_device(
    device: str | None, X: Any, n_components: Any, *, n_iter: float, fitted: bool = False
) -> Any:
    """Return where to work on X, which is in host memory or in a file; None for the CPU.

    `n_iter` is roughly the number of iterations of all restarts. A fitted model also works without its GPU,
    with a warning.
    """
    check_device_name(device)
    if device in (None, "cpu"):
        return None
    if _is_elsewhere(X):
        if device != "auto":
            raise InvalidParameterError(
                f"device={device!r} is for data in host memory, and X is {_container(X)}, which stays where "
                "it is. Leave device out, or pass a NumPy array."
            )
        return None
    if device == "auto" and not pays(*_size(X), n_components, n_iter, started=cuda_has_started()):
        return None
    try:
        found = checked_device(device)
    except MissingDependencyError as error:
        if not fitted:
            raise
        _warn_once("absent", f"{error} This model runs on the CPU here.")
        return None
    return None if found is not None and device == "auto" and _too_large(X, found) else found


def likely_iterations(max_iter: float, n_init: int = 1, beta: float = 2.0) -> float:
    """Return about how many iterations with the Frobenius loss a fit is worth."""
    return min(max_iter, LIKELY_ITERATIONS) * n_init * (1.0 if beta == 2.0 else DIVERGENCE_COST)


def cuda_has_started() -> bool:
    """Tell whether PyTorch has used a GPU in this process, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def pays(
    shape: tuple[int, int], n_entries: float, n_components: Any, n_iter: float, *, started: bool = False
) -> bool:
    """Tell whether a GPU shortens a fit, by counts and by whether CUDA has started."""
    k = n_components if isinstance(n_components, int | np.integer) else LIKELY_COMPONENTS
    per_entry = 4.0 * k * n_iter
    # Rows and columns cost as well, which matters where X is sparse.
    work = per_entry * (n_entries + sum(shape) * k)
    least = LEAST_OPERATIONS_STARTED if started else LEAST_OPERATIONS
    return work >= least and per_entry >= LEAST_PER_ENTRY


def _size(X: Any) -> tuple[tuple[int, int], float]:
    shape = tuple(int(side) for side in getattr(X, "shape", ()))
    if len(shape) != 2:
        return (0, 0), 0.0
    stored = getattr(X, "nnz", None)
    return (shape[0], shape[1]), float(shape[0] * shape[1] if stored is None else stored)


def _too_large(X: Any, device: Any) -> bool:
    """Tell whether X is sparse, so that it cannot be streamed, and does not fit."""
    if getattr(X, "is_sparse", False) is True:
        return not X.fits()
    stored = getattr(X, "nnz", None)
    # Indices, entries and the transpose.
    return stored is not None and 24.0 * stored > PART_FOR_DATA * free_memory(device)


def _container(X: Any) -> str:
    return f"a {type(X).__module__.partition('.')[0]} {type(X).__name__}"


def _is_elsewhere(X: Any) -> bool:
    """Tell whether X is an array of a library other than NumPy, SciPy and those that read files."""
    from nonneg._arrays import is_non_numpy

    return is_non_numpy(X) or type(X).__module__.partition(".")[0] == "cupyx"


def free_memory(device: Any) -> float:
    """Return the bytes that can be allocated on a device."""
    import torch

    if device.type != "cuda":
        return float("inf")
    free, total = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device)
    part = getattr(torch.cuda, "get_per_process_memory_fraction", lambda device: 1.0)(device)
    return min(free, part * total - held) + held - torch.cuda.memory_allocated(device)


@contextmanager
def device_work(data: Any, n_components: int | None = None) -> Iterator[None]:
    """Work on data: their GPU is the current one, as kernels need it, and the error of a full one helps."""
    try:
        with _current(data):
            yield
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":  # PyTorch's and CuPy's
            raise
        # The frames hold what filled the memory.
        traceback.clear_frames(error.__traceback__)
        first = str(error).partition("\n")[0][:200]
    else:
        return
    shape, dtype = data.shape, data.dtype
    single = "float32" in str(dtype)
    advice = [] if single else ["use float32 (X.astype(numpy.float32), --dtype float32): half the memory"]
    if n_components is not None:
        advice.append(f"ask for fewer than {n_components} components")
    advice.append(
        "pass X as a NumPy array or file with device='cuda': what does not fit is streamed in blocks"
    )
    advice.append("or leave device out")
    raise DeviceMemoryError(
        f"The GPU ran out of memory for X ({shape[0]} x {shape[1]} {str(dtype).removeprefix('torch.')}) and "
        f"its factors. What you can do: {'; '.join(advice)}. ({first})"
    )


def _current(data: Any) -> AbstractContextManager[Any]:
    if data.container in ("dense", "sparse", "dask") or "torch" not in sys.modules:
        return nullcontext()
    device = getattr(data.to_device(np.zeros(1)), "device", None)
    # Not where tensors in host memory stand for those on a GPU, as in tests.
    on_cuda = getattr(device, "type", None) == "cuda"
    return sys.modules["torch"].cuda.device(device) if on_cuda else nullcontext()


def warn_without_triton() -> None:
    """Warn once if Triton is missing, where its kernels would have been used."""
    if not is_installed("triton"):
        _warn_once(
            "triton",
            "Triton is not installed, so the GPU runs array operations instead of compiled kernels: "
            f"{SLOWER_WITHOUT_TRITON}. Install it with: pip install triton",
        )


# Iterations of HALS on 20000 x 2000, k=20, on an H200 (docs/benchmarks/gpu.md).
SLOWER_WITHOUT_TRITON = "an iteration may take 200 times as long (128 ms instead of 0.65 ms on an H200)"


def _warn_once(what: str, message: str) -> None:
    if what not in _warned:
        _warned.add(what)
        warnings.warn(message, DeviceWarning, stacklevel=3)
