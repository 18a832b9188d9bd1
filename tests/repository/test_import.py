"""Importing the package is quick and leaves the process as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

STATE = """
import os, random, signal, sys, threading, warnings, logging, locale
import numpy as np
from threadpoolctl import threadpool_info  # sets a variable of the environment when it is imported

def state():
    return {
        "errstate": np.geterr(),
        "print options": {k: str(v) for k, v in np.get_printoptions().items()},
        "warning filters": [str(f) for f in warnings.filters],
        "random": [hash(random.getstate()), int(np.random.get_state()[1].sum())],
        "logging": [len(logging.getLogger().handlers), logging.getLogger().level],
        "threads": sorted(t.name for t in threading.enumerate()),
        "signals": str(signal.getsignal(signal.SIGINT)),
        "locale": locale.setlocale(locale.LC_ALL),
        "path": list(sys.path),
        "thread pools": sorted((p["prefix"], p["num_threads"]) for p in threadpool_info()),
    } | {f"variable {name}": value for name, value in os.environ.items()}

def changes(before, after):
    keys = before.keys() | after.keys()
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}
"""


def run_apart(code: str) -> str:
    """Run code in a fresh interpreter, where nothing is imported yet, and return what it wrote."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONWARNINGS": "default"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy():
    written = run_apart(
        """
        import sys
        before = set(sys.modules)
        import nonneg
        import json
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(json.dumps(sorted(new - set(sys.stdlib_module_names) - {"nonneg"})))
        """
    )
    assert set(json.loads(written)) <= {"numpy", "scipy"}


def test_import_changes_no_global_state():
    run_apart(
        STATE
        + textwrap.dedent(
            """
            before = state()
            import nonneg
            after = state()
            assert not (changed := changes(before, after)), changed
            """
        )
    )


@pytest.mark.slow
def test_importing_every_module_changes_no_global_state():
    # The libraries below are loaded first: some of them do change things, which is not for us to answer.
    run_apart(
        STATE
        + textwrap.dedent(
            """
            import importlib, pkgutil
            import scipy.sparse.linalg, scipy.linalg, scipy.io, scipy.optimize
            import sklearn.decomposition, sklearn.datasets, sklearn.utils.estimator_checks, threadpoolctl
            for name in ("dask.array", "distributed", "pandas", "matplotlib.figure", "h5py"):
                try:
                    importlib.import_module(name)
                except ImportError:
                    pass
            import nonneg
            before = state()
            for module in pkgutil.walk_packages(nonneg.__path__, "nonneg."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
            after = state()
            assert not (changed := changes(before, after)), changed
            """
        )
    )


def test_using_the_estimator_does_not_load_optional_libraries():
    written = run_apart(
        """
        import sys
        import sklearn.base  # may load pandas, and with it pyarrow, where they are installed
        before = set(sys.modules)
        from nonneg import NMF
        NMF(n_components=2)
        import nonneg.solvers.hals, nonneg.solvers.newton
        optional = {"torch", "triton", "dask", "distributed", "matplotlib", "cupy", "h5py"}
        optional.add("pyarrow")
        print(sorted(optional & (set(sys.modules) - before)))
        """
    )
    assert written.strip() == "[]"
