"""Tests that execute a line, with their times: a plugin of pytest (`-p tests.mutants.watch`)."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mutants.changes import ROOT

SOURCE = ROOT / "src" / "nonneg"
KEPT = ROOT / ".mutants"
INSIDE = str(SOURCE) + os.sep
N_TESTS = 60  # of those that execute a line, the quickest
N_OF_FILE = 3  # also the quickest of every file of tests, which look at other things
N_OWN = 60  # and of the tests of its module
WATCH = pytest.StashKey[Any]()
PASSED = pytest.StashKey[bool]()
SECONDS_OF: dict[str, float] = {}  # of the tests that passed in this process


class Monitor:
    """The tests that execute a line, through `sys.monitoring`, which slows down nothing else."""

    def __init__(self) -> None:
        self.test, self.tool = "", sys.monitoring.PROFILER_ID
        self.tests_of: dict[str, dict[int, set[str]]] = {}
        events = sys.monitoring.events
        sys.monitoring.use_tool_id(self.tool, "tests.mutants")
        sys.monitoring.register_callback(self.tool, events.PY_START, self._begin)
        sys.monitoring.register_callback(self.tool, events.LINE, self._line)
        sys.monitoring.set_events(self.tool, events.PY_START)

    def _begin(self, code: Any, offset: int) -> Any:
        if (code.co_filename or "").startswith(INSIDE):
            sys.monitoring.set_local_events(self.tool, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE

    def _line(self, code: Any, line: int) -> Any:
        self.tests_of.setdefault(code.co_filename, {}).setdefault(line, set()).add(self.test)
        return sys.monitoring.DISABLE  # for the rest of this test

    def switch(self, test: str) -> None:
        """Begin with another test."""
        self.test = test
        sys.monitoring.restart_events()

    def stop(self) -> dict[str, dict[int, set[str]]]:
        """Return the tests of every line."""
        sys.monitoring.free_tool_id(self.tool)
        return self.tests_of


class Tracer:
    """The same before Python 3.12, through coverage."""

    def __init__(self) -> None:
        import coverage

        self.watch = coverage.Coverage(data_file=None, source=[str(SOURCE)], config_file=False)
        self.watch.start()

    def switch(self, test: str) -> None:
        """Begin with another test."""
        self.watch.switch_context(test)

    def stop(self) -> dict[str, dict[int, set[str]]]:
        """Return the tests of every line."""
        self.watch.stop()
        data = self.watch.get_data()
        return {
            file: {line: set(tests) for line, tests in data.contexts_by_lineno(file).items()}
            for file in data.measured_files()
        }


def pytest_load_initial_conftests(early_config: Any) -> None:
    """Start to watch before anything is imported."""
    _start(early_config)


def pytest_configure(config: Any) -> None:
    """The same in processes that learn only now that they watch."""
    if config.stash.get(WATCH, None) is None:
        _start(config)


def _start(config: Any) -> None:
    config.stash[WATCH] = Monitor() if hasattr(sys, "monitoring") else Tracer()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Name the test that runs, and measure it."""
    watch = item.config.stash.get(WATCH, None)
    if watch is None:
        return (yield)
    watch.switch(item.nodeid)
    started = time.perf_counter()
    answer = yield
    if item.stash.get(PASSED, False):
        SECONDS_OF[item.nodeid] = time.perf_counter() - started
    watch.switch("")
    return answer


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Note whether the test passes: one that fails anyway, or is skipped, catches nothing."""
    report = yield
    item.stash[PASSED] = report.passed and item.stash.get(PASSED, True)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was seen: of every line that was executed, the quickest tests that do so."""
    if (watch := session.config.stash.get(WATCH, None)) is None:
        return
    lines = {
        Path(file).relative_to(ROOT).as_posix(): {
            line: list(
                chosen_tests(
                    sorted(tests & SECONDS_OF.keys(), key=lambda test: (SECONDS_OF[test], test)), file
                )
            )
            for line, tests in each.items()
        }
        for file, each in watch.stop().items()
    }
    (KEPT / f"seen.{os.getpid()}.json").write_text(json.dumps({"seconds": SECONDS_OF, "lines": lines}))


def chosen_tests(tests: Iterable[str], file: str) -> Iterator[str]:
    """Yield those tests of a line that its mutants shall run, of a list with the quickest first."""
    own, counts = own_tests(Path(file).relative_to(ROOT).as_posix()), Counter[str]()
    for at, test in enumerate(tests):
        name = test.partition("::")[0]
        counts[name] += 1
        if at < N_TESTS or counts[name] <= (N_OWN if name in own else N_OF_FILE):
            yield test


@functools.cache
def own_tests(path: str) -> frozenset[str]:
    """Return the test files that import a source file, or bear its name or that of its package."""
    name = dotted(ROOT / path)
    package, _, module = name.rpartition(".")
    names = {f"test_{module}", f"test_{package.rpartition('.')[2]}"}
    pattern = re.compile(rf"{re.escape(name)}\b|from {re.escape(package)} import [^\n]*\b{module}\b")
    return frozenset(
        test.relative_to(ROOT).as_posix()
        for test in (ROOT / "tests").rglob("test_*.py")
        if test.stem in names or pattern.search(_text(test))
    )


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def dotted(path: Path) -> str:
    """Return the name by which a source file is imported."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def keep_tests() -> None:
    """Put together what the processes saw."""
    seen = [json.loads(path.read_text()) for path in sorted(KEPT.glob("seen.*.json"))]
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in seen:
        seconds.update(each["seconds"])
        for name, found in each["lines"].items():
            for line, tests in found.items():
                lines[name][line] |= set(tests)
    if not seconds:
        raise SystemExit("no test passed while the suite was watched")
    tests = sorted(seconds, key=lambda name: seconds[name])
    number = {name: at for at, name in enumerate(tests)}  # quickest first
    kept = {
        name: {
            line: [
                number[test] for test in chosen_tests(sorted(found, key=number.__getitem__), str(ROOT / name))
            ]
            for line, found in each.items()
        }
        for name, each in lines.items()
    }
    times = [seconds[name] for name in tests]
    (KEPT / "tests.json").write_text(json.dumps({"tests": tests, "seconds": times, "lines": kept}))
