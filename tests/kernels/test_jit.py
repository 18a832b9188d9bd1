"""Compilation: one version of a kernel for all arrays, none for a first small fit, none at all if asked."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from nonneg.kernels.block_pivoting.native import pivoting_rows
from nonneg.kernels.jit import jit
from nonneg.kernels.machine_code import MachineCode


@jit()
def add_up(rows, into):
    for i in range(rows.shape[0]):
        into[i % into.shape[0]] += rows[i]
    return into.shape[0]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
def test_read_only_arrays_are_served_by_the_version_for_writable_ones(rng):
    rows, into = rng.random(7), np.zeros(1)
    rows.flags.writeable = False
    assert add_up(rows, into) == 1  # before there is a version
    assert [bool(kind.mutable) for kind in add_up.signatures[0]] == [True, True]
    add_up(rows.copy(), into)
    add_up(rows, into)
    assert len(add_up.signatures) == 1
    np.testing.assert_allclose(into, 3 * rows.sum())
    assert add_up(rows[::2], into) == 1  # not contiguous: a version of its own
    assert len(add_up.signatures) == 2


FIRST_FIT = """
import numpy as np
from numba.core import event
from nonneg import NMF

X = np.random.default_rng(0).random((1797, 64))  # the size of the digits
with event.install_recorder("numba:compile") as recorder:
    NMF(16, n_jobs=1, random_state=0, max_iter=5, tol=0).fit(X)
print(len(recorder.buffer))
"""


def test_a_first_small_fit_compiles_nothing_from_python(tmp_path):
    # Its only kernel is handed to LLVM directly: what numba takes for types would be most of the time.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FIT], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0"]


FITS = """
import sys, warnings, numpy as np, nonneg
warnings.simplefilter("ignore")
X = np.random.default_rng(0).gamma(1.0, size=(14, 9)) + 0.1
for solver, beta in (("hals", 2), ("anls", 2), ("mu", 1), ("newton", 1), ("mu", 0)):
    model = nonneg.NMF(3, solver=solver, beta_loss=beta, max_iter=3, tol=0.0, random_state=0, n_jobs=1).fit(X)
    np.save(sys.argv[1] + f"-{solver}-{beta}.npy", model.components_)
"""


@pytest.mark.slow
def test_without_compilation_a_fit_is_the_same(tmp_path):
    for name, setting in (("compiled", "0"), ("python", "1")):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": setting}
        subprocess.run([sys.executable, "-c", FITS, str(tmp_path / name)], env=environment, check=True)
    files = sorted(tmp_path.glob("compiled-*.npy"))
    assert len(files) == 5
    for path in files:
        plain = np.load(tmp_path / path.name.replace("compiled", "python"))
        np.testing.assert_allclose(plain, np.load(path), rtol=1e-8, atol=1e-12)


def test_machine_code_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    first, second = (MachineCode(pivoting_rows, 8) for _ in range(2))
    assert first._stored() is None
    assert first.address
    assert second._stored() is not None
    monkeypatch.setattr(second, "_compiled", None)
    assert second.address
