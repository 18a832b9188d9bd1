"""Where the points of an experiment lie: in NumPy, or as tensors on the device that a variable names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError

ENVIRONMENT_VARIABLE = "NONNEG_DEVICE"
"""Such as "cuda"; worker processes inherit it. Without it the points stay in NumPy."""


def chosen_device() -> str | None:
    """Return the device that was asked for."""
    return os.environ.get(ENVIRONMENT_VARIABLE) or None


@contextmanager
def use_device(name: str | None) -> Iterator[None]:
    """Ask for a device inside the block, for processes that are started there too."""
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


def placed(X: FloatArray) -> Any:
    """Return points where they were asked for."""
    name = chosen_device()
    return X if name is None else _torch().as_tensor(X, device=name)


def described_device() -> str | None:
    """Return the device and the library that drives it, for the page."""
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
