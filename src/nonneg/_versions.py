"""Versions of what a fit rests on, for reports of problems."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from nonneg._compiled import instruction_set
from nonneg._threads import available_threads
from nonneg._version import __version__

LIBRARIES = (
    "numpy", "scipy", "scikit-learn", "array-api-compat", "torch", "triton", "cupy-cuda12x", "dask",
    "anndata", "pandas", "networkx", "matplotlib",
)  # fmt: skip


def show_versions() -> None:
    """Write versions of the libraries, and which compiled core is used, to the terminal.

    See Also
    --------
    nonneg.NMF : The estimator.

    Examples
    --------
    >>> import nonneg
    >>> nonneg.show_versions()  # doctest: +ELLIPSIS
    nonneg ...
    """
    lines = {
        "nonneg": __version__,
        "compiled core": instruction_set(),
        "cores": str(available_threads()),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for name in LIBRARIES:
        try:
            lines[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            lines[name] = "-"
    width = max(map(len, lines))
    sys.stdout.write("".join(f"{name:<{width}}  {value}\n" for name, value in lines.items()))
