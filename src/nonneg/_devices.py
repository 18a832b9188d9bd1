"""The `device` option: which GPU to use, whether it pays off, clear errors if it is missing or full; and how
products of float32 tensors are computed on it."""

from __future__ import annotations

import functools
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from nonneg._arrays import is_non_numpy, library_of, on_gpu
from nonneg._optional import import_optional, is_installed
from nonneg._warnings import warn_user
from nonneg.exceptions import DeviceMemoryError, InvalidParameterError, MissingDependencyError, NonnegWarning

# "auto" takes the GPU from this many operations of a whole fit on: the first fit of a process takes seconds
# longer there, to start CUDA. The second number is for a process in which CUDA has started
# (docs/benchmarks/gpu.md).
LEAST_OPERATIONS, LEAST_OPERATIONS_STARTED = 1e12, 2e10
# The crossover was measured with so many iterations, and a fit with the default `max_iter` seldom takes more.
# An entry takes five times as long on a CPU if the loss has quotients and logarithms, as was measured there.
LIKELY_ITERATIONS, DIVERGENCE_COST = 50, 5.0
# Part of the free memory that X may take: factors, their copies and products need the rest.
PART_FOR_DATA = 0.75

_wanted: ContextVar[str] = ContextVar("float32_products", default="float32")


def checked_device(device: str | None) -> Any:
    """Return a PyTorch device, None for the CPU; "auto" is the GPU if there is one."""
    if device is not None and not (isinstance(device, str) and re.fullmatch(r"cpu|auto|cuda(:\d+)?", device)):
        raise InvalidParameterError(
            f"device={device!r} (--device) is not a device. Expected None, 'cpu', 'auto', 'cuda', or "
            "'cuda:1' for the second GPU."
        )
    if device in (None, "cpu") or (device == "auto" and not is_installed("torch")):
        return None
    torch = import_optional("torch", extra="torch", purpose=f"device={device!r}")
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto" and not n_devices:
        return None
    if not n_devices:
        raise MissingDependencyError(
            f"device={device!r}: PyTorch {torch.__version__} finds no GPU, or was built without CUDA. "
            "nvidia-smi shows whether there is a GPU and a recent driver, "
            "https://pytorch.org/get-started/locally which PyTorch it needs. Or leave device (--device) out."
        )
    number = torch.cuda.current_device() if device in ("auto", "cuda") else torch.device(device).index
    if number >= n_devices:
        raise InvalidParameterError(
            f"device={device!r} does not exist: the last GPU is 'cuda:{n_devices - 1}'."
        )
    return torch.device("cuda", number)


def chosen_device(
    device: str | None, X: Any, n_components: Any, *, n_iter: float = 1.0, fitted: bool = False
) -> Any:
    """Return where to work on X, which is in host memory or in a file; None for the CPU.

    `n_iter` is roughly the number of iterations of all restarts. A fitted model also works without its GPU,
    with a warning.
    """
    if device in (None, "cpu"):
        return None
    auto, library = device == "auto", library_of(X.__class__)
    if is_non_numpy(X) or library == "cupyx":  # in the memory of another library
        if not auto:
            raise InvalidParameterError(
                f"device={device!r} is for data in host memory, and X is a {library} {type(X).__name__}, "
                "which stays where it is. Leave device out, or pass a NumPy array."
            )
        return None
    shape, stored = getattr(X, "shape", (0, 0)), getattr(X, "nnz", None)
    started = "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized()
    n_entries = float(np.prod(shape) if stored is None else stored)
    if auto and not pays(shape, n_entries, n_components, n_iter, started=started):
        return None
    try:
        place = checked_device(device)
    except MissingDependencyError as error:
        if not fitted:
            raise
        warnings.warn(f"{error} This model runs on the CPU here.", NonnegWarning, stacklevel=2)
        return None
    # Sparse data cannot be streamed. They take indices, entries and the transpose.
    too_large = auto and place and stored is not None and 24.0 * stored > PART_FOR_DATA * free_memory(place)
    return None if too_large else place


def likely_iterations(max_iter: float, n_init: int = 1, beta: float = 2.0) -> float:
    """Return about how many iterations with the Frobenius loss a fit is worth."""
    return min(max_iter, LIKELY_ITERATIONS) * n_init * (1.0 if beta == 2.0 else DIVERGENCE_COST)


def pays(
    shape: tuple[int, ...], n_entries: float, n_components: Any, n_iter: float, *, started: bool = False
) -> bool:
    """Tell whether a GPU shortens a fit, by counts and by whether CUDA has started."""
    k = n_components if isinstance(n_components, int | np.integer) else 1
    # Rows and columns cost as well, which matters where X is sparse.
    work = 4.0 * k * n_iter * (n_entries + sum(shape) * k)
    return work >= (LEAST_OPERATIONS_STARTED if started else LEAST_OPERATIONS)


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
def device_work(data: Any) -> Iterator[None]:
    """Work on data: their GPU is the current one, as kernels need it, and the error of a full one helps."""
    current: Any = nullcontext()
    if data.container not in ("dense", "sparse", "dask") and "torch" in sys.modules:
        array = data.to_device(np.zeros(1))
        if on_gpu(array):
            _warn_without_triton()
        device = getattr(array, "device", None)
        if getattr(device, "type", None) == "cuda":
            current = sys.modules["torch"].cuda.device(device)
    try:
        with current:
            yield
        return
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":  # PyTorch's and CuPy's
            raise
        # The frames hold what filled the memory.
        traceback.clear_frames(error.__traceback__)
        first = str(error).partition("\n")[0][:200]
    dtype = str(data.dtype).removeprefix("torch.")
    single = "" if dtype == "float32" else "use float32 (X.astype(numpy.float32), --dtype float32); "
    raise DeviceMemoryError(
        f"The GPU ran out of memory for X ({data.shape[0]} x {data.shape[1]} {dtype}) and its factors. What "
        f"you can do: {single}ask for fewer components; pass X as a NumPy array or file with device='cuda': "
        f"what does not fit is streamed in blocks; or leave device out. ({first})"
    )


@functools.cache  # once is enough
def _warn_without_triton() -> None:
    if not is_installed("triton"):
        # Iterations of HALS and Newton steps take 15 and 11 times as long (docs/benchmarks/gpu.md).
        warn_user(
            "Triton is not installed, so the GPU runs array operations instead of compiled kernels: an "
            "iteration may take more than 10 times as long. Install it with: pip install triton",
            NonnegWarning,
        )


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Choose how products of float32 tensors are computed on a GPU, inside a ``with`` block.

    Parameters
    ----------
    precision : {"float32", "tf32"}
        "float32" has the accuracy of float32 and is what every fit uses by default, whatever PyTorch's
        ``allow_tf32`` or ``fp32_precision`` says. "tf32" rounds the factors of every product to 10 bits: it
        is faster, and losses are accurate to about three digits.

    Yields
    ------
    None
        The block runs; afterwards the precision is what it was before.

    See Also
    --------
    nonneg.NMF : Fits PyTorch tensors and CuPy arrays on their GPU.

    Examples
    --------
    >>> import nonneg
    >>> with nonneg.float32_products("tf32"):
    ...     model = nonneg.NMF(2, random_state=0).fit([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    """
    if not isinstance(precision, str) or precision not in ("float32", "tf32"):
        raise InvalidParameterError(f"precision must be 'float32' or 'tf32', got {precision!r}.")
    token = _wanted.set(precision)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def chosen_products() -> Iterator[None]:
    """Let PyTorch compute products as `float32_products` says; its own setting is back afterwards."""
    matmul = sys.modules["torch"].backends.cuda.matmul if "torch" in sys.modules else None
    # PyTorch 2.9 has a new name for the setting, and refuses the old one once the new one was used.
    new = hasattr(matmul, "fp32_precision")
    name, values = ("fp32_precision", ("ieee", "tf32")) if new else ("allow_tf32", (False, True))
    before, wanted = getattr(matmul, name, False), _wanted.get() == "tf32"
    if matmul is None or wanted == (before in ("tf32", True)):
        yield
        return
    setattr(matmul, name, values[wanted])
    try:
        yield
    finally:
        setattr(matmul, name, before)
