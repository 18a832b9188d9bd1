"""Run tests in forks of a process that has imported what takes long: `python server.py`, a request per line.

Not imported as a part of `tests`: forks import that from the copy of the tree in which they run.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

LIBRARIES = """
    scipy.io scipy.linalg scipy.optimize scipy.signal scipy.sparse.linalg scipy.stats pandas torch
    sklearn.cluster sklearn.decomposition sklearn.utils.estimator_checks matplotlib.pyplot
    dask.array distributed
"""


def answer(request: dict[str, Any]) -> int:
    """Return the exit status of pytest, or -1 after the time limit."""
    child = os.fork()
    if child == 0:
        os._exit(run(request))
    end = time.monotonic() + request["seconds"]
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def run(request: dict[str, Any]) -> int:
    """Run pytest in the copy of the tree."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    sys.path[:0] = request["environment"]["PYTHONPATH"].split(os.pathsep)
    # The finder of an editable installation would import the original sources.
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    import pytest

    sys.dont_write_bytecode = True
    words = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:benchmark"]
    files = dict.fromkeys(test.partition("::")[0] for test in request["tests"])
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning", *filter(os.path.exists, files)]
    return int(pytest.main(words, plugins=[Chosen(set(request["tests"]))]))


class Chosen:
    """A plugin of pytest that keeps the wanted tests, those that still exist."""

    def __init__(self, tests: set[str]) -> None:
        self.tests, self.failed = tests, Path("failed.txt").absolute()  # a test may change the folder

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Drop the others."""
        items[:] = [item for item in items if item.nodeid in self.tests]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Leave the name of a test that failed in the folder."""
        if report.failed:
            self.failed.write_text(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """The same for a file of tests that cannot be imported."""
        if report.failed:
            self.failed.write_text(report.nodeid)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    answers, sys.stdout = sys.stdout, sys.stderr
    for name in LIBRARIES.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        answers.write(f"{answer(json.loads(line))}\n")
        answers.flush()
