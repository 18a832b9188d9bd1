"""How products of float32 tensors are computed on an NVIDIA GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nonneg.exceptions import UnknownNameError

PRECISIONS = ("float32", "tf32")
_wanted: ContextVar[str] = ContextVar("float32_products", default="float32")


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
    if precision not in PRECISIONS:
        raise UnknownNameError.of("precision", precision, PRECISIONS)
    token = _wanted.set(precision)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def chosen_products() -> Iterator[None]:
    """Let PyTorch compute products as `float32_products` says; its own setting is back afterwards."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    matmul, wanted = torch.backends.cuda.matmul, _wanted.get() == "tf32"
    # PyTorch 2.9 has a new name for the setting, and refuses the old one once the new one was used.
    new = hasattr(matmul, "fp32_precision")
    name, values = ("fp32_precision", ("ieee", "tf32")) if new else ("allow_tf32", (False, True))
    before = getattr(matmul, name)
    if wanted == (before in ("tf32", True)):
        yield
        return
    setattr(matmul, name, values[wanted])
    try:
        yield
    finally:
        setattr(matmul, name, before)
