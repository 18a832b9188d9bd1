"""The docstrings of the standard library as documents."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from nonneg.datasets import load_standard_library, standard_library
from nonneg.exceptions import InvalidParameterError, NonnegError


def test_documents_labels_and_words():
    found = load_standard_library()
    n = len(found.extras["texts"])
    assert n > 1000
    assert found.X.shape == (n, len(found.feature_names))
    assert found.y.shape == (n,)
    assert np.bincount(found.y).min() >= 10
    for at in (0, n // 2, n - 1):
        assert found.extras["objects"][at].split(".")[0] == found.names[found.y[at]]
    assert {"argparse", "json", "logging"} & set(found.names)
    assert not set(found.names) & {"test", "tkinter", "idlelib", "antigravity", "this"}
    assert not any(part.startswith("_") for name in found.extras["objects"] for part in name.split("."))
    fewer = load_standard_library(min_documents=40)
    assert len(fewer.extras["texts"]) < n


def test_nothing_is_imported():
    # asyncio, ssl and the like would open sockets, handlers or windows.
    code = (
        "import sys; import nonneg.datasets.standard_library as library; before = set(sys.modules); "
        "sys.stdlib_module_names = frozenset({'asyncio', 'smtplib', 'this', 'webbrowser'}); "
        "found = library._docstrings(); new = set(sys.modules) - before; "
        "sys.exit(not found or bool(new & {'this', 'asyncio', 'webbrowser', 'smtplib'}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_python_without_sources_says_so(monkeypatch, tmp_path):
    (tmp_path / "json.py").write_text("def broken(:")
    monkeypatch.setattr(standard_library.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    standard_library._docstrings.cache_clear()
    try:
        said = rf"standard library are not installed \({re.escape(str(tmp_path))}\)"
        with pytest.raises(NonnegError, match=said):
            load_standard_library()
    finally:
        standard_library._docstrings.cache_clear()


def test_bad_limits():
    with pytest.raises(InvalidParameterError, match="min_documents"):
        load_standard_library(min_documents=1.5)
