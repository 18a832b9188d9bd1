"""The device of an experiment's data: NumPy, or PyTorch tensors on the device named by a variable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError

ENVIRONMENT_VARIABLE = "NONNEG_DEVICE"
"""For example "cuda"; worker processes inherit it. Without it the data stay in NumPy."""


def chosen_device() -> str | None:
    """Return the requested device."""
    return os.environ.get(ENVIRONMENT_VARIABLE) or None


@contextmanager
def use_device(name: str | None) -> Iterator[None]:
    """Request a device inside the block, also for processes started there."""
    if name is None:
        yield
        return
    _check(name)
    before = os.environ.get(ENVIRONMENT_VARIABLE)
    os.environ[ENVIRONMENT_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[ENVIRONMENT_VARIABLE]
        else:
            os.environ[ENVIRONMENT_VARIABLE] = before


def to_device(X: FloatArray) -> Any:
    """Return the data on the requested device."""
    name = chosen_device()
    return X if name is None else _torch().as_tensor(X, device=name)


def describe_device() -> str | None:
    """Return the device and the version of PyTorch, for the page."""
    name = chosen_device()
    if name is None:
        return None
    torch = _torch()
    model = f" ({torch.cuda.get_device_name(name)})" if name.startswith("cuda") else ""
    return f"{name}{model}, torch {torch.__version__}"


def has_cuda() -> bool:
    """Tell whether PyTorch is installed and sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def _check(name: str) -> None:
    torch = _torch()
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise InvalidParameterError(
            f"device {name!r} cannot be used by PyTorch on this machine ({str(error).splitlines()[0]}). "
            "Leave it out for NumPy."
        ) from error


def _torch() -> Any:
    return import_optional("torch", extra="torch", purpose="Running an experiment on a device")
